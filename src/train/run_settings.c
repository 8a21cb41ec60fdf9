/* The profile of a run: copies of it are made here only. */
#include "train/run_settings.h"

void cleat_run_settings_shorten(cleat_run_settings *settings, int64_t length) {
    cleat_profile_shorten(settings->profile, length, &settings->shortened);
    settings->profile = &settings->shortened;
}

int64_t cleat_run_settings_cut(const cleat_run_settings *settings) {
    return settings->profile == &settings->shortened ? settings->profile->data.max_length : 0;
}

void cleat_run_settings_resolve(cleat_run_settings *settings, const cleat_workload *work, int loader_threads) {
    int64_t effective = cleat_profile_effective_batch(settings->profile), most = 1;
    cleat_profile *resolved = &settings->resolved;
    *resolved = *settings->profile;
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
    resolved->train.loss_scale = cleat_profile_loss_scale(settings->profile);
    resolved->train.gradient_checkpointing = work->recompute ? CLEAT_CHECKPOINTING_TRUE : CLEAT_CHECKPOINTING_FALSE;
    int64_t longest = work->buckets[work->n_buckets - 1].length; /* no sample is longer */
    if (resolved->data.max_length > longest) resolved->data.max_length = longest;
    if (resolved->data.min_length > longest) resolved->data.min_length = longest;
    resolved->loader.num_workers = loader_threads;
}
