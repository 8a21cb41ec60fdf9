/* Opening a training run: data, device, session, schedule, log; fresh or resumed. */
#include "cleat/verify.h"
#include "core/files.h"
#include "core/memory.h"
#include "data/batches.h"
#include "train/trainer.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* A run whose sequences were cut goes on with them. */
static cleat_status open_checkpoint(cleat_trainer *trainer, cleat_error *error) {
    if (!trainer->resume || !cleat_checkpoint_exists(trainer->folder)) return CLEAT_OK;
    cleat_status status = cleat_checkpoint_open_last(trainer->folder, &trainer->checkpoint, error);
    if (status != CLEAT_OK) return status;
    int64_t length = trainer->checkpoint->state.max_length;
    if (length == 0 || length >= trainer->profile->data.max_length) return CLEAT_OK;
    cleat_profile_shorten(trainer->profile, length, &trainer->shortened);
    trainer->profile = &trainer->shortened;
    return CLEAT_OK;
}

/* Many profiles set these for data with a validation split. */
static void warn_no_validation(const cleat_trainer *trainer) {
    const bool is_set =
        trainer->profile->run.early_stopping_patience > 0 || strcmp(trainer->profile->run.metric, "loss") != 0;
    if (is_set && trainer->val_count == 0 && !trainer->resumed_once)
        cleat_log(CLEAT_LOG_WARNING,
                  "no validation samples: nothing is evaluated, and run.early_stopping_patience and run.metric have no "
                  "effect; if the data define no split, data.val_fraction holds samples out");
}

static cleat_status open_data(cleat_trainer *trainer, cleat_error *error) {
    const cleat_profile *profile = trainer->profile;
    cleat_status status =
        cleat_model_open_data(trainer->model, profile->data.path, CLEAT_MODE_TRAIN,
                              trainer->checkpoint ? trainer->checkpoint->folder : NULL, &trainer->dataset, error);
    if (status == CLEAT_OK)
        status =
            cleat_dataset_samples(trainer->dataset, CLEAT_SPLIT_TRAIN, &trainer->train, &trainer->train_count, error);
    if (status == CLEAT_OK)
        status = cleat_dataset_samples(trainer->dataset, CLEAT_SPLIT_VAL, &trainer->val, &trainer->val_count, error);
    if (status != CLEAT_OK) return status;
    if (profile->data.limit > 0 && (size_t)profile->data.limit < trainer->train_count)
        trainer->train_count = (size_t)profile->data.limit;
    if (trainer->train_count == 0)
        return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "%s: split 'train' has no samples", profile->data.path);
    cleat_log(CLEAT_LOG_INFO, "data %s: %zu training samples, %zu validation samples", profile->data.path,
              trainer->train_count, trainer->val_count);
    warn_no_validation(trainer);
    return CLEAT_OK;
}

/* Micro-batches of the run's earlier processes: the same cut gives the same bits. What the profile asks for goes before. */
static void request_earlier_micro_batches(const cleat_trainer *trainer, cleat_profile **earlier,
                                          cleat_fit_request *request) {
    char path[CLEAT_PATH + 32];
    snprintf(path, sizeof path, "%s/resolved.ini", trainer->folder);
    cleat_error error;
    if (!trainer->resume || request->exactly || trainer->limit || !cleat_file_exists(path)) return;
    if (cleat_profile_load(path, NULL, 0, earlier, &error) != CLEAT_OK) {
        cleat_log(CLEAT_LOG_WARNING,
                  "the micro-batches of the earlier run are unknown, so bit-identical results are not guaranteed: %s",
                  error.text);
        return;
    }
    cleat_int_list *batches = &(*earlier)->train.bucket_batch_sizes;
    if (batches->count == CLEAT_AUTO) *batches = (cleat_int_list){.count = 1, .values = {(*earlier)->train.batch_size}};
    request->batches = batches;
}

/* `earlier` is NULL where the earlier micro-batches are not to be had again. */
static void warn_other_micro_batches(const cleat_workload *work, const cleat_profile *earlier) {
    const cleat_int_list *batches = earlier ? &earlier->train.bucket_batch_sizes : NULL;
    if (!batches || batches->count != (int64_t)work->n_buckets) return;
    for (size_t b = 0; b < work->n_buckets; ++b)
        if (work->buckets[b].micro_batch_size != batches->values[b])
            cleat_log(CLEAT_LOG_WARNING,
                      "samples up to length %lld: micro-batches of %lld, but %lld earlier in this run; results are not "
                      "bit-identical to those of an uninterrupted run",
                      (long long)work->buckets[b].length, (long long)work->buckets[b].micro_batch_size,
                      (long long)batches->values[b]);
}

/* Samples of each bucket, and from them the optimizer steps of an epoch. A sample that is too long for every bucket, and
 * a warm-up that is longer than the run, are refused here, before anything is planned. */
static cleat_status count_steps(cleat_trainer *trainer, cleat_error *error) {
    const cleat_profile *profile = trainer->profile;
    cleat_lengths *lengths = &trainer->lengths;
    cleat_status status = cleat_lengths_choose(profile, cleat_model_fixed_length(trainer->model), trainer->dataset,
                                               trainer->train, trainer->train_count, lengths, error);
    if (!status)
        status = cleat_batches_check_lengths(trainer->dataset, trainer->train, trainer->train_count,
                                             lengths->lengths[lengths->count - 1], error);
    if (status) return status;
    trainer->steps_per_epoch = cleat_lengths_steps(lengths, cleat_profile_effective_batch(profile));
    return cleat_schedule_create(profile, trainer->steps_per_epoch, &trainer->schedule, error);
}

/* The micro-batches that fit the device, and a session of them. */
static cleat_status fit(cleat_trainer *trainer, cleat_error *error) {
    cleat_profile *earlier = NULL;
    cleat_fit_request request = cleat_fit_request_for(trainer->profile, trainer->model, CLEAT_FOR_TRAINING,
                                                      &trainer->lengths, cleat_device_get_facts(trainer->device), NULL);
    request_earlier_micro_batches(trainer, &earlier, &request);
    if (trainer->limit > 0 && trainer->limit < request.limit) {
        request.limit = trainer->limit;
        request.exactly = false;
    }
    cleat_status status = cleat_session_fit(trainer->device, &request, &trainer->session, error);
    if (!status) warn_other_micro_batches(trainer->session->work, earlier);
    cleat_profile_destroy(earlier);
    if (status) return status;
    trainer->report->storage = trainer->session->work->storage;
    cleat_session_log_plan(trainer->session);
    return CLEAT_OK;
}

/* What every `auto` became: resolved.ini, which is to load again. */
static void resolve(cleat_trainer *trainer) {
    const cleat_workload *work = trainer->session->work;
    int64_t effective = cleat_profile_effective_batch(trainer->profile), most = 1;
    cleat_profile *resolved = &trainer->resolved;
    *resolved = *trainer->profile;
    resolved->data.buckets.count = resolved->train.bucket_batch_sizes.count = (int64_t)work->n_buckets;
    for (size_t i = 0; i < work->n_buckets; ++i) {
        resolved->data.buckets.values[i] = work->buckets[i].length;
        resolved->train.bucket_batch_sizes.values[i] = work->buckets[i].micro_batch_size;
        if (work->buckets[i].micro_batch_size > most) most = work->buckets[i].micro_batch_size;
    }
    resolved->train.batch_size = most;
    resolved->train.effective_batch_size = effective;
    resolved->train.gradient_accumulation_steps = (effective + most - 1) / most;
    resolved->train.precision = cleat_storage_precision(work->storage);
    resolved->train.loss_scale = cleat_profile_loss_scale(trainer->profile);
    resolved->train.gradient_checkpointing = work->recompute ? CLEAT_CHECKPOINTING_TRUE : CLEAT_CHECKPOINTING_FALSE;
    int64_t longest = work->buckets[work->n_buckets - 1].length; /* no sample is longer */
    if (resolved->data.max_length > longest) resolved->data.max_length = longest;
    if (resolved->data.min_length > longest) resolved->data.min_length = longest;
    resolved->loader.num_workers = cleat_feed_workers(trainer->feed);
}

static cleat_status open_update_stagings(cleat_trainer *trainer, cleat_error *error) {
    cleat_session *session = trainer->session;
    int64_t bytes = cleat_exec_input_bytes(session->exec, session->work->update.index);
    for (int i = 0; i < CLEAT_UPDATE_STAGINGS; ++i) {
        cleat_status status = cleat_staging_create(session->exec, bytes, true, &trainer->updates[i], error);
        if (status != CLEAT_OK) return status;
    }
    return CLEAT_OK;
}

/* Loader threads, memory for the inputs of updates, the average: what surrounds the session. */
static cleat_status bind(cleat_trainer *trainer, cleat_error *error) {
    cleat_status status = cleat_feed_open(trainer->session, trainer->dataset, &trainer->feed, error);
    if (!status) status = open_update_stagings(trainer, error);
    if (!status)
        status = cleat_average_open(&trainer->average, trainer->session, trainer->profile->train.average_decay, error);
    if (status) return status;
    resolve(trainer);
    return CLEAT_OK;
}

/* The starting parameters, or those of the checkpoint. */
static cleat_status restore(cleat_trainer *trainer, cleat_error *error) {
    if (trainer->checkpoint) return cleat_trainer_resume(trainer, error);
    if (trainer->resume)
        cleat_log(CLEAT_LOG_WARNING, "%s contains no checkpoint yet: starting from the beginning", trainer->folder);
    trainer->state = (cleat_train_state){.seed = (uint64_t)trainer->profile->run.seed};
    trainer->ring_read = 0; /* of a run that starts over: the ladder */
    cleat_profile_hash(&trainer->resolved, trainer->state.profile_hash);
    return cleat_session_initialise(trainer->session, trainer->state.seed, error);
}

static cleat_status open_deadline(cleat_trainer *trainer, cleat_error *error) {
    (void)error;
    cleat_deadline_open(trainer);
    return CLEAT_OK;
}

/* A run that has ended, in full or early, and is opened again keeps the resolved.ini of its training. */
static cleat_status open_log(cleat_trainer *trainer, cleat_error *error) {
    char path[CLEAT_PATH + 32];
    snprintf(path, sizeof path, "%s/resolved.ini", trainer->folder);
    cleat_status status = CLEAT_OK;
    if (!cleat_trainer_has_ended(trainer) || !cleat_file_exists(path))
        status = cleat_profile_write(&trainer->resolved, path, error);
    if (status != CLEAT_OK) return status;
    snprintf(path, sizeof path, "%s/metrics.jsonl", trainer->folder);
    int64_t keep = trainer->state.step > 0 ? trainer->state.metrics_records : -1;
    status = cleat_metrics_log_open(path, keep, &trainer->log, error);
    if (status) return status;
    trainer->last_checkpoint = cleat_seconds();
    cleat_progress_start(&trainer->progress, trainer->options->print, trainer->options->user,
                         trainer->options->terminal, trainer->options->width, trainer->state.step,
                         trainer->schedule.total_steps, cleat_seconds());
    return CLEAT_OK;
}

static cleat_status check_profile(cleat_trainer *trainer, cleat_error *error) {
    return cleat_profile_check_training(trainer->profile, error);
}

static cleat_status open_device(cleat_trainer *trainer, cleat_error *error) {
    return cleat_device_open(trainer->profile->run.device, &trainer->device, error);
}

static cleat_status check_device(cleat_trainer *trainer, cleat_error *error) {
    cleat_status status = cleat_self_check(trainer->device, trainer->profile, error);
    if (!status && trainer->opened) trainer->opened(trainer->opened_user, trainer->device);
    return status;
}

static cleat_status create_model(cleat_trainer *trainer, cleat_error *error) {
    return cleat_model_create(trainer->profile, &trainer->model, error);
}

/* How a run opens. What is chosen and checked in seconds comes before what is read for hours, and nothing is written
 * before the device has proved itself. `part` is the part of the start that the stage's time counts as. */
static const struct stage {
    cleat_status (*open)(cleat_trainer *trainer, cleat_error *error);
    size_t part; /* offset of a double of cleat_startup_stats */
} stages[] = {
    {check_profile, offsetof(cleat_startup_stats, setup)},             /* the settings fit each other */
    {open_device, offsetof(cleat_startup_stats, device)},              /* the card to train on */
    {check_device, offsetof(cleat_startup_stats, device)},             /* it computes rightly */
    {cleat_trainer_open_folder, offsetof(cleat_startup_stats, setup)}, /* made and locked */
    {open_checkpoint, offsetof(cleat_startup_stats, setup)},           /* what is resumed, if anything */
    {create_model, offsetof(cleat_startup_stats, setup)},              /* the family and its settings */
    {open_data, offsetof(cleat_startup_stats, data)},                  /* samples of the splits */
    {count_steps, offsetof(cleat_startup_stats, plan)},                /* buckets, steps, schedule */
    {fit, offsetof(cleat_startup_stats, plan)},                        /* micro-batches, memory, kernels */
    {bind, offsetof(cleat_startup_stats, setup)},                      /* loader, staging, average */
    {restore, offsetof(cleat_startup_stats, setup)},                   /* parameters and where training stands */
    {open_deadline, offsetof(cleat_startup_stats, setup)},             /* time budget and number of epochs */
    {open_log, offsetof(cleat_startup_stats, setup)},                  /* resolved.ini, metrics, progress */
};

cleat_status cleat_trainer_open(cleat_trainer *trainer, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < sizeof stages / sizeof *stages && !status; ++i) {
        status = stages[i].open(trainer, error);
        cleat_startup_lap(trainer, (double *)((char *)&trainer->report->start + stages[i].part));
    }
    return status;
}

void cleat_trainer_close(cleat_trainer *trainer) {
    cleat_metrics_log_close(trainer->log);
    cleat_average_close(&trainer->average);
    cleat_feed_close(trainer->feed);
    for (int i = 0; i < CLEAT_UPDATE_STAGINGS; ++i) {
        cleat_staging_destroy(trainer->updates[i]);
        trainer->updates[i] = NULL;
    }
    cleat_session_destroy(trainer->session);
    cleat_samples_free(trainer->train);
    cleat_samples_free(trainer->val);
    cleat_dataset_destroy(trainer->dataset);
    cleat_device_close(trainer->device);
    cleat_model_destroy(trainer->model);
    cleat_checkpoint_close(trainer->checkpoint);
    trainer->checkpoint = NULL;
    trainer->log = NULL;
    trainer->feed = NULL;
    trainer->session = NULL;
    trainer->waited = 0;
    trainer->train = trainer->val = NULL;
    trainer->dataset = NULL;
    trainer->device = NULL;
    trainer->model = NULL;
    cleat_trainer_close_folder(trainer);
}
