/* The learning rate as a table: the scaling rules at common batch sizes, and the schedule at points of the
 * run. */
#include "plan.h"

#include <stdio.h>

static void add_scaling(const cleat_profile *profile, int64_t batch, plan_rates *rates) {
    double rate = profile->train.learning_rate;
    int64_t base = rates->base_batch;
    rates->scalings[rates->n_scalings++] = (plan_scaling){
        .batch = batch,
        .own = batch == cleat_profile_effective_batch(profile),
        .none = cleat_scaled_learning_rate(CLEAT_LR_SCALING_NONE, rate, base, batch),
        .linear = cleat_scaled_learning_rate(CLEAT_LR_SCALING_LINEAR, rate, base, batch),
        .sqrt = cleat_scaled_learning_rate(CLEAT_LR_SCALING_SQRT, rate, base, batch),
    };
}

static void add_scalings(const cleat_profile *profile, plan_rates *rates) {
    int64_t own = cleat_profile_effective_batch(profile), last = 0;
    for (int64_t batch = 8; batch <= 256; batch *= 2) {
        if (own > last && own < batch) add_scaling(profile, own, rates);
        add_scaling(profile, batch, rates);
        last = batch;
    }
    if (own > last) add_scaling(profile, own, rates);
}

/* The run in optimizer steps. If the data is unknown, epochs are assumed to be long enough for the warm-up,
 * and only values that do not depend on their length are shown. */
typedef struct timeline {
    int64_t epoch_steps, warmup, total;
    bool steps_known;
    bool epochs_known; /* the epochs of points that depend on the warm-up are known */
} timeline;

static timeline make_timeline(const cleat_profile *profile, int64_t steps_per_epoch) {
    int64_t epochs = profile->train.epochs, steps = profile->train.warmup_steps;
    timeline line = {.epoch_steps = steps_per_epoch, .steps_known = steps_per_epoch > 0};
    if (!line.steps_known) line.epoch_steps = steps < 1000 ? 1000 : steps + 1;
    /* the error, if any, is that of the first point */
    if (cleat_warmup_steps(profile, line.epoch_steps, &line.warmup, NULL)) line.warmup = 0;
    line.total = epochs * line.epoch_steps;
    line.epochs_known = line.steps_known || steps == 0;
    return line;
}

static void add_point(const cleat_profile *profile, const timeline *line, int64_t step, bool epoch_known,
                      plan_point point, plan_rates *rates) {
    point.step = line->steps_known || step == 0 ? step : -1;
    point.epoch = epoch_known ? (double)step / (double)line->epoch_steps : -1;
    if (!rates->status)
        rates->status = cleat_learning_rate(profile, line->epoch_steps, step, &point.rate, &rates->error);
    if (!rates->status) rates->points[rates->n_points++] = point;
}

static void add_points(const cleat_profile *profile, int64_t steps_per_epoch, plan_rates *rates) {
    timeline line = make_timeline(profile, steps_per_epoch);
    const int64_t wanted = profile->train.warmup_epochs > 0 ? profile->train.warmup_epochs * line.epoch_steps
                                                            : profile->train.warmup_steps;
    rates->cut_warmup = line.steps_known && line.warmup < wanted ? line.warmup : -1;
    /* A cosine and a line start at the end of the warm-up, so their points are counted from there if the
     * warm-up's fraction of the run is unknown. */
    const int schedule = profile->train.schedule;
    const bool after = !line.epochs_known && (schedule == CLEAT_SCHEDULE_COSINE || schedule == CLEAT_SCHEDULE_LINEAR);
    add_point(profile, &line, 0, true, (plan_point){.at = "start"}, rates);
    if (line.warmup > 0) {
        plan_point point = {.at = "end of warm-up"};
        add_point(profile, &line, line.warmup, line.epochs_known, point, rates);
        if (!line.steps_known && profile->train.warmup_steps > 0 && !rates->status)
            rates->points[rates->n_points - 1].step = line.warmup;
    }
    for (int percent = 25; percent <= 100; percent += 25) {
        plan_point point = {.rate = 0};
        int64_t from = after ? line.warmup : 0;
        snprintf(point.at, sizeof point.at, "%d %% of the %s", percent, after ? "rest" : "run");
        add_point(profile, &line, from + (line.total - from) * percent / 100, !after || percent == 100, point, rates);
    }
}

plan_rates plan_find_rates(const cleat_profile *profile, int64_t steps_per_epoch) {
    int64_t given = profile->train.base_batch_size;
    plan_rates rates = {.base_batch = given != CLEAT_NONE ? given : cleat_profile_effective_batch(profile)};
    add_scalings(profile, &rates);
    add_points(profile, steps_per_epoch, &rates);
    if (rates.status) rates.n_points = 0;
    return rates;
}

static void print_scalings(const plan_result *plan) {
    static const char *const rules[] = {"none", "linear", "sqrt"};
    const plan_rates *rates = &plan->rates;
    double rate = plan->profile->train.learning_rate;
    printf("\nlearning rate\n  base: %g at a global batch of %lld samples%s; lr_scaling = %s\n", rate,
           (long long)rates->base_batch,
           plan->profile->train.base_batch_size == CLEAT_NONE ? " (that of this profile: base_batch_size is not set)"
                                                              : "",
           rules[plan->profile->train.lr_scaling]);
    printf("  linear: base x (global batch / base batch)    sqrt: base x sqrt(global batch / base batch)\n\n");
    printf("  %15s %12s %12s %12s\n", "effective batch", "none", "linear", "sqrt");
    for (size_t i = 0; i < rates->n_scalings; ++i) {
        const plan_scaling *row = &rates->scalings[i];
        printf("  %15lld %12.4g %12.4g %12.4g%s\n", (long long)row->batch, row->none, row->linear, row->sqrt,
               row->own ? "  <- this profile" : "");
    }
}

static void print_schedule_rule(const cleat_profile *profile) {
    if (profile->train.warmup_ratio > 0)
        printf("  warm-up over %g of the run from %g, then ", profile->train.warmup_ratio,
               profile->train.warmup_start_lr);
    else if (profile->train.warmup_epochs > 0)
        printf("  warm-up of %lld epochs from %g, then ", (long long)profile->train.warmup_epochs,
               profile->train.warmup_start_lr);
    else if (profile->train.warmup_steps > 0)
        printf("  warm-up of %lld steps from %g, then ", (long long)profile->train.warmup_steps,
               profile->train.warmup_start_lr);
    else
        printf("  no warm-up, ");
    if (profile->train.schedule == CLEAT_SCHEDULE_COSINE)
        printf("a cosine to %g\n", profile->train.min_learning_rate);
    else if (profile->train.schedule == CLEAT_SCHEDULE_LINEAR)
        printf("linear to %g\n", profile->train.min_learning_rate);
    else if (profile->train.schedule == CLEAT_SCHEDULE_STEP)
        printf("x %g every %lld epochs, not below %g\n", profile->train.step_gamma,
               (long long)profile->train.step_epochs, profile->train.min_learning_rate);
    else
        printf("constant\n");
}

static void print_schedule(const plan_result *plan) {
    printf("\n");
    print_schedule_rule(plan->profile);
    if (plan->rates.cut_warmup >= 0)
        printf("  not shorter than the run: the warm-up is cut to %lld steps, a tenth of the run\n",
               (long long)plan->rates.cut_warmup);
    printf("  %-18s %10s %10s %14s\n", "", "epoch", "step", "learning rate");
    for (size_t i = 0; i < plan->rates.n_points; ++i) {
        const plan_point *point = &plan->rates.points[i];
        char epoch[CLI_SHORT] = "-", step[CLI_SHORT] = "-";
        if (point->epoch >= 0) snprintf(epoch, sizeof epoch, "%.4g", point->epoch);
        if (point->step >= 0) snprintf(step, sizeof step, "%lld", (long long)point->step);
        printf("  %-18s %10s %10s %14.4g\n", point->at, epoch, step, point->rate);
    }
}

void plan_print_rates(const plan_result *plan) {
    print_scalings(plan);
    if (!plan->rates.status) print_schedule(plan);
}
