/* Opening a training run, fresh or resumed: data, device, session, schedule, log. */
#include "cleat/doctor.h"
#include "cleat/verify.h"
#include "core/files.h"
#include "core/memory.h"
#include "models/model.h"
#include "tensorboard/tensorboard.h"
#include "train/checkpointing.h"
#include "train/init_weights.h"
#include "train/same_run.h"
#include "train/startup_timing.h"
#include "train/trainer.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* A run whose sequences were shortened continues with the shorter length. */
static cleat_status open_checkpoint(cleat_trainer *trainer, cleat_error *error) {
    const char *folder = trainer->run.folder;
    if (!trainer->run.resume || !cleat_checkpoint_exists(folder)) return CLEAT_OK;
    cleat_status status = cleat_checkpoint_open_last(folder, &trainer->checkpoint, error);
    if (status) return status;
    int64_t length = trainer->checkpoint->state.max_length;
    if (length > 0 && length < trainer->settings.profile->data->max_length)
        return cleat_run_settings_shorten(&trainer->settings, length, error);
    return CLEAT_OK;
}

/* Only a warning, because many profiles set these keys for data that have a validation split. */
static void warn_no_validation(const cleat_trainer *trainer) {
    const bool is_set = trainer->settings.profile->run.early_stopping_patience > 0 ||
                        strcmp(trainer->settings.profile->run.metric, "loss") != 0;
    if (is_set && trainer->data.val_count == 0 && !trainer->clock.is_resumed)
        cleat_log(CLEAT_LOG_WARNING,
                  "no validation samples: nothing is evaluated, and run.early_stopping_patience and run.metric have no "
                  "effect; if the data define no split, data.val_fraction holds samples out: increase it for few "
                  "samples");
}

static cleat_status open_data(cleat_trainer *trainer, cleat_error *error) {
    const char *fitted = trainer->checkpoint ? trainer->checkpoint->folder : NULL;
    cleat_status status = cleat_run_tracer_open_data(&trainer->tracing, &trainer->run, &trainer->data,
                                                     trainer->engine.model, trainer->settings.profile, fitted, error);
    if (!status) status = cleat_run_settings_choose(&trainer->settings, trainer->engine.model, error);
    if (!status && !trainer->run.options->trace_only)
        status = cleat_data_fingerprint_take(trainer->data.dataset, trainer->settings.profile->data->path,
                                             &trainer->fingerprint, error);
    if (!status) warn_no_validation(trainer);
    return status;
}

_Static_assert((int)CLEAT_STATE_BUCKETS >= (int)CLEAT_BUCKETS && (int)CLEAT_PROFILE_LIST >= (int)CLEAT_STATE_BUCKETS,
               "a checkpoint and a list of a profile hold a micro-batch size of each bucket");

/* Micro-batch sizes of the run's earlier processes: the same sizes give bit-identical results. Returns
 * false if there was no earlier process, or if memory was short. */
static bool find_earlier_micro_batches(const cleat_trainer *trainer, cleat_int_list *earlier) {
    if (!trainer->checkpoint || trainer->memory.limit) return false;
    const cleat_train_state *then = &trainer->checkpoint->state;
    if (then->n_buckets == 0)
        cleat_log(CLEAT_LOG_WARNING,
                  "%s does not contain the micro-batch sizes of the earlier run, so bit-identical results are not "
                  "guaranteed",
                  trainer->checkpoint->folder);
    earlier->count = then->n_buckets;
    for (int64_t b = 0; b < then->n_buckets; ++b) earlier->values[b] = then->micro_batch_sizes[b];
    return then->n_buckets > 0;
}

static void warn_other_micro_batches(const cleat_workload *work, const cleat_int_list *earlier) {
    if (earlier->count != (int64_t)work->n_buckets) return;
    for (size_t b = 0; b < work->n_buckets; ++b)
        if (work->buckets[b].micro_batch_size != earlier->values[b])
            cleat_log(CLEAT_LOG_WARNING,
                      "samples up to length %lld: micro-batches of %lld, but %lld earlier in this run; results are not "
                      "bit-identical to those of an uninterrupted run",
                      (long long)work->buckets[b].length, (long long)work->buckets[b].micro_batch_size,
                      (long long)earlier->values[b]);
}

static void warn_cut_warmup(const cleat_schedule *schedule) {
    if (schedule->warmup_steps >= schedule->warmup_wanted) return;
    cleat_log(
        CLEAT_LOG_WARNING,
        "the warm-up of %lld optimizer steps is not shorter than the run of %lld (%lld epochs of %lld steps): it is "
        "cut to a tenth of the run, %lld steps; set train.warmup_ratio instead of train.warmup_steps or "
        "warmup_epochs to choose another share",
        (long long)schedule->warmup_wanted, (long long)schedule->total_steps, (long long)schedule->epochs,
        (long long)schedule->steps_per_epoch, (long long)schedule->warmup_steps);
}

/* Rejects a sample that is too long for every bucket, and an impossible schedule, before anything is
 * planned. */
static cleat_status count_steps(cleat_trainer *trainer, cleat_error *error) {
    const cleat_profile *profile = trainer->settings.profile;
    cleat_status status = cleat_run_data_count(&trainer->data, trainer->engine.model, profile, error);
    if (status) return status;
    int64_t steps = cleat_lengths_steps(&trainer->data.lengths, cleat_profile_effective_batch(profile));
    status = cleat_schedule_create(profile, steps, &trainer->schedule, error);
    if (!status) warn_cut_warmup(&trainer->schedule);
    return status;
}

/* Chooses micro-batches that fit the device, and creates a session for them. */
static cleat_status fit(cleat_trainer *trainer, cleat_error *error) {
    cleat_int_list earlier = {0};
    cleat_fit_request request =
        cleat_fit_request_for(trainer->settings.profile, trainer->engine.model, CLEAT_FOR_TRAINING,
                              &trainer->data.lengths, cleat_device_get_facts(trainer->engine.device), NULL);
    const bool leads = cleat_trainer_leads(trainer) && !trainer->measured_shares; /* the sizes are those of rank 0 */
    const bool known = leads && find_earlier_micro_batches(trainer, &earlier);
    if (known && !request.exactly) request.batches = &earlier; /* the profile's own sizes are only compared with them */
    request.part =
        cleat_data_parallel_part(&trainer->parallel, cleat_profile_effective_batch(trainer->settings.profile));
    request.host_norm = trainer->parallel.ranks != NULL;
    if (trainer->memory.limit > 0 && trainer->memory.limit < request.limit) {
        request.limit = trainer->memory.limit;
        request.exactly = false;
    }
    cleat_status status = cleat_session_fit(trainer->engine.device, &request, &trainer->engine.session, error);
    if (status) return status;
    warn_other_micro_batches(trainer->engine.session->work, &earlier);
    cleat_warn_no_tf32(trainer->settings.profile->train.precision, request.facts);
    trainer->run.report->storage = trainer->engine.session->work->storage;
    cleat_session_log_plan(trainer->engine.session);
    return CLEAT_OK;
}

static cleat_status bind(cleat_trainer *trainer, cleat_error *error) {
    cleat_engine *engine = &trainer->engine;
    double decay = trainer->settings.profile->train.average_decay;
    cleat_status status = cleat_engine_bind(engine, trainer->data.dataset, decay, error);
    if (status) return status;
    trainer->anomaly.engine = engine;
    trainer->anomaly.data = &trainer->data;
    trainer->anomaly.state = &trainer->state;
    return cleat_run_settings_resolve(&trainer->settings, engine->session->work, cleat_feed_workers(engine->feed),
                                      error);
}

/* Shortened samples move to other buckets, which changes the order of the epoch. */
static void warn_other_order(const cleat_trainer *trainer) {
    const cleat_train_state *then = &trainer->checkpoint->state;
    const cleat_run_settings *settings = &trainer->settings;
    if (!settings->cut || then->position == 0 || then->max_length == settings->profile->data->max_length) return;
    cleat_log(CLEAT_LOG_WARNING,
              "the new maximum length changes the sample order of epoch %lld: in the rest of the epoch some samples "
              "are repeated and others are missed",
              (long long)then->epoch + 1);
}

/* `settings`: whether the settings are those of the checkpoint. Some of them follow from the data
 * (data.buckets = auto), so a difference of the data is reported with them. */
static cleat_status check_resumed_data(const cleat_trainer *trainer, cleat_status settings, cleat_error *error) {
    const cleat_train_state *then = &trainer->checkpoint->state;
    char differences[512];
    const bool cut_otherwise = then->max_length != cleat_run_settings_cut(&trainer->settings);
    if (!cleat_data_fingerprint_differs(&then->data, &trainer->fingerprint, cut_otherwise, differences,
                                        sizeof differences))
        return settings;
    if (settings) return cleat_fail_in(error, settings, "other data (%s)", differences);
    return cleat_check_other_data(trainer->checkpoint, trainer->settings.profile, differences, error);
}

cleat_status cleat_trainer_resume(cleat_trainer *trainer, cleat_error *error) {
    cleat_train_state *state = &trainer->state;
    bool replan = false;
    cleat_status status = cleat_check_same_run(trainer->checkpoint, &trainer->settings, &trainer->schedule,
                                               &trainer->run, &replan, error);
    status = check_resumed_data(trainer, status, error);
    if (!status) status = cleat_checkpointing_resume(trainer->checkpoint, &trainer->engine, state, error);
    if (!status) {
        if (replan) state->epochs = 0;
        state->data = trainer->fingerprint;
        warn_other_order(trainer);
        memcpy(state->profile_hash, trainer->settings.hash, sizeof state->profile_hash);
        cleat_log(CLEAT_LOG_INFO, "resumed from %s: epoch %lld, step %lld", trainer->checkpoint->folder,
                  (long long)state->epoch, (long long)state->step);
    }
    cleat_checkpoint_close(trainer->checkpoint);
    trainer->checkpoint = NULL;
    return status;
}

static cleat_status start(cleat_trainer *trainer, cleat_error *error) {
    trainer->state =
        (cleat_train_state){.seed = (uint64_t)trainer->settings.profile->run.seed, .data = trainer->fingerprint};
    memcpy(trainer->state.profile_hash, trainer->settings.hash, sizeof trainer->state.profile_hash);
    if (!*trainer->settings.profile->init)
        return cleat_session_initialise(trainer->engine.session, trainer->state.seed, error);
    cleat_string_free(&trainer->init_table);
    return cleat_load_init(trainer->engine.session, trainer->data.dataset, trainer->state.seed, &trainer->init_table,
                           error);
}

static cleat_status open_check(cleat_trainer *trainer, cleat_error *error) {
    return cleat_program_check_create(trainer->engine.session, &trainer->program_check, error);
}

static cleat_status restore(cleat_trainer *trainer, cleat_error *error) {
    const cleat_workload *work = trainer->engine.session->work;
    cleat_train_state *state = &trainer->state;
    cleat_status status = trainer->checkpoint ? cleat_trainer_resume(trainer, error) : start(trainer, error);
    if (status) return status;
    trainer->ring_read = state->step;
    state->n_buckets = (int64_t)work->n_buckets;
    for (size_t b = 0; b < work->n_buckets; ++b) state->micro_batch_sizes[b] = work->buckets[b].micro_batch_size;
    return CLEAT_OK;
}

static cleat_status open_deadline(cleat_trainer *trainer, cleat_error *error) {
    cleat_run_clock *clock = &trainer->clock;
    (void)error;
    if (!clock->is_resumed) clock->resumed = trainer->state.time_used;
    clock->is_resumed = true;
    if (trainer->state.epochs > 0) cleat_schedule_set_epochs(&trainer->schedule, trainer->state.epochs);
    cleat_deadline_open(&trainer->deadline, trainer->settings.profile, &trainer->engine, &trainer->data,
                        &trainer->schedule, clock);
    return CLEAT_OK;
}

/* --- the TensorBoard file (run.tensorboard) ---------------------------------------------------------------------- */

/* A file that can no longer be written is not the end of the run: metrics.jsonl has the same values, and a file can be
 * made of it later. */
static void warn_board(cleat_status status, const cleat_error *why) {
    if (!status) return;
    cleat_log(CLEAT_LOG_WARNING,
              "%s; the run continues without its TensorBoard file, which `run.tensorboard` asked for", why->text);
}

/* Adds a line of metrics.jsonl. */
static void add_board_metrics(cleat_run *run, const char *line) {
    cleat_error why = {0};
    if (run->board) warn_board(cleat_tensorboard_metrics_line(run->board, cleat_wall_seconds(), line, &why), &why);
}

/* Adds a line of system.jsonl. `run`: the cleat_run. May be called from any thread, but not during open and close. */
static void add_board_system(void *run, const char *line) {
    cleat_tensorboard *board = ((cleat_run *)run)->board;
    cleat_error why = {0};
    if (board) warn_board(cleat_tensorboard_system_line(board, line, &why), &why);
}

static cleat_status write_board_profile(cleat_run *run, int64_t step, cleat_error *error) {
    char path[CLEAT_PATH + 32], *text;
    size_t size;
    cleat_status status = cleat_path_join(run->folder, "resolved.ini", path, sizeof path, error);
    if (!status) status = cleat_file_read(path, &text, &size, error);
    if (status) return status;
    status = cleat_tensorboard_verbatim(run->board, cleat_wall_seconds(), step, "profile", text, error);
    cleat_free(text);
    return status;
}

/* The file begins a session at `step`, the steps done so far: readers drop the steps that will be repeated.
 * Records of the folder's files for `step` itself, or for all steps if there is no earlier event file, are
 * written again. run->log must be open. */
static cleat_status create_board(cleat_run *run, const cleat_profile *resolved, int64_t step, cleat_error *error) {
    if (!resolved->run.tensorboard) return CLEAT_OK;
    const bool continues = cleat_tensorboard_exists(run->folder);
    const int64_t first_step = continues ? step : 0;
    cleat_status status = cleat_tensorboard_create(run->folder, &run->board, error);
    if (!status) status = cleat_tensorboard_start(run->board, cleat_wall_seconds(), first_step, error);
    if (!status) status = write_board_profile(run, step, error);
    if (!status) status = cleat_tensorboard_replay(run->board, run->folder, first_step, step, NULL, error);
    return status;
}

/* --- logs --------------------------------------------------------------------------------------------------------- */

/* Passes a line of metrics.jsonl on to the TensorBoard file and to the caller of the run. */
static void pass_record(void *user, const char *line) {
    cleat_run *run = user;
    add_board_metrics(run, line);
    if (run->options->record) run->options->record(run->options->user, line);
}

/* A resumed run keeps the table of the weights that it started from. */
static cleat_status keep_init_table(const char *path, cleat_string *table, cleat_error *error) {
    char *text, *rest = NULL;
    size_t size;
    if (table->size || !cleat_file_exists(path)) return CLEAT_OK;
    cleat_status status = cleat_file_read(path, &text, &size, error);
    if (status) return status;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (strncmp(line, CLEAT_INIT_LINE, strlen(CLEAT_INIT_LINE)) == 0) cleat_string_add(table, "%s\n", line);
    cleat_free(text);
    return CLEAT_OK;
}

static cleat_status write_resolved(cleat_trainer *trainer, const char *path, cleat_error *error) {
    cleat_string text = {0};
    char *dump = NULL;
    cleat_status status = keep_init_table(path, &trainer->init_table, error);
    if (!status) status = cleat_profile_dump(trainer->settings.resolved, &dump, error);
    if (status) return status;
    const size_t first = strcspn(dump, "\n") + 1;
    cleat_string_add_bytes(&text, dump, first);
    if (trainer->init_table.size) cleat_string_add(&text, "%s", trainer->init_table.data);
    cleat_string_add(&text, "%s", dump + first);
    cleat_free(dump);
    return cleat_file_write_text(path, &text, error);
}

/* A run that has completed or stopped early keeps the resolved.ini of its training when it is opened
 * again. */
static cleat_status open_log(cleat_trainer *trainer, cleat_error *error) {
    cleat_run *run = &trainer->run;
    char path[CLEAT_PATH + 32];
    const bool leads = cleat_trainer_leads(trainer);
    snprintf(path, sizeof path, "%s/resolved.ini", run->folder);
    cleat_status status = CLEAT_OK;
    if (!leads) return cleat_metrics_log_open(NULL, trainer->state.metrics_records, &run->log, error);
    if (!cleat_trainer_has_ended(trainer) || !cleat_file_exists(path)) status = write_resolved(trainer, path, error);
    if (status) return status;
    snprintf(path, sizeof path, "%s/metrics.jsonl", run->folder);
    int64_t keep = trainer->state.step > 0 ? trainer->state.metrics_records : -1;
    status = cleat_metrics_log_open(path, keep, &run->log, error);
    if (status) return status;
    cleat_metrics_log_observe(run->log, pass_record, run);
    trainer->clock.last_checkpoint = cleat_seconds();
    cleat_progress_start(&run->progress, run->options->print, run->options->user, run->options->terminal,
                         run->options->width, trainer->state.step, trainer->schedule.total_steps, cleat_seconds());
    return CLEAT_OK;
}

static cleat_status open_monitor(cleat_trainer *trainer, cleat_error *error) {
    if (trainer->measures_later) return CLEAT_OK;
    const cleat_run_parts parts = {.run = &trainer->run,
                                   .settings = &trainer->settings,
                                   .data = &trainer->data,
                                   .engine = &trainer->engine,
                                   .schedule = &trainer->schedule,
                                   .step = trainer->state.step,
                                   .before = trainer->run.progress.first_step};
    const bool runs = cleat_trainer_leads(trainer) && !cleat_trainer_has_ended(trainer);
    return runs ? cleat_run_monitor_open(&trainer->monitor, &parts, error) : CLEAT_OK;
}

cleat_status cleat_trainer_measure_later(cleat_trainer *trainer, cleat_error *error) {
    if (!trainer->measures_later) return CLEAT_OK;
    trainer->measures_later = false;
    cleat_status status = cleat_engine_measure_apart(&trainer->engine, trainer->settings.profile, error);
    return status ? status : open_monitor(trainer, error);
}

/* A run that has ended adds nothing to its TensorBoard file. */
static cleat_status open_board(cleat_trainer *trainer, cleat_error *error) {
    if (cleat_trainer_has_ended(trainer) || !cleat_trainer_leads(trainer)) return CLEAT_OK;
    trainer->monitor.recorded = add_board_system;
    trainer->monitor.recorded_user = &trainer->run;
    return create_board(&trainer->run, trainer->settings.resolved, trainer->state.step, error);
}

static cleat_status check_profile(cleat_trainer *trainer, cleat_error *error) {
    cleat_status status = cleat_profile_check_training(trainer->settings.profile, error);
    return status ? status : cleat_run_tracer_check(&trainer->tracing, trainer->settings.profile, error);
}

/* Without a cache every start repeats the self-check, the measurements and the tokenization of texts. */
static void warn_no_cache(void) {
    char folder[CLEAT_PATH];
    cleat_error why = {0};
    if (cleat_cache_folder(folder, sizeof folder, &why))
        cleat_log(CLEAT_LOG_WARNING, "nothing is cached, so each start of a run takes longer: %s", why.text);
}

/* A resumed run uses the columns of its checkpoint. */
static cleat_status check_data(cleat_trainer *trainer, cleat_error *error) {
    const cleat_profile *profile = trainer->settings.profile;
    cleat_model *model = NULL;
    if (trainer->run.resume || cleat_run_tracer_makes_data(&trainer->tracing, &trainer->run, profile)) return CLEAT_OK;
    cleat_status status = cleat_profile_create_model(profile, &model, error);
    if (!status) status = cleat_model_check_data(model, profile->data->path, error);
    cleat_model_destroy(model);
    return status;
}

static cleat_status open_device(cleat_trainer *trainer, cleat_error *error) {
    warn_no_cache();
    const cleat_train_options *options = trainer->run.options;
    cleat_status status =
        cleat_rank_open_device(options->ranks, trainer->settings.profile->run.device, &trainer->engine.device, error);
    if (!status && !options->ranks) cleat_device_compile_with(trainer->engine.device, options->compile_helpers);
    return status;
}

static cleat_status open_parallel(cleat_trainer *trainer, cleat_error *error) {
    const cleat_engine *engine = &trainer->engine;
    cleat_data_parallel *parallel = &trainer->parallel;
    cleat_status status =
        cleat_data_parallel_open(parallel, trainer->run.options->ranks, trainer->settings.profile,
                                 trainer->measured_shares, engine->has_rates ? engine->rates.flops : 0, error);
    if (status || !parallel->ranks) return status;
    trainer->data.part = cleat_data_parallel_cut;
    trainer->data.part_user = parallel;
    trainer->data.effective_batch = cleat_profile_effective_batch(trainer->settings.profile);
    parallel->stop = trainer->run.options->stop;
    if (trainer->share_changes > 1) parallel->refines = false; /* opening again takes longer than it would save */
    return CLEAT_OK;
}

/* Ranks that read other data, or other profiles, would train different networks. */
static cleat_status check_same_data(const cleat_trainer *trainer, cleat_error *error) {
    char text[256], hash[33];
    const cleat_run_data *data = &trainer->data;
    if (!trainer->parallel.ranks) return CLEAT_OK;
    snprintf(text, sizeof text, "%s %s %zu %zu %lld %lld", cleat_version(), trainer->settings.hash, data->train_count,
             data->val_count, (long long)trainer->schedule.total_steps, (long long)trainer->state.step);
    cleat_hash_text(text, strlen(text), hash);
    return cleat_ranks_compare(trainer->parallel.ranks,
                               "the version of cleat, the profile, or the number of samples in the data", hash, error);
}

static cleat_status bind_parallel(cleat_trainer *trainer, cleat_error *error) {
    cleat_session *session = trainer->engine.session;
    cleat_status status = check_same_data(trainer, error);
    if (!status) status = cleat_data_parallel_bind(&trainer->parallel, session, error);
    status = cleat_ranks_agree(trainer->parallel.ranks, status, error);
    return status ? status : cleat_data_parallel_check_start(&trainer->parallel, session, error);
}

static cleat_status measure_device(cleat_trainer *trainer, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    if (!trainer->run.options->ranks)
        status =
            cleat_engine_measures_later(&trainer->engine, trainer->settings.profile, &trainer->measures_later, error);
    if (!status && !trainer->measures_later)
        status = cleat_engine_measure(&trainer->engine, trainer->settings.profile, error);
    if (!status && trainer->opened) trainer->opened(trainer->opened_user, trainer->engine.device);
    return status;
}

/* Rank 0 chooses the folder for all. */
static cleat_status open_folder(cleat_trainer *trainer, cleat_error *error) {
    cleat_run *run = &trainer->run;
    cleat_ranks *ranks = run->options->ranks;
    cleat_status status = CLEAT_OK;
    if (cleat_trainer_leads(trainer)) status = cleat_run_open_folder(run, trainer->settings.profile, error);
    status = cleat_ranks_agree(ranks, status, error);
    if (!status) status = cleat_ranks_broadcast(ranks, run->folder, sizeof run->folder, error);
    return status ? status : cleat_ranks_broadcast(ranks, &run->resume, sizeof run->resume, error);
}

static cleat_status create_model(cleat_trainer *trainer, cleat_error *error) {
    return cleat_profile_create_model(trainer->settings.profile, &trainer->engine.model, error);
}

static cleat_status open_tracer(cleat_trainer *trainer, cleat_error *error) {
    if (cleat_trainer_has_ended(trainer) || !cleat_trainer_leads(trainer)) return CLEAT_OK;
    return cleat_run_tracer_open(&trainer->tracing, &trainer->engine, &trainer->run, trainer->state.step, error);
}

/* The stages of opening a run. Quick checks (settings, names of devices, files and columns) precede the
 * check of the device, which takes seconds, and that precedes reading data, which may take hours; nothing
 * is written before the device has passed its self-check. `part`: the part of the startup time to which
 * the stage counts. */
static const struct stage {
    cleat_status (*open)(cleat_trainer *trainer, cleat_error *error);
    size_t part; /* offset of a double in cleat_startup_stats */
} stages[] = {
    {check_profile, offsetof(cleat_startup_stats, setup)},   /* the settings are consistent */
    {open_device, offsetof(cleat_startup_stats, device)},    /* the device to train on */
    {check_data, offsetof(cleat_startup_stats, data)},       /* its files exist and have the columns of the settings */
    {measure_device, offsetof(cleat_startup_stats, device)}, /* its speed */
    {open_folder, offsetof(cleat_startup_stats, setup)},     /* created and locked */
    {open_parallel, offsetof(cleat_startup_stats, setup)},   /* shares of the ranks */
    {open_checkpoint, offsetof(cleat_startup_stats, setup)}, /* the checkpoint to resume, if any */
    {create_model, offsetof(cleat_startup_stats, setup)},    /* the family and its settings */
    {open_data, offsetof(cleat_startup_stats, data)},        /* samples of the splits */
    {count_steps, offsetof(cleat_startup_stats, plan)},      /* buckets, steps, schedule */
    {fit, offsetof(cleat_startup_stats, plan)},              /* micro-batches, memory, kernels */
    {bind, offsetof(cleat_startup_stats, setup)},            /* loader, staging, average */
    {open_check, offsetof(cleat_startup_stats, setup)},      /* check of the run's programs */
    {restore, offsetof(cleat_startup_stats, setup)},         /* parameters and training state */
    {bind_parallel, offsetof(cleat_startup_stats, setup)},   /* exchange of gradients between ranks */
    {open_deadline, offsetof(cleat_startup_stats, setup)},   /* time budget and number of epochs */
    {open_log, offsetof(cleat_startup_stats, setup)},        /* resolved.ini, metrics, progress */
    {open_board, offsetof(cleat_startup_stats, setup)},      /* TensorBoard file, before its first records */
    {open_monitor, offsetof(cleat_startup_stats, setup)},    /* system.jsonl */
    {open_tracer, offsetof(cleat_startup_stats, setup)},     /* the tracer, if run.trace asks for it */
};

/* A stop request before the first step: nothing has been trained that a checkpoint could keep. */
static cleat_status check_stop(const cleat_trainer *trainer, cleat_error *error) {
    if (!cleat_trainer_must_stop(trainer)) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_INTERRUPTED, "interrupted before the first step of this process%s",
                      trainer->run.resume ? "; the run continues with --resume" : "; nothing was trained");
}

cleat_status cleat_trainer_open(cleat_trainer *trainer, cleat_error *error) {
    cleat_status status = check_stop(trainer, error);
    for (size_t i = 0; i < sizeof stages / sizeof *stages && !status; ++i) {
        status = stages[i].open(trainer, error);
        if (!status) status = check_stop(trainer, error);
        status = cleat_ranks_agree(trainer->run.options->ranks, status, error);
        cleat_startup_lap(&trainer->clock, trainer->run.report, trainer->engine.session,
                          (double *)((char *)&trainer->run.report->start + stages[i].part));
    }
    return status;
}

void cleat_trainer_close(cleat_trainer *trainer) {
    cleat_run_monitor_stop(&trainer->monitor); /* asks the device */
    cleat_tensorboard_close(trainer->run.board);
    trainer->run.board = NULL;
    cleat_metrics_log_close(trainer->run.log);
    trainer->run.log = NULL;
    cleat_run_tracer_stop(&trainer->tracing, &trainer->run);
    cleat_data_parallel_close(&trainer->parallel);
    cleat_program_check_destroy(trainer->program_check);
    trainer->program_check = NULL;
    cleat_engine_close(&trainer->engine);
    cleat_run_examples_free(&trainer->examples);
    cleat_run_tracer_close(&trainer->tracing);
    cleat_run_data_close(&trainer->data);
    cleat_checkpoint_close(trainer->checkpoint);
    cleat_profile_destroy(trainer->settings.resolved);
    trainer->settings.resolved = NULL;
    cleat_string_free(&trainer->init_table);
    trainer->checkpoint = NULL;
    trainer->clock.waited = 0;
    cleat_run_close_folder(&trainer->run);
}
