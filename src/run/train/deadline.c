/* The deadline of a training run: forecasts the run time, shortens the schedule to the time budget, and
 * decides when the run must stop. */
#include "train/deadline.h"

#include "core/string.h"

#include <stdio.h>

/* `reserve`: fraction of the budget kept for what forecasts cannot predict. `disk_bytes_per_second`:
 * assumed disk speed until the first checkpoint has been written. */
static const double reserve = 0.05, disk_bytes_per_second = 100e6;

_Static_assert((int)CLEAT_BUDGET_KINDS >= (int)CLEAT_BUCKETS, "each length bucket is a kind of step");

/* Computed positions of the micro-batches of a kind, padding included. */
static double work_of(const cleat_deadline *deadline, int64_t micro_batches, size_t kind) {
    const cleat_bucket *bucket = &deadline->session->work->buckets[kind];
    return (double)micro_batches * (double)bucket->micro_batch_size * (double)bucket->length;
}

cleat_step_work cleat_deadline_work(const cleat_deadline *deadline, const cleat_batches *batches,
                                    const cleat_global_batch *global_batch) {
    if (global_batch->micro_batches == 0) return (cleat_step_work){0, 0}; /* other ranks compute all of it */
    const size_t kind = cleat_batches_get(batches, global_batch->first)->bucket;
    return (cleat_step_work){kind, work_of(deadline, (int64_t)global_batch->micro_batches, kind)};
}

void cleat_deadline_open(cleat_deadline *deadline, const cleat_profile *profile, const cleat_engine *engine,
                         const cleat_run_data *data, const cleat_schedule *schedule, cleat_run_clock *clock) {
    const cleat_workload *work = engine->session->work;
    const double models = cleat_average_is_on(&engine->average) ? 2 : 1,
                 moments = cleat_session_moments(engine->session);
    const double elements =
        models * (double)cleat_session_flat(engine->session) + moments * (double)cleat_session_trained(engine->session);
    const double bytes = sizeof(float) * elements + (double)work->store->flat[CLEAT_FLAT_BLOCK_WEIGHTS].shape[0];
    const bool follows = schedule->warmup_ratio > 0 || schedule->warmup_steps < schedule->warmup_wanted;
    int64_t warm_up =
        follows ? 0 : (schedule->warmup_steps + schedule->steps_per_epoch - 1) / schedule->steps_per_epoch;
    *deadline = (cleat_deadline){.session = engine->session,
                                 .may_shorten = profile->run.budget == CLEAT_BUDGET_FIT,
                                 .shape = {.steps_per_epoch = schedule->steps_per_epoch,
                                           .min_epochs = warm_up + 1,
                                           .evaluates = data->val_count > 0,
                                           .evaluate_every = profile->run.evaluate_every_epochs,
                                           .checkpoint_every = profile->run.checkpoint_every_epochs,
                                           .checkpoint_minutes = profile->run.checkpoint_every_minutes},
                                 .budget = {.seconds = (double)profile->run.time_budget.total,
                                            .session = (double)profile->run.time_budget.session,
                                            .earlier = clock->resumed,
                                            .reserve = reserve,
                                            .n_kinds = work->n_buckets,
                                            .evaluation_share = (double)data->val_count / (double)data->train_count,
                                            .checkpoint = {.guess = bytes / disk_bytes_per_second},
                                            .start_seconds = cleat_seconds() - clock->started}};
    /* all epochs have the same global batches, in a different order */
    for (size_t b = 0; b < work->n_buckets; ++b)
        deadline->budget.epoch_work[b] =
            work_of(deadline, cleat_bucket_micro_batches(&work->buckets[b], data->lengths.samples[b]), b);
    clock->synced = cleat_seconds();
}

/* --- measuring ------------------------------------------------------------------------------------------------ */

void cleat_deadline_synced(cleat_deadline *deadline, cleat_run_clock *clock) {
    double now = cleat_seconds();
    cleat_budget_done(&deadline->budget, now - clock->synced);
    clock->synced = now;
}

void cleat_deadline_queued(cleat_deadline *deadline, cleat_step_work step) {
    cleat_budget_queue(&deadline->budget, step.kind, step.work);
}

/* --- forecast and schedule ------------------------------------------------------------------------------------ */

static cleat_time_forecast compute_forecast(const cleat_deadline *deadline, const cleat_run_clock *clock,
                                            const cleat_schedule *schedule, int64_t steps) {
    cleat_schedule_shape shape = deadline->shape;
    cleat_time_forecast made;
    shape.epochs = schedule->epochs;
    cleat_budget_forecast(&deadline->budget, &shape, steps, cleat_run_clock_used(clock), &made);
    return made;
}

static void print_forecast(cleat_run *run, const cleat_time_forecast *made, const cleat_budget *limits,
                           int64_t epochs) {
    char epoch[CLEAT_DURATION_TEXT], whole[CLEAT_DURATION_TEXT], budget[CLEAT_DURATION_TEXT],
        session[CLEAT_DURATION_TEXT], text[384];
    int used = snprintf(text, sizeof text, "an epoch takes %s, the run %s (%lld epochs)",
                        cleat_duration_text(made->epoch_seconds, epoch), cleat_duration_text(made->run_seconds, whole),
                        (long long)epochs);
    if (made->runs > 0)
        used += snprintf(text + used, sizeof text - (size_t)used,
                         "; a budget of %s is enough for %lld such run%s, with %.0f %% in reserve",
                         cleat_duration_text(limits->seconds, budget), (long long)made->runs,
                         made->runs == 1 ? "" : "s", 100 * reserve);
    if (limits->session > 0 && made->sessions > 0)
        snprintf(text + used, sizeof text - (size_t)used, "; sessions of %s: about %lld more after this one",
                 cleat_duration_text(limits->session, session), (long long)made->sessions);
    else if (limits->session > 0)
        snprintf(text + used, sizeof text - (size_t)used, "; this session of %s is long enough",
                 cleat_duration_text(limits->session, session));
    cleat_run_print(run, text);
}

static void print_shortage(cleat_run *run, const cleat_time_forecast *made, double seconds, int64_t wanted,
                           int64_t epochs) {
    char end[24], budget[24], text[256];
    int used = snprintf(text, sizeof text, "%lld epochs would take %s, the budget is %s: ", (long long)wanted,
                        cleat_duration_text(made->end_seconds, end), cleat_duration_text(seconds, budget));
    if (epochs < wanted)
        snprintf(text + used, sizeof text - (size_t)used,
                 "the schedule is shortened to %lld epochs, including the learning rate", (long long)epochs);
    else
        snprintf(text + used, sizeof text - (size_t)used,
                 "the schedule is unchanged and the run stops in time; continue it with --resume and a larger "
                 "--time-budget");
    cleat_run_print(run, text);
}

cleat_status cleat_deadline_plan(cleat_deadline *deadline, const cleat_run_clock *clock, cleat_schedule *schedule,
                                 cleat_train_state *state, cleat_run *run, cleat_error *error) {
    const double seconds = deadline->budget.seconds;
    cleat_time_forecast made = compute_forecast(deadline, clock, schedule, state->step);
    bool may_shorten = state->epochs == 0 && deadline->may_shorten;
    int64_t epochs = may_shorten ? made.epochs : schedule->epochs;
    deadline->planned = true;
    state->epochs = epochs;
    print_forecast(run, &made, &deadline->budget, schedule->epochs);
    if (!made.fits) print_shortage(run, &made, seconds, schedule->epochs, epochs);
    if (epochs == schedule->epochs) return CLEAT_OK;
    cleat_schedule_set_epochs(schedule, epochs);
    run->progress.total = schedule->total_steps;
    cleat_metric metric = {"epochs", (double)epochs};
    return cleat_metrics_log_write(run->log, "schedule", state->epoch, state->step, &metric, 1, error);
}

void cleat_deadline_report(const cleat_deadline *deadline, const cleat_run_clock *clock, const cleat_schedule *schedule,
                           int64_t steps, cleat_train_report *report) {
    report->epochs_planned = schedule->epochs;
    if (!deadline->planned) return;
    cleat_time_forecast made = compute_forecast(deadline, clock, schedule, steps);
    report->step_seconds = made.step_seconds;
    report->epoch_seconds = made.epoch_seconds;
    report->run_seconds = made.run_seconds;
    report->runs_in_budget = made.runs;
}

/* --- the decision to stop ------------------------------------------------------------------------------------- */

cleat_status cleat_deadline_is_near(cleat_deadline *deadline, cleat_run_clock *clock, cleat_step_work step,
                                    bool evaluation, cleat_train_state *state, bool *near, cleat_error *error) {
    cleat_budget *budget = &deadline->budget;
    bool must = cleat_budget_must_stop(budget, cleat_run_clock_used(clock), step.kind, step.work, evaluation);
    if (must && budget->queued > 0) { /* wait for the queued steps, then check again */
        cleat_status status = cleat_exec_finish(deadline->session->exec, error);
        if (status) return status;
        cleat_deadline_synced(deadline, clock);
        must = cleat_budget_must_stop(budget, cleat_run_clock_used(clock), step.kind, step.work, evaluation);
    }
    state->next_seconds = must ? cleat_budget_needs(budget, step.kind, step.work, evaluation) : 0;
    *near = must;
    return CLEAT_OK;
}

const char *cleat_deadline_advice(const cleat_deadline *deadline, bool has_trained) {
    const cleat_budget *budget = &deadline->budget;
    const bool is_session =
        budget->session > 0 && (budget->seconds <= 0 || cleat_budget_limit(budget) < budget->seconds);
    if (is_session && !has_trained) return " and longer sessions (--time-budget): this one had no time for a step";
    return is_session ? " in the next session" : " and a larger --time-budget";
}

cleat_status cleat_deadline_check_resumed(const cleat_deadline *deadline, const cleat_run_clock *clock,
                                          const cleat_train_state *state, const char *folder, cleat_error *error) {
    char spent[24], whole[24];
    double used = cleat_run_clock_used(clock), budget = deadline->budget.seconds;
    if (budget <= 0 || clock->resumed == 0 || used + state->next_seconds <= budget) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_TIME_UP,
                      "%s: %s of the budget of %s are used, and the rest is too short for another step; with a larger "
                      "--time-budget (run.time_budget), --resume continues from step %lld of %s",
                      cleat_status_text(CLEAT_ERR_TIME_UP), cleat_duration_text(used, spent),
                      cleat_duration_text(budget, whole), (long long)state->step, folder);
}
