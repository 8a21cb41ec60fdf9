/* The learning rate: a pure function of the optimizer step. */
#ifndef CLEAT_SRC_SCHEDULE_H
#define CLEAT_SRC_SCHEDULE_H

#include "cleat/train.h"

typedef struct cleat_schedule {
    cleat_schedule_type type;
    double peak;           /* learning rate after scaling and warm-up */
    double start;          /* learning rate at step 0, with a warm-up */
    double floor;          /* lower bound of the learning rate after the warm-up */
    double gamma;          /* CLEAT_SCHEDULE_STEP: decay factor */
    double warmup_ratio;   /* train.warmup_ratio; 0: not set */
    int64_t warmup_wanted; /* as the profile has it, in optimizer steps; without warmup_ratio */
    int64_t warmup_steps;  /* always less than total_steps; 0: no warm-up */
    int64_t decay_steps;   /* CLEAT_SCHEDULE_STEP: optimizer steps between two decays */
    int64_t steps_per_epoch;
    int64_t epochs;      /* epochs of the whole run: the profile's, or fewer (cleat_schedule_set_epochs) */
    int64_t total_steps; /* epochs * steps_per_epoch */
} cleat_schedule;

/* The schedule of a profile whose epochs have `steps_per_epoch` optimizer steps (at least 1). A warm-up at
 * least as long as the run is cut to a tenth of it: then warmup_steps < warmup_wanted. Errors: a warm-up that
 * starts above its end, a floor above the peak. */
cleat_status cleat_schedule_create(const cleat_profile *profile, int64_t steps_per_epoch, cleat_schedule *schedule,
                                   cleat_error *error);

/* Changes the length of the schedule to `epochs` epochs. The warm-up stays, unless it is a share of the run. */
void cleat_schedule_set_epochs(cleat_schedule *schedule, int64_t epochs);

/* The learning rate of optimizer step `step` (the first is 0).
 *   warm-up, step < W:  start + (peak - start) * step / W
 *   constant:           peak
 *   cosine:             floor + (peak - floor) * (1 + cos(pi * (step - W) / (T - W))) / 2
 *                       T total steps; floor from T on
 *   linear:             floor + (peak - floor) * (T - step) / (T - W); floor from T on
 *   step:               max(floor, peak * gamma^floor(step / D))
 *                       D decay steps, counted from 0 */
double cleat_schedule_rate(const cleat_schedule *schedule, int64_t step);

#endif
