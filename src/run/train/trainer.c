/* The training loop. setup.c opens the parts it uses. */
#include "train/trainer.h"

#include "core/files.h"
#include "core/memory.h"
#include "exec/copy.h"
#include "train/checkpointing.h"
#include "train/evaluate.h"
#include "train/startup_timing.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool cleat_trainer_leads(const cleat_trainer *trainer) {
    const cleat_train_options *options = trainer->run.options;
    return !options || cleat_ranks_rank(options->ranks) == 0;
}

bool cleat_trainer_must_stop(const cleat_trainer *trainer) {
    return trainer->run.options->stop && *trainer->run.options->stop;
}

/* Activities of the training thread: the monitor's reason why a device waits, and a span in the tracer's
 * trace. */
typedef struct phase {
    cleat_activity activity, before;
    double start;
} phase;

static phase begin(cleat_trainer *trainer, cleat_activity activity) {
    return (phase){.activity = activity,
                   .before = cleat_run_monitor_set(&trainer->monitor, activity),
                   .start = cleat_tracer_now(trainer->tracing.tracer)};
}

static void end(cleat_trainer *trainer, const phase *ended) {
    static const struct {
        const char *name;
        bool interrupts; /* it belongs to no step */
    } spans[CLEAT_ACTIVITIES] = {[CLEAT_DOING_LOADER] = {"waiting for the loader", false},
                                 [CLEAT_DOING_ENQUEUE] = {"enqueueing forward and backward", false},
                                 [CLEAT_DOING_UPDATE] = {"enqueueing the update", false},
                                 [CLEAT_DOING_READ] = {"reading and logging the results", false},
                                 [CLEAT_DOING_EPOCH] = {"starting an epoch", true},
                                 [CLEAT_DOING_EVALUATE] = {"evaluating", true},
                                 [CLEAT_DOING_CHECKPOINT] = {"writing a checkpoint", true}};
    const char *name = spans[ended->activity].name;
    if (spans[ended->activity].interrupts)
        cleat_tracer_end_interruption(trainer->tracing.tracer, name, ended->start);
    else
        cleat_tracer_end_span(trainer->tracing.tracer, name, ended->start);
    cleat_run_monitor_set(&trainer->monitor, ended->before);
}

/* Call when the device has finished all enqueued work, or after work other than training. */
static void synced(cleat_trainer *trainer) {
    cleat_deadline_synced(&trainer->deadline, &trainer->clock);
}

static void show_progress(cleat_trainer *trainer, double loss) {
    char text[160];
    double epoch = (double)trainer->state.step / (double)trainer->schedule.steps_per_epoch;
    snprintf(text, sizeof text, "epoch %.2f/%lld  loss %.4f", epoch, (long long)trainer->schedule.epochs, loss);
    cleat_progress_update(&trainer->run.progress, trainer->state.step, text, cleat_seconds(), false);
}

/* --- results of past steps ------------------------------------------------------------------------------------ */

/* Number of values in a row of the ring: loss terms, loss, gradient norm, and in f16 the loss scale. */
static int ring_width(const cleat_trainer *trainer) {
    return cleat_model_terms(trainer->engine.model) + (cleat_session_has_loss_scale(trainer->engine.session) ? 3 : 2);
}

/* Whether the step changed nothing because its gradient overflowed f16; the next step then has a smaller
 * loss scale. A loss scale of 1 cannot be reduced, and the gradient is as bad as it would be in f32. */
static bool is_skipped(float loss, float norm, float loss_scale) {
    return isfinite(loss) && !isfinite(norm) && loss_scale > 1;
}

/* Describes the effect on the parameters: the update of a step whose norm is not finite is skipped, but
 * later steps were already enqueued when its results were read. */
static void format_parameter_state(const cleat_step_stats *bad, char *text, size_t size) {
    const long long later = bad->updates;
    if (isfinite(bad->norm))
        snprintf(text, size, "The parameters were updated by that step and by %lld steps after it", later);
    else if (later > 0)
        snprintf(text, size, "That step did not update the parameters, but %lld steps after it did", later);
    else
        snprintf(text, size, "The parameters are as before that step");
}

/* Writes one row of the ring to the log. A value that is not finite ends the run, except in a skipped
 * step. */
static cleat_status log_step(cleat_trainer *trainer, const cleat_step_stats *results, const float *row,
                             cleat_error *error) {
    const int64_t step = results->step;
    int n_terms = cleat_model_terms(trainer->engine.model);
    bool scaled = cleat_session_has_loss_scale(trainer->engine.session);
    cleat_metrics metrics = {0};
    float loss = row[n_terms], norm = row[n_terms + 1], loss_scale = scaled ? row[n_terms + 2] : 1.0f;
    cleat_metrics_add(&metrics, "loss", loss);
    for (int i = 0; i < n_terms; ++i) cleat_metrics_add(&metrics, cleat_model_term(trainer->engine.model, i), row[i]);
    cleat_metrics_add(&metrics, "grad_norm", norm);
    if (scaled) cleat_metrics_add(&metrics, "loss_scale", loss_scale);
    cleat_metrics_add(&metrics, "learning_rate", cleat_schedule_rate(&trainer->schedule, step));
    cleat_status status = cleat_metrics_log_write(trainer->run.log, "train", step / trainer->schedule.steps_per_epoch,
                                                  step + 1, metrics.items, metrics.count, error);
    if (status) return status;
    if (is_skipped(loss, norm, loss_scale)) {
        ++trainer->state.skipped_steps;
        cleat_log(CLEAT_LOG_DEBUG,
                  "step %lld: the gradient overflows f16 at a loss scale of %g; the next step uses half the loss scale",
                  (long long)step + 1, (double)loss_scale);
        return CLEAT_OK;
    }
    if (!isfinite(loss) || !isfinite(norm)) {
        const char *first = "the gradient";
        for (int i = n_terms; i-- > 0;)
            if (!isfinite(row[i])) first = cleat_model_term(trainer->engine.model, i);
        char parameters[160];
        format_parameter_state(results, parameters, sizeof parameters);
        return cleat_fail(
            error, CLEAT_ERR_NAN,
            "step %lld: %s is not finite (loss %g, gradient norm %g). %s; a smaller train.learning_rate or "
            "train.max_grad_norm, or a longer warm-up, may help%s",
            (long long)step + 1, first, (double)loss, (double)norm, parameters,
            scaled ? ", or train.precision = bf16 (f16 overflows above 65504)" : "");
    }
    return CLEAT_OK;
}

/* Input of the anomaly detector for a step; `ring` holds the results of all steps so far. */
static cleat_step_stats step_stats_of(const cleat_trainer *trainer, const float *ring, int64_t step) {
    int n_terms = cleat_model_terms(trainer->engine.model), row = ring_width(trainer);
    const float *own = ring + step % CLEAT_RING * row;
    cleat_step_stats results = {.step = step, .loss = own[n_terms], .norm = own[n_terms + 1]};
    if (cleat_session_has_loss_scale(trainer->engine.session)) results.loss_scale = own[n_terms + 2];
    for (int64_t later = step + 1; later < trainer->state.step; ++later)
        results.updates += isfinite(ring[later % CLEAT_RING * row + n_terms + 1]);
    return results;
}

/* Logs a step; a step that is not finite is diagnosed while its global batch is available. */
static cleat_status process_step(cleat_trainer *trainer, const float *ring, int64_t step, cleat_error *error) {
    int row = ring_width(trainer);
    cleat_step_stats results = step_stats_of(trainer, ring, step);
    cleat_status status = log_step(trainer, &results, ring + step % CLEAT_RING * row, error);
    if (status && status != CLEAT_ERR_NAN) return status;
    cleat_status found = cleat_detect_anomaly(&trainer->anomaly, &results, !status ? error : NULL);
    return status ? status : found;
}

/* Reads the ring, which waits for the device, and logs the steps since the last call. */
static cleat_status log_pending_steps(cleat_trainer *trainer, cleat_error *error) {
    int loss = cleat_model_terms(trainer->engine.model), row = ring_width(trainer);
    float ring[CLEAT_RING * CLEAT_MAX_METRICS];
    if (trainer->ring_read == trainer->state.step) return CLEAT_OK;
    const phase reading = begin(trainer, CLEAT_DOING_READ);
    cleat_status status =
        cleat_exec_read_unchecked(trainer->engine.session->exec, 0, trainer->engine.session->work->ring, ring, error);
    if (!status) synced(trainer);
    for (; !status && trainer->ring_read < trainer->state.step; ++trainer->ring_read) {
        status = process_step(trainer, ring, trainer->ring_read, error);
        show_progress(trainer, ring[trainer->ring_read % CLEAT_RING * row + loss]);
    }
    synced(trainer); /* excludes the time of a diagnosis */
    cleat_run_monitor_show_hints(&trainer->monitor, &trainer->run);
    end(trainer, &reading);
    return status;
}

/* --- one optimizer step --------------------------------------------------------------------------------------- */

/* Runs the last micro-batch of a step: the update, which follows at once, sends the commands of both to the
 * device. Ranks exchange gradients meanwhile. */
static cleat_status run_last(cleat_trainer *trainer, const cleat_work_graph *graph, const cleat_fed_batch *fed,
                             cleat_error *error) {
    cleat_status status = cleat_feed_upload(trainer->engine.feed, graph, fed, error);
    if (status) return status;
    if (!trainer->parallel.ranks) return cleat_exec_enqueue(trainer->engine.session->exec, graph->index, error);
    return cleat_data_parallel_run_last(&trainer->parallel, trainer->engine.session, fed->micro_batch->bucket, error);
}

/* Runs forward and backward of the next micro-batch; gradients accumulate on the device. */
static cleat_status run_micro_batch(cleat_trainer *trainer, const cleat_global_batch *global_batch, bool is_last,
                                    cleat_error *error) {
    cleat_fed_batch fed;
    const phase waiting = begin(trainer, CLEAT_DOING_LOADER);
    cleat_status status = cleat_feed_next(trainer->engine.feed, &fed, error);
    end(trainer, &waiting);
    if (status) return status;
    cleat_run_monitor_micro_batch(&trainer->monitor, fed.micro_batch->bucket);
    const phase enqueueing = begin(trainer, CLEAT_DOING_ENQUEUE);
    const cleat_work_graph *graph = &trainer->engine.session->work->train[fed.micro_batch->bucket];
    cleat_dropout_key key = {.seed = trainer->state.seed, .step = trainer->state.step, .first = fed.micro_batch->first};
    cleat_session_prepare(trainer->engine.session, graph, fed.bytes, &fed.host, global_batch, &key);
    cleat_data_parallel_note(&trainer->parallel, trainer->engine.session, fed.micro_batch->bucket, fed.bytes);
    status = cleat_program_check_batch(trainer->program_check, trainer->engine.feed, graph, &fed, error);
    if (status)
        ; /* the batch is released below */
    else if (trainer->settings.profile->run.check_finite)
        status = cleat_check_micro_batch(&trainer->anomaly, graph, &fed, error);
    else if (is_last)
        status = run_last(trainer, graph, &fed, error);
    else
        status = cleat_feed_run(trainer->engine.feed, graph, &fed, error);
    end(trainer, &enqueueing);
    cleat_feed_release(trainer->engine.feed, &fed);
    return status;
}

static cleat_status check_update(cleat_trainer *trainer, cleat_staging *staging, cleat_error *error) {
    const size_t update = trainer->engine.session->work->update.index;
    cleat_status status = CLEAT_OK;
    while (!status && cleat_program_check_is_due(trainer->program_check, update)) {
        status = cleat_exec_upload(trainer->engine.session->exec, update, staging, error);
        if (!status) status = cleat_program_check_run(trainer->program_check, update, error);
    }
    return status;
}

/* Clips the gradient, runs AdamW, and records the results in the ring; the gradient is zero afterwards.
 * `norm`: of the gradient that several ranks have summed. */
static cleat_status run_update(cleat_trainer *trainer, float norm, cleat_error *error) {
    cleat_session *session = trainer->engine.session;
    cleat_staging *staging = trainer->engine.updates[trainer->state.step % CLEAT_UPDATE_STAGINGS];
    cleat_status status = cleat_staging_wait(staging, error);
    if (status) return status;
    cleat_session_prepare_update(session, cleat_staging_data(staging),
                                 cleat_schedule_rate(&trainer->schedule, trainer->state.step), trainer->state.step);
    if (trainer->parallel.ranks) cleat_session_prepare_norm(session, cleat_staging_data(staging), norm);
    status = check_update(trainer, staging, error);
    if (!status) status = cleat_exec_upload(session->exec, session->work->update.index, staging, error);
    return status ? status : cleat_exec_run(session->exec, session->work->update.index, error);
}

static int64_t own_samples(const cleat_trainer *trainer, const cleat_global_batch *global_batch) {
    int64_t own = 0;
    for (size_t i = 0; i < global_batch->micro_batches; ++i)
        own += cleat_batches_get(trainer->data.pass, global_batch->first + i)->count;
    return own;
}

/* Runs one optimizer step. The step counts only once its update is enqueued: a global batch that fails
 * half-way leaves the training state unchanged, except for buffers, which every micro-batch updates.
 * Half-updated buffers must not be saved. A step whose norm is not finite also updates the buffers, but
 * not the parameters. */
static cleat_status step_global_batch(cleat_trainer *trainer, const cleat_global_batch *global_batch,
                                      cleat_error *error) {
    cleat_status status = CLEAT_OK;
    float norm = 0;
    cleat_session *session = trainer->engine.session;
    if (cleat_session_buffers(session) > 0) trainer->engine.is_savable = false;
    cleat_data_parallel_begin(&trainer->parallel);
    for (size_t i = 0; i < global_batch->micro_batches && !status; ++i)
        status = run_micro_batch(trainer, global_batch, i + 1 == global_batch->micro_batches, error);
    if (trainer->parallel.ranks)
        status = cleat_data_parallel_exchange(&trainer->parallel, session, own_samples(trainer, global_batch),
                                              global_batch->samples, status, &norm, error);
    if (!status && trainer->settings.profile->run.check_finite) status = cleat_check_gradient(&trainer->anomaly, error);
    if (status) return status;
    trainer->engine.is_savable = false; /* if this fails, the parameters may or may not have changed */
    const phase updating = begin(trainer, CLEAT_DOING_UPDATE);
    status = run_update(trainer, norm, error);
    end(trainer, &updating);
    if (status) return status;
    ++trainer->state.step;
    cleat_run_monitor_step(&trainer->monitor, &trainer->engine, trainer->state.step, global_batch->samples);
    ++trainer->state.position;
    trainer->engine.is_savable = true;
    return cleat_data_parallel_end(&trainer->parallel, session, trainer->state.step, error);
}

/* While steps are measured individually, the host waits for each of them, but not while they are profiled:
 * the steps of a profile follow one another as in the rest of the run. */
static cleat_status measure_step(cleat_trainer *trainer, const cleat_global_batch *global_batch, cleat_error *error) {
    const bool is_first = trainer->run.report->seconds_first_step == 0;
    cleat_deadline *deadline = &trainer->deadline;
    cleat_deadline_queued(deadline, cleat_deadline_work(deadline, trainer->data.pass, global_batch));
    if (!is_first && cleat_budget_is_measured(&deadline->budget, false)) return CLEAT_OK;
    if (!is_first && cleat_tracer_wants_flow(trainer->tracing.tracer)) return CLEAT_OK;
    cleat_status status = cleat_exec_finish(trainer->engine.session->exec, error);
    if (status) return status;
    synced(trainer);
    if (!is_first) return CLEAT_OK;
    if (trainer->run.options->began) trainer->run.options->began(trainer->run.options->user);
    status = cleat_startup_done(&trainer->clock, &trainer->run, trainer->engine.session, &trainer->state, error);
    if (!status) status = cleat_trainer_measure_later(trainer, error);
    synced(trainer);
    return status;
}

/* The time in which a profile is written belongs to no step. */
static cleat_status end_profiled_step(cleat_trainer *trainer, cleat_error *error) {
    const int64_t written = cleat_tracer_written(trainer->tracing.tracer);
    cleat_status status = cleat_run_tracer_end_step(&trainer->tracing, &trainer->run, error);
    if (cleat_tracer_written(trainer->tracing.tracer) == written) return status;
    char text[96];
    snprintf(text, sizeof text, "wrote the trace of the steps up to %lld", (long long)trainer->state.step);
    cleat_run_monitor_event(&trainer->monitor, "profile", "written", text);
    synced(trainer);
    return status;
}

static cleat_status run_global_batch(cleat_trainer *trainer, const cleat_global_batch *global_batch,
                                     cleat_error *error) {
    cleat_status status = cleat_run_tracer_begin_step(&trainer->tracing, trainer->data.pass, global_batch, error);
    if (!status) status = step_global_batch(trainer, global_batch, error);
    if (status == CLEAT_ERR_NAN) log_pending_steps(trainer, NULL); /* logs the steps before */
    if (!status) status = measure_step(trainer, global_batch, error);
    int64_t pending = trainer->state.step - trainer->ring_read;
    if (!status && (pending >= trainer->settings.profile->run.log_every_steps || pending == CLEAT_RING))
        status = log_pending_steps(trainer, error);
    return status ? status : end_profiled_step(trainer, error);
}

/* --- checkpoints ---------------------------------------------------------------------------------------------- */

static cleat_status save(cleat_trainer *trainer, bool best, cleat_error *error) {
    cleat_train_state *state = &trainer->state;
    cleat_budget *budget = &trainer->deadline.budget;
    cleat_run_clock *clock = &trainer->clock;
    double started = cleat_seconds();
    if (!cleat_folder_exists(trainer->run.folder)) /* not created again, without its other files */
        return cleat_fail(error, CLEAT_ERR_IO, "%s: the folder of the run was removed while it trained",
                          trainer->run.folder);
    cleat_status status = cleat_checkpointing_collect(&trainer->engine, state, error);
    if (!status) status = cleat_metrics_log_sync(trainer->run.log, error);
    if (status) return status;
    state->max_length = cleat_run_settings_cut(&trainer->settings);
    state->metrics_records = cleat_metrics_log_records(trainer->run.log);
    state->time_used = cleat_run_clock_used(clock) + cleat_budget_checkpoint_seconds(budget);
    const cleat_run_settings *settings = &trainer->settings;
    status = cleat_checkpointing_save(trainer->run.folder, &trainer->engine, state,
                                      settings->chosen ? settings->chosen : settings->given, trainer->data.dataset,
                                      best, error);
    clock->last_checkpoint = cleat_seconds();
    cleat_event_stats_add(&budget->checkpoint, clock->last_checkpoint - started);
    cleat_feed_exclude(trainer->engine.feed, clock->last_checkpoint - started);
    synced(trainer);
    return status;
}

cleat_status cleat_trainer_save(cleat_trainer *trainer, bool best, cleat_error *error) {
    if (!cleat_trainer_leads(trainer) && !cleat_ranks_are_broken(trainer->parallel.ranks)) return CLEAT_OK;
    const phase saving = begin(trainer, CLEAT_DOING_CHECKPOINT);
    const double started = cleat_seconds();
    cleat_status status = save(trainer, best, error);
    end(trainer, &saving);
    if (status) return status;
    char text[96];
    snprintf(text, sizeof text, "epoch %lld, step %lld, written in %.2f s", (long long)trainer->state.epoch,
             (long long)trainer->state.step, cleat_seconds() - started);
    cleat_run_monitor_event(&trainer->monitor, "checkpoint", best ? "best" : "last", text);
    return status;
}

/* A checkpoint within an epoch: its steps are logged first, which fails if one of them was not finite. */
cleat_status cleat_trainer_save_within_epoch(cleat_trainer *trainer, cleat_error *error) {
    cleat_status status = log_pending_steps(trainer, error);
    return status ? status : cleat_trainer_save(trainer, false, error);
}

static bool checkpoint_is_due(const cleat_trainer *trainer) {
    int64_t minutes = trainer->settings.profile->run.checkpoint_every_minutes;
    return minutes > 0 && cleat_seconds() - trainer->clock.last_checkpoint >= 60.0 * (double)minutes;
}

/* Saves, and returns the reason for stopping; the run can be resumed. */
static cleat_status save_and_stop(cleat_trainer *trainer, cleat_status why, cleat_error *error) {
    const bool has_trained = trainer->state.step > trainer->run.progress.first_step;
    cleat_status status = cleat_trainer_save_within_epoch(trainer, error);
    if (status) return status;
    return cleat_fail(error, why, "%s at step %lld; continue from the checkpoint in %s with --resume%s",
                      cleat_status_text(why), (long long)trainer->state.step, trainer->run.folder,
                      why == CLEAT_ERR_TIME_UP ? cleat_deadline_advice(&trainer->deadline, has_trained) : "");
}

/* --- an epoch ------------------------------------------------------------------------------------------------- */

static bool due(int64_t epoch, int64_t every, int64_t last) {
    return epoch >= last || (every > 0 && epoch % every == 0);
}

static bool evaluation_is_due(const cleat_trainer *trainer, int64_t epoch) {
    return trainer->data.val_count > 0 &&
           due(epoch, trainer->settings.profile->run.evaluate_every_epochs, trainer->schedule.epochs);
}

/* Joint decisions of the ranks: a stop request to any of them applies to all; times are those of rank 0's
 * clock. */
enum { ASKED_STOP, ASKED_SAVE, ASKED_PLAN };

/* Stops before a step that could exceed the time budget. */
static cleat_status stop_before_deadline(cleat_trainer *trainer, const cleat_global_batch *global_batch,
                                         cleat_error *error) {
    bool last = trainer->state.position + 1 == trainer->schedule.steps_per_epoch, near = false;
    bool evaluation = last && evaluation_is_due(trainer, trainer->state.epoch + 1);
    cleat_step_work step = cleat_deadline_work(&trainer->deadline, trainer->data.pass, global_batch);
    cleat_status status =
        cleat_deadline_is_near(&trainer->deadline, &trainer->clock, step, evaluation, &trainer->state, &near, error);
    int64_t asked[CLEAT_RANKS_ASKED] = {[ASKED_STOP] = near && cleat_trainer_leads(trainer)};
    status = cleat_ranks_agree_on(trainer->parallel.ranks, status, asked, error);
    if (status || !asked[ASKED_STOP]) return status;
    status = cleat_data_parallel_expect_long_work(&trainer->parallel, error);
    return status ? status : save_and_stop(trainer, CLEAT_ERR_TIME_UP, error);
}

/* Plans the run once enough steps were measured. With a budget, a checkpoint is written first to measure
 * its time, because the budget must include one. */
static cleat_status plan(cleat_trainer *trainer, cleat_error *error) {
    const cleat_budget *budget = &trainer->deadline.budget;
    cleat_status status = CLEAT_OK;
    if (cleat_budget_limit(budget) > 0 && budget->checkpoint.count == 0)
        status = cleat_trainer_save_within_epoch(trainer, error);
    else
        status = log_pending_steps(trainer, error);
    if (status) return status;
    const int64_t before = trainer->schedule.total_steps;
    status = cleat_deadline_plan(&trainer->deadline, &trainer->clock, &trainer->schedule, &trainer->state,
                                 &trainer->run, error);
    if (status || trainer->schedule.total_steps == before) return status;
    cleat_run_monitor_schedule(&trainer->monitor, &trainer->schedule, before);
    return CLEAT_OK;
}

/* The other ranks take over the schedule that rank 0 has planned. */
static cleat_status plan_together(cleat_trainer *trainer, cleat_error *error) {
    cleat_ranks *ranks = trainer->parallel.ranks;
    cleat_status status = cleat_trainer_leads(trainer) ? plan(trainer, error) : log_pending_steps(trainer, error);
    if (!ranks) return status;
    int64_t epochs = trainer->schedule.epochs;
    status = cleat_ranks_agree(ranks, status, error);
    if (!status) status = cleat_ranks_broadcast(ranks, &epochs, sizeof epochs, error);
    if (!status && !cleat_trainer_leads(trainer)) cleat_schedule_set_epochs(&trainer->schedule, epochs);
    trainer->deadline.planned = true;
    trainer->state.epochs = epochs;
    return status;
}

static bool plan_is_due(const cleat_trainer *trainer, bool epoch_end) {
    return cleat_trainer_leads(trainer) && !trainer->deadline.planned &&
           cleat_budget_is_measured(&trainer->deadline.budget, epoch_end);
}

/* Micro-batches, plan and kernels depend on the shares of the ranks: for new shares the run is saved and
 * opened again (cleat_train_with_callback). The global batches stay the same. */
static cleat_status balance(cleat_trainer *trainer, cleat_error *error) {
    bool changed = false;
    const size_t ranks = (size_t)cleat_ranks_count(trainer->parallel.ranks);
    cleat_status status = cleat_data_parallel_balance(
        &trainer->parallel, cleat_profile_effective_batch(trainer->settings.profile), &changed, error);
    if (status || !changed) return status;
    status = cleat_data_parallel_expect_long_work(&trainer->parallel, error);
    if (status) return status;
    if (!trainer->measured_shares) trainer->measured_shares = cleat_alloc(ranks, sizeof *trainer->measured_shares);
    if (!trainer->measured_shares) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for shares");
    memcpy(trainer->measured_shares, trainer->parallel.shares, ranks * sizeof *trainer->measured_shares);
    status = cleat_trainer_save_within_epoch(trainer, error);
    if (status) return status;
    ++trainer->share_changes;
    trainer->opens_again = true;
    return cleat_fail(error, CLEAT_ERR_INTERRUPTED, "the ranks redistribute the work");
}

/* Work that may be due after a step. */
static cleat_status after_step(cleat_trainer *trainer, cleat_error *error) {
    int64_t asked[CLEAT_RANKS_ASKED] = {[ASKED_STOP] = cleat_trainer_must_stop(trainer),
                                        [ASKED_SAVE] = cleat_trainer_leads(trainer) && checkpoint_is_due(trainer),
                                        [ASKED_PLAN] = plan_is_due(trainer, false)};
    cleat_status status = cleat_ranks_agree_on(trainer->parallel.ranks, CLEAT_OK, asked, error);
    if (!status && (asked[ASKED_STOP] || asked[ASKED_SAVE] || asked[ASKED_PLAN]))
        status = cleat_data_parallel_expect_long_work(&trainer->parallel, error);
    if (!status && asked[ASKED_PLAN]) status = plan_together(trainer, error);
    if (!status && asked[ASKED_SAVE]) status = cleat_trainer_save_within_epoch(trainer, error);
    if (!status && asked[ASKED_STOP]) return save_and_stop(trainer, CLEAT_ERR_INTERRUPTED, error);
    return status ? status : balance(trainer, error);
}

static cleat_status run_steps(cleat_trainer *trainer, cleat_error *error) {
    cleat_train_state *state = &trainer->state;
    cleat_global_batch global_batch;
    const phase starting = begin(trainer, CLEAT_DOING_EPOCH);
    cleat_status status = cleat_engine_start_at(&trainer->engine, &trainer->data, state->position, error);
    end(trainer, &starting);
    trainer->engine.is_savable = !status;
    while (!status && cleat_batches_global_batch(trainer->data.pass, (size_t)state->position, &global_batch)) {
        status = stop_before_deadline(trainer, &global_batch, error);
        if (!status) status = run_global_batch(trainer, &global_batch, error);
        if (!status) status = after_step(trainer, error);
    }
    return status ? status : log_pending_steps(trainer, error);
}

static cleat_status run_epoch(cleat_trainer *trainer, cleat_error *error) {
    cleat_engine *engine = &trainer->engine;
    cleat_train_state *state = &trainer->state;
    cleat_status status =
        cleat_run_data_begin_epoch(&trainer->data, engine->session->work, state->seed, state->epoch, error);
    if (!status) status = run_steps(trainer, error);
    cleat_feed_stop(engine->feed);
    cleat_run_data_end_epoch(&trainer->data);
    if (status) return status;
    engine->is_savable = false;
    state->position = 0;
    ++state->epoch;
    return cleat_average_add(&engine->average, engine->session, error);
}

/* --- evaluation ----------------------------------------------------------------------------------------------- */

static bool is_better(const cleat_trainer *trainer, double metric) {
    if (!isfinite(metric)) return false;
    if (!trainer->state.has_best) return true;
    return cleat_profile_metric_ascends(trainer->settings.profile) ? metric > trainer->state.best_metric
                                                                   : metric < trainer->state.best_metric;
}

static cleat_status log_evaluation(cleat_trainer *trainer, const cleat_metrics *results, cleat_error *error) {
    char text[512];
    int used = snprintf(text, sizeof text, "epoch %lld:", (long long)trainer->state.epoch);
    for (size_t i = 0; i < results->count; ++i)
        if (used < (int)sizeof text)
            used += snprintf(text + used, sizeof text - (size_t)used, "  %s %.4g", results->items[i].name,
                             results->items[i].value);
    cleat_clean_text(text); /* figures may have names of the data's classes */
    cleat_run_print(&trainer->run, text);
    return cleat_metrics_log_write(trainer->run.log, "eval", trainer->state.epoch, trainer->state.step, results->items,
                                   results->count, error);
}

/* A run does not end because its examples cannot be written. */
static void write_examples(cleat_trainer *trainer) {
    const cleat_run_examples_place place = {.metric = trainer->settings.profile->run.metric,
                                            .split = cleat_split_name(CLEAT_SPLIT_VAL),
                                            .step = trainer->state.step,
                                            .epoch = trainer->state.epoch};
    char path[CLEAT_PATH + 32];
    cleat_error error = {0};
    snprintf(path, sizeof path, "%s/examples.json", trainer->run.folder);
    if (cleat_run_examples_write(&trainer->examples, trainer->engine.model, path, &place, &error))
        cleat_log(CLEAT_LOG_WARNING, "the examples of the evaluation are not written: %s", error.text);
}

static cleat_status evaluate(cleat_trainer *trainer, bool *best, cleat_error *error) {
    const cleat_evaluation_setup evaluation = {.session = trainer->engine.session,
                                               .feed = trainer->engine.feed,
                                               .dataset = trainer->data.dataset,
                                               .parallel = &trainer->parallel,
                                               .check = trainer->program_check,
                                               .fits = true,
                                               .stop = trainer->parallel.ranks ? NULL : trainer->run.options->stop};
    char bad[CLEAT_OUTPUT_CHECK_TEXT] = "";
    const double started = cleat_seconds();
    cleat_metrics results;
    cleat_status status = cleat_average_apply(&trainer->engine.average, trainer->engine.session, error);
    if (!status)
        status = cleat_evaluate_samples(&evaluation, trainer->data.val, trainer->data.val_count, &trainer->examples,
                                        &results, bad, error);
    if (!status) status = cleat_average_restore(&trainer->engine.average, trainer->engine.session, error);
    if (!status) status = log_evaluation(trainer, &results, error);
    if (status) return status;
    if (bad[0] && cleat_trainer_leads(trainer))
        cleat_log(CLEAT_LOG_WARNING, "evaluation after step %lld: %s", (long long)trainer->state.step, bad);
    status = cleat_ranks_agree(trainer->parallel.ranks, CLEAT_OK, error);
    if (!status) status = cleat_ranks_broadcast(trainer->parallel.ranks, &results, sizeof results, error);
    if (status) return status;
    double metric = cleat_metrics_get(&results, trainer->settings.profile->run.metric);
    *best = is_better(trainer, metric);
    if (*best && cleat_trainer_leads(trainer)) write_examples(trainer);
    cleat_event_stats_add(&trainer->deadline.budget.evaluation, cleat_seconds() - started);
    synced(trainer);
    trainer->run.report->last = results;
    if (!*best) {
        ++trainer->state.stale_evaluations;
        return CLEAT_OK;
    }
    trainer->state.has_best = true;
    trainer->state.best_metric = metric;
    trainer->state.best_step = trainer->state.step;
    trainer->state.stale_evaluations = 0;
    trainer->run.report->best = results;
    return CLEAT_OK;
}

static bool patience_is_out(const cleat_trainer *trainer) {
    int64_t patience = trainer->settings.profile->run.early_stopping_patience;
    return patience > 0 && trainer->state.stale_evaluations >= patience;
}

bool cleat_trainer_has_ended(const cleat_trainer *trainer) {
    return (trainer->state.epoch >= trainer->schedule.epochs && !trainer->state.evaluation_is_due) ||
           patience_is_out(trainer);
}

/* The epoch that ends this process: options->until_epoch, or the last one of the schedule. */
static int64_t last_epoch(const cleat_trainer *trainer) {
    const int64_t until = trainer->run.options->until_epoch, all = trainer->schedule.epochs;
    return until > 0 && until < all ? until : all;
}

/* A stop request does not wait for the end of an evaluation, which may take minutes: it is repeated on resume. */
static cleat_status stop_within_evaluation(cleat_trainer *trainer, cleat_error *error) {
    cleat_status status = cleat_average_restore(&trainer->engine.average, trainer->engine.session, error);
    trainer->state.evaluation_is_due = true;
    return status ? status : save_and_stop(trainer, CLEAT_ERR_INTERRUPTED, error);
}

/* The end of an epoch: evaluation, checkpoint, early stopping. */
static cleat_status close_epoch(cleat_trainer *trainer, bool *early, cleat_error *error) {
    const cleat_profile *profile = trainer->settings.profile;
    bool best = false;
    cleat_status status = cleat_data_parallel_expect_long_work(&trainer->parallel, error);
    if (status) return status;
    const phase evaluating = begin(trainer, CLEAT_DOING_EVALUATE);
    if (evaluation_is_due(trainer, trainer->state.epoch)) status = evaluate(trainer, &best, error);
    end(trainer, &evaluating);
    if (status == CLEAT_ERR_INTERRUPTED) return stop_within_evaluation(trainer, error);
    if (status) return status;
    trainer->state.evaluation_is_due = false;
    *early = patience_is_out(trainer);
    if (best || *early || due(trainer->state.epoch, profile->run.checkpoint_every_epochs, last_epoch(trainer)))
        status = cleat_trainer_save(trainer, best, error);
    return status;
}

static cleat_status run(cleat_trainer *trainer, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    bool early = patience_is_out(trainer); /* true if a run is resumed that had stopped early */
    if (!cleat_trainer_has_ended(trainer))
        status = cleat_deadline_check_resumed(&trainer->deadline, &trainer->clock, &trainer->state, trainer->run.folder,
                                              error);
    if (!status && !early && trainer->state.evaluation_is_due) status = close_epoch(trainer, &early, error);
    while (!status && !early && trainer->state.epoch < last_epoch(trainer)) {
        status = run_epoch(trainer, error);
        if (!status) status = close_epoch(trainer, &early, error);
        int64_t asked[CLEAT_RANKS_ASKED] = {[ASKED_PLAN] = plan_is_due(trainer, true)};
        if (trainer->state.epoch >= last_epoch(trainer)) break;
        status = cleat_ranks_agree_on(trainer->parallel.ranks, status, asked, error);
        if (!status && asked[ASKED_PLAN]) status = plan_together(trainer, error);
    }
    trainer->run.report->stopped_early = early;
    if (!status && !early && trainer->state.epoch < trainer->schedule.epochs)
        return cleat_fail(error, CLEAT_ERR_TIME_UP, "epoch %lld is done (--until-epoch); --resume continues in %s",
                          (long long)trainer->state.epoch, trainer->run.folder);
    return status;
}

static void fill_report(cleat_trainer *trainer) {
    cleat_train_report *report = trainer->run.report;
    snprintf(report->folder, sizeof report->folder, "%s", trainer->run.folder);
    report->epochs = trainer->state.epoch;
    report->steps = trainer->state.step;
    report->skipped_steps = trainer->state.skipped_steps;
    report->best_step = trainer->state.best_step;
    report->best_metric = trainer->state.has_best ? trainer->state.best_metric : NAN;
    report->baseline = trainer->examples.baseline;
    report->seconds = cleat_seconds() - trainer->clock.started;
    if (!trainer->engine.session) return;
    cleat_deadline_report(&trainer->deadline, &trainer->clock, &trainer->schedule, trainer->state.step, report);
    const cleat_plan *plan = trainer->engine.session->work->plan;
    report->memory = (cleat_memory_stats){.planned = cleat_plan_bytes(plan),
                                          .allocated = cleat_device_allocated(trainer->engine.device),
                                          .peak = cleat_device_peak(trainer->engine.device)};
    for (int c = 0; c < CLEAT_CATEGORIES; ++c)
        report->memory.category_bytes[c] = cleat_plan_category_bytes(plan, (cleat_category)c);
}

/* Ctrl-C is sent to every process of the terminal. A driver whose compiler runs as such a process then
 * fails to build, so a build failure during an interrupt is reported as the interrupt. */
static cleat_status translate_failure(cleat_trainer *trainer, cleat_status status, cleat_error *error) {
    if (status != CLEAT_ERR_BUILD || !cleat_trainer_must_stop(trainer)) return status;
    if (trainer->engine.is_savable && trainer->state.step > 0)
        return save_and_stop(trainer, CLEAT_ERR_INTERRUPTED, error);
    const cleat_error why = *error;
    return cleat_fail(error, CLEAT_ERR_INTERRUPTED, "interrupted before a checkpoint could be saved (%s)", why.text);
}

/* Another rank is lost: the first rank of the machine that still runs saves the completed steps. The
 * update of the step in progress has not run, so parameters and moments are those of the last completed
 * one. */
static void save_after_loss(cleat_trainer *trainer) {
    cleat_error error = {0};
    cleat_data_parallel *parallel = &trainer->parallel;
    const bool has_steps = trainer->run.log && trainer->state.step > 0 && parallel->buffers;
    cleat_checkpoint_name last;
    if (!has_steps || !cleat_ranks_saves_the_run(parallel->ranks)) return;
    if (cleat_checkpoint_pointer(trainer->run.folder, "last", &last) && last.step >= trainer->state.step) return;
    cleat_status status = CLEAT_OK;
    if (!trainer->engine.is_savable && cleat_session_buffers(trainer->engine.session) > 0)
        status = cleat_data_parallel_restore_buffers(parallel, trainer->engine.session, &error);
    if (!status) status = cleat_trainer_save_within_epoch(trainer, &error);
    if (status)
        cleat_log(CLEAT_LOG_ERROR, "the steps since the last checkpoint are lost: %s", error.text);
    else
        cleat_log(CLEAT_LOG_ERROR, "a rank is lost; step %lld is saved in %s by rank %d",
                  (long long)trainer->state.step, trainer->run.folder, cleat_ranks_rank(parallel->ranks));
}

static cleat_status open_and_run(cleat_trainer *trainer, cleat_error *error) {
    cleat_ranks *ranks = trainer->run.options->ranks;
    cleat_status status = cleat_trainer_open(trainer, error);
    if (status) return translate_failure(trainer, cleat_ranks_agree(ranks, status, error), error);
    status = cleat_ranks_agree(ranks, run(trainer, error), error);
    if (status == CLEAT_ERR_RANK_LOST) save_after_loss(trainer);
    cleat_data_parallel_log(&trainer->parallel);
    if (status == CLEAT_ERR_INTERRUPTED && cleat_run_tracer_ends_run(&trainer->tracing, &trainer->run))
        status = CLEAT_OK;
    if (status) status = translate_failure(trainer, status, error);
    cleat_anomaly_end(&trainer->anomaly);
    cleat_progress_end(&trainer->run.progress);
    return status;
}

/* Saves the completed steps as a checkpoint. If that fails, or if the device did not hold the training
 * state at the time of the failure, the run continues from the last checkpoint in the folder and repeats
 * these steps. */
static void save_steps(cleat_trainer *trainer) {
    cleat_error error = {0};
    bool keep = trainer->run.log && trainer->engine.is_savable && trainer->state.step > 0;
    if (keep && cleat_trainer_save_within_epoch(trainer, &error))
        cleat_log(CLEAT_LOG_WARNING, "the steps since the last checkpoint must be repeated: %s", error.text);
}

/* With several ranks, the one that was short of memory uses smaller micro-batches; sequences are not
 * shortened, because all ranks would have to. */
static bool find_fallback(cleat_trainer *trainer, int64_t planned, cleat_error *error) {
    cleat_ranks *ranks = trainer->run.options->ranks;
    if (!ranks) return cleat_oom_fallback(&trainer->memory, &trainer->settings, trainer->run.folder, planned, error);
    const bool is_own = cleat_ranks_try_again(ranks) == cleat_ranks_rank(ranks);
    bool found = !is_own;
    if (is_own && planned > 0)
        found = cleat_oom_fallback(&trainer->memory, &trainer->settings, trainer->run.folder, planned, error);
    return cleat_ranks_agree(ranks, found ? CLEAT_OK : error->status, error) == CLEAT_OK;
}

/* After an out-of-memory error: closes the trainer so that it can be opened again with less memory.
 * Returns false if no fallback is left. */
static bool fall_back(cleat_trainer *trainer, cleat_error *error) {
    const cleat_session *session = trainer->engine.session;
    int64_t planned = session ? cleat_plan_bytes(session->work->plan) : 0;
    if (planned > 0) save_steps(trainer);
    if (!find_fallback(trainer, planned, error)) return false;
    cleat_run_monitor_event(&trainer->monitor, "memory", "smaller_plan", error->text);
    cleat_trainer_close(trainer);
    trainer->run.resume = cleat_checkpoint_exists(trainer->run.folder);
    return true;
}

/* All ranks ended because balance() changed the shares, none with an error. */
static bool divide_anew(cleat_trainer *trainer, cleat_status status) {
    const bool again = trainer->opens_again && status == CLEAT_ERR_INTERRUPTED;
    trainer->opens_again = false;
    if (!again) return false;
    cleat_ranks_try_again(trainer->run.options->ranks);
    cleat_trainer_close(trainer);
    trainer->run.resume = true;
    return true;
}

static bool is_short_of_memory(cleat_status status) {
    return status == CLEAT_ERR_DEVICE_MEMORY || status == CLEAT_ERR_FIT;
}

cleat_status cleat_train_with_callback(const cleat_profile *profile, const cleat_train_options *options,
                                       void (*opened)(void *user, cleat_device *device), void *user,
                                       cleat_train_report *report, cleat_error *error) {
    const cleat_train_options defaults = {0};
    cleat_error failure = {0};
    cleat_status status;
    cleat_trainer *trainer = cleat_alloc(1, sizeof *trainer);
    *report = (cleat_train_report){0};
    if (!trainer) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a training run");
    *trainer = (cleat_trainer){
        .run = {.options = options ? options : &defaults, .report = report, .resume = options && options->resume},
        .settings = {.given = profile, .profile = profile},
        .clock.started = cleat_seconds(),
        .opened = opened,
        .opened_user = user};
    trainer->clock.lap = trainer->clock.started;
    do {
        failure = (cleat_error){0};
        status = open_and_run(trainer, &failure);
    } while ((is_short_of_memory(status) && fall_back(trainer, &failure)) || divide_anew(trainer, status));
    if (status && error) *error = failure;
    fill_report(trainer);
    cleat_run_monitor_end(&trainer->monitor, trainer->state.step, status, status ? failure.text : "", report->seconds);
    cleat_trainer_close(trainer);
    if (status && report->steps == 0 && cleat_trainer_leads(trainer)) cleat_run_discard_folder(&trainer->run);
    cleat_run_settings_free(&trainer->settings);
    cleat_free(trainer->measured_shares);
    cleat_free(trainer);
    return status;
}

cleat_status cleat_train(const cleat_profile *profile, const cleat_train_options *options, cleat_train_report *report,
                         cleat_error *error) {
    return cleat_train_with_callback(profile, options, NULL, NULL, report, error);
}
