/* Times of a run: points in time in seconds of cleat_seconds, and durations of earlier processes. */
#ifndef CLEAT_SRC_RUN_CLOCK_H
#define CLEAT_SRC_RUN_CLOCK_H

#include "core/clock.h"

#include <stdbool.h>

typedef struct cleat_run_clock {
    double started; /* call of cleat_train */
    double lap;     /* end of the last measured part of the startup (startup_timing.h) */
    double waited;  /* duration: the session's total wait for programs at the last lap */
    /* last time the host waited for the device, or finished work other than training */
    double synced;
    double last_checkpoint; /* last checkpoint, or the start of training */
    double resumed;         /* duration: time used by earlier processes of this run ... */
    bool is_resumed;        /* ... is known: set once per process */
} cleat_run_clock;

/* Seconds used by all processes of the run. */
static inline double cleat_run_clock_used(const cleat_run_clock *clock) {
    return clock->resumed + cleat_seconds() - clock->started;
}

#endif
