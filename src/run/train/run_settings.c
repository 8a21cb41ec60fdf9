/* The profile of a run; the only place where copies of it are made. */
#include "train/run_settings.h"
#include "models/model.h"

#include <stdio.h>
#include <string.h>

void cleat_run_settings_free(cleat_run_settings *settings) {
    cleat_profile_destroy(settings->chosen);
    cleat_profile_destroy(settings->shortened);
    cleat_profile_destroy(settings->resolved);
    settings->chosen = settings->shortened = settings->resolved = NULL;
}

cleat_status cleat_run_settings_shorten(cleat_run_settings *settings, int64_t length, cleat_error *error) {
    cleat_status status =
        settings->shortened ? CLEAT_OK : cleat_profile_clone(settings->profile, &settings->shortened, error);
    if (status) return status;
    cleat_profile_shorten(settings->shortened, length);
    settings->profile = settings->shortened;
    return CLEAT_OK;
}

cleat_status cleat_run_settings_choose(cleat_run_settings *settings, const cleat_model *model, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (const cleat_key *key = model->type->keys; key->name && !status; ++key) {
        cleat_string given = {0}, value = {0};
        cleat_value_print(key, settings->profile->data, &given);
        cleat_string_add(&value, "%s.%s=", key->section, key->name);
        cleat_value_print(key, model->settings, &value);
        const bool chosen = key->shapes || key->type == CLEAT_KEY_TEXT;
        if (chosen && given.data && strcmp(given.data, "auto") == 0 && !value.failed) {
            if (!settings->chosen) status = cleat_profile_clone(settings->profile, &settings->chosen, error);
            if (!status) status = cleat_profile_set(settings->chosen, value.data, error);
            if (!status) settings->profile = settings->chosen;
        }
        cleat_string_free(&given);
        cleat_string_free(&value);
    }
    return status;
}

int64_t cleat_run_settings_cut(const cleat_run_settings *settings) {
    return settings->profile == settings->shortened ? settings->profile->data->max_length : 0;
}

/* A maximum length that no sample reaches does not affect results: it is compared as the longest bucket. */
static void lower_to_longest(cleat_profile *profile) {
    const cleat_int_list *buckets = &profile->data->buckets;
    const int64_t longest = buckets->count > 0 ? buckets->values[buckets->count - 1] : profile->data->max_length;
    if (profile->data->max_length > longest) profile->data->max_length = longest;
}

static void hash_what_computes(cleat_profile *resolved, char hash[33]) {
    const int64_t own = resolved->data->max_length;
    lower_to_longest(resolved);
    cleat_profile_hash(resolved, hash);
    resolved->data->max_length = own;
}

cleat_status cleat_run_settings_resolve(cleat_run_settings *settings, const cleat_workload *work, int loader_threads,
                                        cleat_error *error) {
    int64_t effective = cleat_profile_effective_batch(settings->profile), most = 1;
    cleat_status status = cleat_profile_clone(settings->profile, &settings->resolved, error);
    if (status) return status;
    cleat_profile *resolved = settings->resolved;
    resolved->data->buckets.count = resolved->train.bucket_batch_sizes.count = (int64_t)work->n_buckets;
    for (size_t i = 0; i < work->n_buckets; ++i) {
        resolved->data->buckets.values[i] = work->buckets[i].length;
        resolved->train.bucket_batch_sizes.values[i] = work->buckets[i].micro_batch_size;
        if (work->buckets[i].micro_batch_size > most) most = work->buckets[i].micro_batch_size;
    }
    resolved->train.batch_size = most;
    resolved->train.effective_batch_size = effective;
    resolved->train.gradient_accumulation_steps = (effective + most - 1) / most;
    resolved->train.precision = cleat_storage_precision(work->storage);
    resolved->train.loss_scale = cleat_profile_loss_scale(settings->profile);
    resolved->train.gradient_checkpointing = work->recompute == CLEAT_RECOMPUTE_CHEAP ? CLEAT_CHECKPOINTING_SELECTIVE
                                             : work->recompute                        ? CLEAT_CHECKPOINTING_TRUE
                                                                                      : CLEAT_CHECKPOINTING_FALSE;
    if (strcmp(resolved->train.params.frozen_weights, "auto") == 0)
        snprintf(resolved->train.params.frozen_weights, CLEAT_FROZEN_TEXT, "float");
    resolved->loader.num_workers = loader_threads;
    hash_what_computes(resolved, settings->hash);
    return CLEAT_OK;
}

static void copy_rates(cleat_profile *copy, const cleat_profile *from) {
    copy->train.learning_rate = from->train.learning_rate;
    copy->train.base_batch_size = from->train.base_batch_size;
    copy->train.lr_scaling = from->train.lr_scaling;
    copy->train.warmup_epochs = from->train.warmup_epochs;
    copy->train.warmup_steps = from->train.warmup_steps;
    copy->train.warmup_ratio = from->train.warmup_ratio;
    copy->train.warmup_start_lr = from->train.warmup_start_lr;
    copy->train.schedule = from->train.schedule;
    copy->train.step_epochs = from->train.step_epochs;
    copy->train.step_gamma = from->train.step_gamma;
    copy->train.min_learning_rate = from->train.min_learning_rate;
}

cleat_status cleat_run_settings_with_schedule(const cleat_run_settings *settings, const cleat_profile *from,
                                              bool only_epochs, char hash[33], cleat_profile **made,
                                              cleat_error *error) {
    cleat_status status = cleat_profile_clone(settings->resolved, made, error);
    if (status) return status;
    cleat_profile *copy = *made;
    copy->train.epochs = from->train.epochs;
    if (!only_epochs) copy_rates(copy, from);
    hash_what_computes(copy, hash);
    return CLEAT_OK;
}

size_t cleat_run_settings_differences(const cleat_run_settings *settings, cleat_profile *then, char *text,
                                      size_t size) {
    int64_t *length = &settings->resolved->data->max_length, own = *length;
    lower_to_longest(then);
    lower_to_longest(settings->resolved);
    size_t count = cleat_profile_differences(then, settings->resolved, text, size);
    *length = own;
    return count;
}
