/* The learning rate as a function of the optimizer step. */
#include "train/schedule.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

enum { SHARE_OF_CUT_WARMUP = 10 }; /* a warm-up at least as long as the run becomes a tenth of it */

double cleat_scaled_learning_rate(cleat_lr_scaling scaling, double learning_rate, int64_t base_batch, int64_t batch) {
    if (scaling == CLEAT_LR_SCALING_NONE) return learning_rate;
    double ratio = (double)batch / (double)base_batch;
    return learning_rate * (scaling == CLEAT_LR_SCALING_LINEAR ? ratio : sqrt(ratio));
}

static cleat_status check(const cleat_schedule *schedule, cleat_error *error) {
    if (schedule->warmup_steps > 0 && schedule->start > schedule->peak)
        return cleat_fail(error, CLEAT_ERR_PROFILE,
                          "the learning rate would decrease during the warm-up: train.warmup_start_lr is %g, the "
                          "scaled learning rate is %g",
                          schedule->start, schedule->peak);
    if (schedule->floor > schedule->peak)
        return cleat_fail(error, CLEAT_ERR_PROFILE, "train.min_learning_rate %g is above the scaled learning rate %g",
                          schedule->floor, schedule->peak);
    return CLEAT_OK;
}

/* A warm-up longer than a small run comes from a profile made for more data. */
static int64_t warmup_within(const cleat_schedule *schedule) {
    const int64_t total = schedule->total_steps;
    if (schedule->warmup_ratio <= 0)
        return schedule->warmup_wanted < total ? schedule->warmup_wanted : total / SHARE_OF_CUT_WARMUP;
    const int64_t steps = llround(schedule->warmup_ratio * (double)total);
    return steps < total ? steps : total - 1;
}

void cleat_schedule_set_epochs(cleat_schedule *schedule, int64_t epochs) {
    schedule->epochs = epochs;
    schedule->total_steps = epochs * schedule->steps_per_epoch;
    schedule->warmup_steps = warmup_within(schedule);
}

cleat_status cleat_schedule_create(const cleat_profile *profile, int64_t steps_per_epoch, cleat_schedule *schedule,
                                   cleat_error *error) {
    int64_t warmup_epochs = profile->train.warmup_epochs;
    if (steps_per_epoch < 1)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "a schedule needs at least one step per epoch, not %lld",
                          (long long)steps_per_epoch);
    cleat_schedule made = {
        .type = (cleat_schedule_type)profile->train.schedule,
        .peak = cleat_scaled_learning_rate((cleat_lr_scaling)profile->train.lr_scaling, profile->train.learning_rate,
                                           profile->train.base_batch_size, cleat_profile_effective_batch(profile)),
        .start = profile->train.warmup_start_lr,
        .floor = profile->train.min_learning_rate,
        .gamma = profile->train.step_gamma,
        .warmup_ratio = profile->train.warmup_ratio,
        .warmup_wanted = warmup_epochs > 0 ? warmup_epochs * steps_per_epoch : profile->train.warmup_steps,
        .decay_steps = profile->train.step_epochs * steps_per_epoch,
        .steps_per_epoch = steps_per_epoch,
    };
    cleat_schedule_set_epochs(&made, profile->train.epochs);
    cleat_status status = check(&made, error);
    if (!status) *schedule = made;
    return status;
}

double cleat_schedule_rate(const cleat_schedule *schedule, int64_t step) {
    const double floor = schedule->floor, range = schedule->peak - floor;
    const int64_t warmup = schedule->warmup_steps, total = schedule->total_steps;
    const int64_t decays = schedule->decay_steps > 0 ? step / schedule->decay_steps : 0;
    if (step < warmup) return schedule->start + (schedule->peak - schedule->start) * ((double)step / (double)warmup);
    switch (schedule->type) {
    case CLEAT_SCHEDULE_CONSTANT:
        break;
    case CLEAT_SCHEDULE_COSINE:
        if (step >= total) return floor;
        return floor + range * 0.5 * (1 + cos(pi * ((double)(step - warmup) / (double)(total - warmup))));
    case CLEAT_SCHEDULE_STEP:
        return fmax(floor, schedule->peak * pow(schedule->gamma, (double)decays));
    case CLEAT_SCHEDULE_LINEAR:
        return step >= total ? floor : floor + range * ((double)(total - step) / (double)(total - warmup));
    }
    return schedule->peak;
}

cleat_status cleat_learning_rate(const cleat_profile *profile, int64_t steps_per_epoch, int64_t step, double *rate,
                                 cleat_error *error) {
    cleat_schedule schedule = {0};
    if (step < 0)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "optimizer steps are counted from 0: invalid step %lld",
                          (long long)step);
    cleat_status status = cleat_schedule_create(profile, steps_per_epoch, &schedule, error);
    if (!status) *rate = cleat_schedule_rate(&schedule, step);
    return status;
}

cleat_status cleat_warmup_steps(const cleat_profile *profile, int64_t steps_per_epoch, int64_t *steps,
                                cleat_error *error) {
    cleat_schedule schedule = {0};
    cleat_status status = cleat_schedule_create(profile, steps_per_epoch, &schedule, error);
    if (!status) *steps = schedule.warmup_steps;
    return status;
}
