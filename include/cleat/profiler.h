/* The schedule of the profiler: which steps of a training run are recorded (run.profile).
 *
 * Threads: these functions only read their arguments. */
#ifndef CLEAT_PROFILER_H
#define CLEAT_PROFILER_H

#include "cleat/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* After `skip_first` steps, `repeat` cycles of wait + warmup + active steps. The queues keep times from the first warm-up
 * step of a cycle to its last active one; only active steps are reported. */
typedef struct cleat_profiler_schedule {
    int64_t skip_first, wait, warmup, active, repeat;
} cleat_profiler_schedule;

#define CLEAT_PROFILER_DEFAULT "skip_first=0,wait=5,warmup=2,active=3,repeat=1"

typedef enum cleat_profiler_phase {
    CLEAT_PROFILER_OFF, /* before and after all cycles */
    CLEAT_PROFILER_WAIT,
    CLEAT_PROFILER_WARMUP,
    CLEAT_PROFILER_ACTIVE,
} cleat_profiler_phase;

/* Parses "wait=5,warmup=2,active=3,repeat=2": keys in any order, each at most once; those left out have the value of
 * CLEAT_PROFILER_DEFAULT. CLEAT_ERR_ARGUMENT: the message names the key, its place and what is allowed. */
CLEAT_API cleat_status cleat_profiler_schedule_parse(const char *text, cleat_profiler_schedule *schedule,
                                                     cleat_error *error);

/* Phase of step `step`, counted from 1 and from the first step of this process. */
CLEAT_API cleat_profiler_phase cleat_profiler_schedule_phase(const cleat_profiler_schedule *schedule, int64_t step);
/* First and last active step of cycle `cycle` (0 .. repeat - 1). */
CLEAT_API int64_t cleat_profiler_schedule_first(const cleat_profiler_schedule *schedule, int64_t cycle);
CLEAT_API int64_t cleat_profiler_schedule_last(const cleat_profiler_schedule *schedule, int64_t cycle);

enum { CLEAT_PROFILER_TEXT = 160 };
/* Writes "steps 8-10, then 18-20" for a process that begins after `before` steps of the run; returns `text`. */
CLEAT_API const char *cleat_profiler_schedule_describe(const cleat_profiler_schedule *schedule, int64_t before,
                                                       char text[CLEAT_PROFILER_TEXT]);

#ifdef __cplusplus
}
#endif
#endif
