/* The times of a run: seconds of cleat_seconds, and the durations that earlier processes used. */
#ifndef CLEAT_SRC_RUN_CLOCK_H
#define CLEAT_SRC_RUN_CLOCK_H

#include "core/clock.h"

#include <stdbool.h>

typedef struct cleat_run_clock {
    double started;         /* the call of cleat_train */
    double lap;             /* end of the last part of the start (startup_timing.h) */
    double waited;          /* duration: what the session had waited for programs by then */
    double synced;          /* when the host last waited for the device, or last did something else than training */
    double last_checkpoint; /* when it was written, or training began */
    double resumed;         /* duration: time used by earlier processes of this run ... */
    bool is_resumed;        /* ... which is known: set once a process */
} cleat_run_clock;

/* Seconds that all processes of the run used. */
static inline double cleat_run_clock_used(const cleat_run_clock *clock) {
    return clock->resumed + cleat_seconds() - clock->started;
}

#endif
