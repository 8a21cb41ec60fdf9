/* Training steps of a fixed batch of made-up samples, timed: what benchmarks and the search for a batch have in common. */
#ifndef CLEAT_SRC_STEPS_H
#define CLEAT_SRC_STEPS_H

#include "train/trajectory.h"

/* Arrays as cleat_reference wants them: random tokens below `vocabulary` [B, L], random coordinates [B, L, 3], all
 * samples of full length. */
typedef struct cleat_made_batch {
    cleat_reference reference; /* points into the arrays */
    int64_t *tokens;
    float *target;
} cleat_made_batch;

cleat_status cleat_made_batch_create(int64_t batch, int64_t length, int64_t vocabulary, cleat_made_batch *made,
                                     cleat_error *error);
void cleat_made_batch_free(cleat_made_batch *made);

typedef struct cleat_step_times {
    int64_t steps;
    double ms_median, ms_min, ms_max;
    double loss; /* of the last step */
} cleat_step_times;

/* Steps (forward, loss, backward, AdamW, the loss read by the host) for about `seconds` and at least `least` of them,
 * after two that are not counted. */
cleat_status cleat_time_steps(cleat_trajectory *run, double seconds, int64_t least, cleat_step_times *times,
                              cleat_error *error);

#endif
