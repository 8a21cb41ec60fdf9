/* Training steps of a fixed batch of made-up samples, and the clock around whatever is run again and again: what
 * benchmarks and the search for a batch have in common. */
#ifndef CLEAT_SRC_STEPS_H
#define CLEAT_SRC_STEPS_H

#include "cleat/bench.h"
#include "verify/trajectory.h"

/* Median (of an even count the mean of the two in the middle), least and largest of values [count], count > 0. */
cleat_status cleat_spread_of(const double *values, int64_t count, cleat_spread *spread, cleat_error *error);

typedef struct cleat_step_times {
    int64_t steps;
    double ms_median, ms_min, ms_max;
    double loss; /* of the last step; 0 where there is none */
} cleat_step_times;

/* What is timed. */
typedef struct cleat_repeated {
    cleat_status (*run)(void *user, int64_t count, cleat_error *error); /* `count` times, and waits for their end */
    void *user;
    double
        burst_seconds; /* what is shorter is run several times between two looks at the clock, so that waiting for its
                             end does not count; 0: each time by itself */
} cleat_repeated;

/* Runs it for about `seconds` and at least `least` times, after two that are not counted. */
cleat_status cleat_time_runs(const cleat_repeated *what, double seconds, int64_t least, cleat_step_times *times,
                             cleat_error *error);

/* One step (forward, loss, backward of `micro_batches` of the same batch, AdamW, the loss read by the host). */
cleat_status cleat_training_step(cleat_trajectory *run, int64_t micro_batches, double *loss, cleat_error *error);

/* Such steps of one micro-batch, timed. */
cleat_status cleat_time_steps(cleat_trajectory *run, double seconds, int64_t least, cleat_step_times *times,
                              cleat_error *error);

#endif
