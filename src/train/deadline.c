/* The deadline of a training run: says what the run will take, shortens its schedule to the time budget, and knows when
 * the run must stop. */
#include "train/trainer.h"

#include <stdio.h>

/* `reserve` of a budget is kept for what forecasts do not know; a disk is taken to write so fast until the first
 * checkpoint was written. */
static const double reserve = 0.05, disk_bytes_per_second = 100e6;

_Static_assert((int)CLEAT_BUDGET_KINDS >= (int)CLEAT_BUCKETS, "each length bucket is a kind of step");

double cleat_trainer_time_used(const cleat_trainer *trainer) {
    return trainer->resumed_time + cleat_seconds() - trainer->started;
}

static void set_epochs(cleat_trainer *trainer, int64_t epochs) {
    trainer->epochs = epochs;
    trainer->schedule.total_steps = epochs * trainer->steps_per_epoch;
    trainer->progress.total = trainer->schedule.total_steps;
}

/* Positions that are computed for a window, padding included. */
static double work_of(const cleat_trainer *trainer, const cleat_global_batch *global_batch, size_t kind) {
    const cleat_bucket *bucket = &trainer->session->work->buckets[kind];
    return (double)global_batch->micro_batches * (double)bucket->micro_batch_size * (double)bucket->length;
}

static size_t kind_of(const cleat_batches *batches, const cleat_global_batch *global_batch) {
    return cleat_batches_get(batches, global_batch->first)->bucket;
}

/* All epochs have the same windows, in another order: of each bucket as many as its samples fill. */
static void count_work(cleat_trainer *trainer) {
    const cleat_workload *work = trainer->session->work;
    cleat_budget *budget = &trainer->budget;
    *budget = (cleat_budget){.n_kinds = work->n_buckets};
    for (size_t b = 0; b < work->n_buckets; ++b) {
        int64_t micro_batches = cleat_bucket_micro_batches(&work->buckets[b], trainer->lengths.samples[b]);
        budget->epoch_work[b] = work_of(trainer, &(cleat_global_batch){.micro_batches = (size_t)micro_batches}, b);
    }
}

void cleat_deadline_open(cleat_trainer *trainer) {
    cleat_budget *budget = &trainer->budget;
    double copies = cleat_average_is_on(&trainer->average) ? 4 : 3;
    double bytes = copies * sizeof(float) * (double)cleat_session_flat(trainer->session);
    if (!trainer->resumed_once) trainer->resumed_time = trainer->state.time_used;
    trainer->resumed_once = true;
    trainer->planned = false;
    count_work(trainer);
    budget->seconds = (double)trainer->profile->run.time_budget;
    budget->reserve = reserve;
    budget->evaluation_share = (double)trainer->val_count / (double)trainer->train_count;
    budget->checkpoint.guess = bytes / disk_bytes_per_second;
    budget->start_seconds = cleat_seconds() - trainer->started;
    set_epochs(trainer, trainer->state.epochs > 0 ? trainer->state.epochs : trainer->profile->train.epochs);
    trainer->synced = cleat_seconds();
}

/* --- measuring ------------------------------------------------------------------------------------------------ */

void cleat_deadline_synced(cleat_trainer *trainer) {
    double now = cleat_seconds();
    cleat_budget_done(&trainer->budget, now - trainer->synced);
    trainer->synced = now;
}

cleat_status cleat_deadline_queued(cleat_trainer *trainer, const cleat_batches *batches,
                                   const cleat_global_batch *global_batch, cleat_error *error) {
    size_t kind = kind_of(batches, global_batch);
    cleat_budget_queue(&trainer->budget, kind, work_of(trainer, global_batch, kind));
    if (trainer->report->seconds_first_step > 0 && cleat_budget_is_measured(&trainer->budget, false)) return CLEAT_OK;
    cleat_status status = cleat_exec_finish(trainer->session->exec, error);
    if (status != CLEAT_OK) return status;
    cleat_deadline_synced(trainer);
    return trainer->report->seconds_first_step == 0 ? cleat_startup_done(trainer, error) : CLEAT_OK;
}

/* --- the plan ------------------------------------------------------------------------------------------------- */

/* Seconds as people say them; short ones with a fraction. */
static const char *duration(double seconds, char text[24]) {
    if (seconds < 60)
        snprintf(text, 24, "%.3g s", seconds);
    else
        cleat_duration_text(seconds, text);
    return text;
}

static cleat_time_forecast compute_forecast(const cleat_trainer *trainer) {
    const cleat_profile *profile = trainer->profile;
    int64_t steps = trainer->steps_per_epoch, warm_up_steps = profile->train.warmup_steps;
    int64_t warm_up = profile->train.warmup_epochs;
    if (warm_up == 0) warm_up = (warm_up_steps + steps - 1) / steps;
    cleat_schedule_shape shape = {
        .steps_per_epoch = steps,
        .epochs = trainer->epochs,
        .min_epochs = warm_up + 1,
        .evaluates = trainer->val_count > 0,
        .evaluate_every = profile->run.evaluate_every_epochs,
        .checkpoint_every = profile->run.checkpoint_every_epochs,
        .checkpoint_minutes = profile->run.checkpoint_every_minutes,
    };
    cleat_time_forecast made;
    cleat_budget_forecast(&trainer->budget, &shape, trainer->state.step, cleat_trainer_time_used(trainer), &made);
    return made;
}

static void log_forecast(cleat_trainer *trainer, const cleat_time_forecast *made) {
    char epoch[24], run[24], budget[24], text[256];
    int used =
        snprintf(text, sizeof text, "an epoch takes %s, the run %s (%lld epochs)", duration(made->epoch_seconds, epoch),
                 duration(made->run_seconds, run), (long long)trainer->epochs);
    if (made->runs > 0)
        snprintf(text + used, sizeof text - (size_t)used,
                 "; a budget of %s is enough for %lld such run%s, with %.0f %% in reserve",
                 duration(trainer->budget.seconds, budget), (long long)made->runs, made->runs == 1 ? "" : "s",
                 100 * reserve);
    cleat_trainer_log(trainer, text);
}

static void log_shortage(cleat_trainer *trainer, const cleat_time_forecast *made, int64_t epochs) {
    char end[24], budget[24], text[256];
    int used = snprintf(text, sizeof text, "%lld epochs would take %s, the budget is %s: ", (long long)trainer->epochs,
                        duration(made->end_seconds, end), duration(trainer->budget.seconds, budget));
    if (epochs < trainer->epochs)
        snprintf(text + used, sizeof text - (size_t)used,
                 "the schedule is shortened to %lld epochs, including the learning rate", (long long)epochs);
    else
        snprintf(text + used, sizeof text - (size_t)used,
                 "the schedule is unchanged and the run stops in time; continue it with --resume and a larger "
                 "--time-budget");
    cleat_trainer_log(trainer, text);
}

cleat_status cleat_deadline_plan(cleat_trainer *trainer, cleat_error *error) {
    cleat_time_forecast made = compute_forecast(trainer);
    bool may_shorten = trainer->state.epochs == 0 && trainer->profile->run.budget == CLEAT_BUDGET_FIT;
    int64_t epochs = may_shorten ? made.epochs : trainer->epochs;
    trainer->planned = true;
    trainer->state.epochs = epochs;
    log_forecast(trainer, &made);
    if (!made.fits) log_shortage(trainer, &made, epochs);
    if (epochs == trainer->epochs) return CLEAT_OK;
    set_epochs(trainer, epochs);
    cleat_metric metric = {"epochs", (double)epochs};
    return cleat_metrics_log_write(trainer->log, "schedule", trainer->state.epoch, trainer->state.step, &metric, 1,
                                   error);
}

void cleat_deadline_report(const cleat_trainer *trainer, cleat_train_report *report) {
    report->epochs_planned = trainer->epochs;
    if (!trainer->planned) return;
    cleat_time_forecast made = compute_forecast(trainer);
    report->step_seconds = made.step_seconds;
    report->epoch_seconds = made.epoch_seconds;
    report->run_seconds = made.run_seconds;
    report->runs_in_budget = made.runs;
}

/* --- the moment to stop --------------------------------------------------------------------------------------- */

cleat_status cleat_deadline_is_near(cleat_trainer *trainer, const cleat_batches *batches,
                                    const cleat_global_batch *global_batch, bool evaluation, bool *near,
                                    cleat_error *error) {
    cleat_budget *budget = &trainer->budget;
    size_t kind = kind_of(batches, global_batch);
    double work = work_of(trainer, global_batch, kind);
    bool must = cleat_budget_must_stop(budget, cleat_trainer_time_used(trainer), kind, work, evaluation);
    if (must && budget->queued > 0) { /* wait for what is queued, then look again */
        cleat_status status = cleat_exec_finish(trainer->session->exec, error);
        if (status != CLEAT_OK) return status;
        cleat_deadline_synced(trainer);
        must = cleat_budget_must_stop(budget, cleat_trainer_time_used(trainer), kind, work, evaluation);
    }
    trainer->state.next_seconds = must ? cleat_budget_needs(budget, kind, work, evaluation) : 0;
    *near = must;
    return CLEAT_OK;
}

cleat_status cleat_deadline_check_resumed(const cleat_trainer *trainer, cleat_error *error) {
    char spent[24], whole[24];
    double used = cleat_trainer_time_used(trainer), budget = trainer->budget.seconds;
    if (budget <= 0 || trainer->resumed_time == 0 || used + trainer->state.next_seconds <= budget) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_TIME_UP,
                      "%s: %s of the budget of %s are used, and the rest is too short for another step; with a larger "
                      "--time-budget (run.time_budget), --resume continues from step %lld of %s",
                      cleat_status_text(CLEAT_ERR_TIME_UP), duration(used, spent), duration(budget, whole),
                      (long long)trainer->state.step, trainer->folder);
}
