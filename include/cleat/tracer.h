/* The schedule of the tracer: which steps of a training run are recorded (run.trace).
 *
 * Threads: these functions only read their arguments. */
#ifndef CLEAT_TRACER_H
#define CLEAT_TRACER_H

#include "cleat/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* After `skip_first` steps, `repeat` cycles of wait + warmup + active steps. The queues keep times from the
 * first warm-up step of a cycle to its last active one; only active steps are reported. */
typedef struct cleat_tracer_schedule {
    int64_t skip_first, wait, warmup, active, repeat;
} cleat_tracer_schedule;

#define CLEAT_TRACER_DEFAULT "skip_first=0,wait=5,warmup=2,active=3,repeat=1"

typedef enum cleat_tracer_phase {
    CLEAT_TRACER_OFF, /* before and after all cycles */
    CLEAT_TRACER_WAIT,
    CLEAT_TRACER_WARMUP,
    CLEAT_TRACER_ACTIVE,
} cleat_tracer_phase;

/* Parses "wait=5,warmup=2,active=3,repeat=2": keys in any order, each at most once; those left out have the value of
 * CLEAT_TRACER_DEFAULT. CLEAT_ERR_ARGUMENT: the message names the key, its place and the allowed values. */
CLEAT_API cleat_status cleat_tracer_schedule_parse(const char *text, cleat_tracer_schedule *schedule,
                                                   cleat_error *error);

/* Phase of step `step`, counted from 1 and from the first step of this process. */
CLEAT_API cleat_tracer_phase cleat_tracer_schedule_phase(const cleat_tracer_schedule *schedule, int64_t step);
/* First and last active step of cycle `cycle` (0 .. repeat - 1). */
CLEAT_API int64_t cleat_tracer_schedule_first(const cleat_tracer_schedule *schedule, int64_t cycle);
CLEAT_API int64_t cleat_tracer_schedule_last(const cleat_tracer_schedule *schedule, int64_t cycle);

enum { CLEAT_TRACER_TEXT = 160 };
/* Writes "steps 8-10, then 18-20" for a process that begins after `before` steps of the run; returns `text`. */
CLEAT_API const char *cleat_tracer_schedule_describe(const cleat_tracer_schedule *schedule, int64_t before,
                                                     char text[CLEAT_TRACER_TEXT]);

#ifdef __cplusplus
}
#endif
#endif
