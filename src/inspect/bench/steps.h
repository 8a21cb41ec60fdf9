/* Training steps on a fixed synthetic batch, and repeated timing of a function. Shared by the benchmarks and
 * the batch search. */
#ifndef CLEAT_SRC_STEPS_H
#define CLEAT_SRC_STEPS_H

#include "cleat/bench.h"
#include "verify/trajectory.h"

/* Median (for an even count, the mean of the two middle values), smallest and largest of values [count],
 * count > 0. */
cleat_status cleat_spread_of(const double *values, int64_t count, cleat_spread *spread, cleat_error *error);
/* Compares two doubles, for qsort. */
int cleat_ascending(const void *a, const void *b);

typedef struct cleat_step_times {
    int64_t steps;
    double ms_median, ms_min, ms_max;
    double loss; /* loss of the last step; 0 if there is none */
} cleat_step_times;

/* A function to be timed. */
typedef struct cleat_timed_function {
    /* Runs `count` times and waits for completion. */
    cleat_status (*run)(void *user, int64_t count, cleat_error *error);
    void *user;
    /* Shorter runs are grouped into bursts of this duration between two clock reads, so that the wait at the end
     * is negligible; 0: each run is timed separately. */
    double burst_seconds;
} cleat_timed_function;

/* Runs the function for about `seconds` and at least `least` times, after two warm-up runs that are not
 * counted. */
cleat_status cleat_time_runs(const cleat_timed_function *what, double seconds, int64_t least, cleat_step_times *times,
                             cleat_error *error);

/* One training step: forward, loss and backward for `micro_batches` times the same batch, AdamW, and a read
 * of the loss by the host. */
cleat_status cleat_training_step(cleat_trajectory *run, int64_t micro_batches, double *loss, cleat_error *error);

/* Times training steps of one micro-batch. */
cleat_status cleat_time_steps(cleat_trajectory *run, double seconds, int64_t least, cleat_step_times *times,
                              cleat_error *error);

#endif
