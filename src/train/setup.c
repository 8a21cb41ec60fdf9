/* Opening a training run: data, device, session, schedule, log; fresh or resumed. */
#include "core/files.h"
#include "core/memory.h"
#include "train/trainer.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static cleat_status choose_folder(cleat_trainer *trainer, cleat_error *error) {
    const char *wanted = trainer->options->out ? trainer->options->out : trainer->profile->run.out;
    if (*wanted && strcmp(wanted, "auto") != 0) {
        snprintf(trainer->folder, sizeof trainer->folder, "%s", wanted);
    } else {
        if (trainer->options->resume)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "--resume needs the run's folder: give --out or run.out");
        char stamp[32];
        time_t now = time(NULL);
        struct tm local;
        strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&now, &local));
        snprintf(trainer->folder, sizeof trainer->folder, "runs/%s-%s", cleat_model_name(trainer->model), stamp);
    }
    if (!trainer->options->resume && cleat_checkpoint_exists(trainer->folder))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "%s holds a run already: --resume goes on with it, another --out starts a new one",
                          trainer->folder);
    return cleat_folder_make(trainer->folder, error);
}

static cleat_status open_data(cleat_trainer *trainer, cleat_error *error) {
    const cleat_profile *profile = trainer->profile;
    cleat_status status =
        cleat_model_open_data(trainer->model, profile->data.path, CLEAT_MODE_TRAIN, &trainer->dataset, error);
    if (status == CLEAT_OK)
        status =
            cleat_dataset_samples(trainer->dataset, CLEAT_SPLIT_TRAIN, &trainer->train, &trainer->train_count, error);
    if (status == CLEAT_OK)
        status = cleat_dataset_samples(trainer->dataset, CLEAT_SPLIT_VAL, &trainer->val, &trainer->val_count, error);
    if (status != CLEAT_OK) return status;
    if (profile->data.limit > 0 && (size_t)profile->data.limit < trainer->train_count)
        trainer->train_count = (size_t)profile->data.limit;
    if (trainer->train_count == 0)
        return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "%s: no sample in split 'train'", profile->data.path);
    cleat_log(CLEAT_LOG_INFO, "data %s: %zu samples to train on, %zu to validate", profile->data.path,
              trainer->train_count, trainer->val_count);
    return CLEAT_OK;
}

static cleat_status open_session(cleat_trainer *trainer, cleat_error *error) {
    const cleat_profile *profile = trainer->profile;
    cleat_lengths lengths;
    int64_t batch;
    cleat_status status =
        cleat_lengths_choose(profile, trainer->dataset, trainer->train, trainer->train_count, &lengths, error);
    if (status == CLEAT_OK) status = cleat_device_open(profile->run.device, &trainer->device, error);
    if (status == CLEAT_OK)
        status = cleat_session_fit(trainer->device, profile, trainer->model, CLEAT_FOR_TRAINING, &lengths, &batch,
                                   &trainer->session, error);
    if (status != CLEAT_OK) return status;
    cleat_session_log_plan(trainer->session);
    int64_t effective = cleat_profile_effective_batch(profile);
    trainer->accumulation = effective / batch;
    cleat_log(CLEAT_LOG_INFO, "batch %lld x %lld micro-batches = %lld samples an optimizer step", (long long)batch,
              (long long)trainer->accumulation, (long long)effective);
    trainer->resolved = *profile;
    trainer->resolved.train.batch_size = batch;
    trainer->resolved.train.gradient_accumulation_steps = trainer->accumulation;
    trainer->resolved.train.effective_batch_size = effective;
    trainer->resolved.train.precision = CLEAT_PRECISION_F32;
    trainer->resolved.train.gradient_checkpointing = CLEAT_CHECKPOINTING_FALSE;
    trainer->resolved.data.buckets.count = (int64_t)lengths.count;
    for (size_t i = 0; i < lengths.count; ++i) trainer->resolved.data.buckets.values[i] = lengths.lengths[i];
    int64_t longest = lengths.lengths[lengths.count - 1]; /* no sample is longer: resolved.ini is to load again */
    if (trainer->resolved.data.max_length > longest) trainer->resolved.data.max_length = longest;
    return CLEAT_OK;
}

static cleat_status open_update_stagings(cleat_trainer *trainer, cleat_error *error) {
    cleat_session *session = trainer->session;
    int64_t bytes = cleat_exec_input_bytes(session->exec, session->update.index);
    for (int i = 0; i < CLEAT_UPDATE_STAGINGS; ++i) {
        cleat_status status = cleat_staging_create(session->exec, bytes, true, &trainer->updates[i], error);
        if (status != CLEAT_OK) return status;
    }
    return CLEAT_OK;
}

/* Every epoch has the same number of batches: how many samples fall into each bucket does not depend on their
 * order. */
static cleat_status count_steps(cleat_trainer *trainer, cleat_error *error) {
    cleat_batches *batches = NULL;
    cleat_status status =
        cleat_batches_create(trainer->dataset, trainer->train, trainer->train_count, trainer->session->buckets,
                             trainer->session->n_buckets, NULL, &batches, error);
    if (status != CLEAT_OK) return status;
    trainer->batches = (int64_t)cleat_batches_count(batches);
    trainer->steps_per_epoch = (trainer->batches + trainer->accumulation - 1) / trainer->accumulation;
    cleat_batches_destroy(batches);
    return cleat_schedule_create(trainer->profile, trainer->steps_per_epoch, &trainer->schedule, error);
}

static cleat_status start_or_resume(cleat_trainer *trainer, cleat_error *error) {
    if (trainer->options->resume && cleat_checkpoint_exists(trainer->folder))
        return cleat_trainer_resume(trainer, error);
    if (trainer->options->resume)
        cleat_log(CLEAT_LOG_WARNING, "%s holds no checkpoint yet: starting from the beginning", trainer->folder);
    trainer->state = (cleat_train_state){.seed = (uint64_t)trainer->profile->run.seed};
    cleat_profile_hash(&trainer->resolved, trainer->state.profile_hash);
    return cleat_session_initialise(trainer->session, trainer->state.seed, error);
}

static cleat_status open_log(cleat_trainer *trainer, cleat_error *error) {
    char path[CLEAT_PATH + 32];
    snprintf(path, sizeof path, "%s/resolved.ini", trainer->folder);
    cleat_status status = cleat_profile_write(&trainer->resolved, path, error);
    if (status != CLEAT_OK) return status;
    snprintf(path, sizeof path, "%s/metrics.jsonl", trainer->folder);
    int64_t keep = trainer->state.step > 0 ? trainer->state.metrics_records : -1;
    return cleat_metrics_log_open(path, keep, &trainer->log, error);
}

cleat_status cleat_trainer_open(cleat_trainer *trainer, cleat_error *error) {
    cleat_status status = cleat_model_create(trainer->profile, &trainer->model, error);
    if (status == CLEAT_OK) status = choose_folder(trainer, error);
    if (status == CLEAT_OK) status = open_data(trainer, error);
    if (status == CLEAT_OK) status = open_session(trainer, error);
    if (status == CLEAT_OK) status = cleat_feed_open(trainer->session, trainer->dataset, &trainer->feed, error);
    if (status == CLEAT_OK) status = open_update_stagings(trainer, error);
    if (status == CLEAT_OK) status = count_steps(trainer, error);
    if (status == CLEAT_OK) trainer->resolved.loader.num_workers = cleat_feed_workers(trainer->feed);
    if (status == CLEAT_OK)
        status = cleat_average_open(&trainer->average, trainer->session, trainer->profile->train.average_decay, error);
    if (status == CLEAT_OK) status = start_or_resume(trainer, error);
    if (status == CLEAT_OK) status = open_log(trainer, error);
    if (status != CLEAT_OK) return status;
    trainer->last_checkpoint = cleat_seconds();
    cleat_progress_start(&trainer->progress, trainer->options->print, trainer->options->user,
                         trainer->options->terminal, trainer->options->width, trainer->state.step,
                         trainer->steps_per_epoch * trainer->profile->train.epochs, cleat_seconds());
    return CLEAT_OK;
}

void cleat_trainer_close(cleat_trainer *trainer) {
    cleat_metrics_log_close(trainer->log);
    cleat_average_close(&trainer->average);
    cleat_feed_close(trainer->feed);
    for (int i = 0; i < CLEAT_UPDATE_STAGINGS; ++i) cleat_staging_destroy(trainer->updates[i]);
    cleat_session_destroy(trainer->session);
    cleat_samples_free(trainer->train);
    cleat_samples_free(trainer->val);
    cleat_dataset_destroy(trainer->dataset);
    cleat_device_close(trainer->device);
    cleat_model_destroy(trainer->model);
}
