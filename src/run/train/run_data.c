/* The data of a run: opening, counting, and the batches of each epoch. */
#include "train/run_data.h"

#include "data/batches.h"
#include "fit/fit.h"
#include "models/model.h"
#include "profile/schema.h"

#include <string.h>

/* A setting of the profile that the data override; a default value is not a choice of the user. */
static void log_override(const cleat_profile *profile, const cleat_model *model, const cleat_dataset *dataset) {
    cleat_data_override setting;
    if (!model->type->overrides || !model->type->overrides(dataset, &setting)) return;
    const cleat_key *key = cleat_schema_find(&profile->keys->own, "data", setting.key);
    const cleat_assignment *given = key ? cleat_profile_given(profile->keys, key) : NULL;
    if (!given || !given->value || given->adopted || strcmp(given->value, setting.value) == 0) return;
    cleat_log(CLEAT_LOG_INFO, "%s: has no effect: %s says %s", given->place, setting.source, setting.value);
}

cleat_status cleat_run_data_open(cleat_run_data *data, cleat_model *model, const cleat_profile *profile,
                                 const char *fitted, cleat_error *error) {
    const char *path = profile->data->path;
    cleat_status status = cleat_model_open_data(model, path, CLEAT_MODE_TRAIN, fitted, &data->dataset, error);
    if (!status)
        status = cleat_dataset_samples(data->dataset, CLEAT_SPLIT_TRAIN, &data->train, &data->train_count, error);
    if (!status) status = cleat_dataset_samples(data->dataset, CLEAT_SPLIT_VAL, &data->val, &data->val_count, error);
    if (status) return status;
    if (!fitted || !*fitted) log_override(profile, model, data->dataset);
    if (profile->data->limit > 0 && (size_t)profile->data->limit < data->train_count)
        data->train_count = (size_t)profile->data->limit;
    if (data->train_count == 0) return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "%s: split 'train' has no samples", path);
    cleat_log(CLEAT_LOG_INFO, "data %s: %zu training samples, %zu validation samples", path, data->train_count,
              data->val_count);
    return CLEAT_OK;
}

cleat_status cleat_run_data_make(cleat_run_data *data, cleat_model *model, const cleat_profile *profile, size_t samples,
                                 cleat_error *error) {
    cleat_lengths lengths;
    bool known = false;
    cleat_status status = cleat_fit_lengths(profile, model, &lengths, &known, error);
    if (status) return status;
    const int64_t length = lengths.lengths[lengths.count - 1];
    status = cleat_model_open_synthetic(model, (int64_t)samples, length, &data->dataset, error);
    if (!status)
        status = cleat_dataset_samples(data->dataset, CLEAT_SPLIT_TRAIN, &data->train, &data->train_count, error);
    if (!status)
        cleat_log(CLEAT_LOG_WARNING,
                  "data.path '%s' does not exist: %zu synthetic samples of length %lld take its place",
                  profile->data->path, data->train_count, (long long)length);
    return status;
}

void cleat_run_data_close(cleat_run_data *data) {
    cleat_run_data_end_epoch(data);
    cleat_samples_free(data->train);
    cleat_samples_free(data->val);
    cleat_dataset_destroy(data->dataset);
    *data = (cleat_run_data){0};
}

cleat_status cleat_run_data_count(cleat_run_data *data, const cleat_model *model, const cleat_profile *profile,
                                  cleat_error *error) {
    cleat_lengths *lengths = &data->lengths;
    cleat_status status = cleat_lengths_choose(profile, cleat_model_fixed_length(model), data->dataset, data->train,
                                               data->train_count, lengths, error);
    if (status) return status;
    return cleat_batches_check_lengths(data->dataset, data->train, data->train_count,
                                       lengths->lengths[lengths->count - 1], error);
}

cleat_status cleat_run_data_begin_epoch(cleat_run_data *data, const cleat_workload *work, uint64_t seed, int64_t epoch,
                                        cleat_error *error) {
    cleat_bucket whole[CLEAT_BUCKETS];
    int64_t sizes[CLEAT_BUCKETS];
    data->rng_key = (cleat_rng_key){.seed = seed, .epoch = (uint32_t)epoch};
    if (data->part) cleat_lengths_global_batches(&data->lengths, data->effective_batch, whole);
    for (size_t b = 0; data->part && b < work->n_buckets; ++b) sizes[b] = whole[b].global_batch_size;
    const cleat_batches_spec spec = {.dataset = data->dataset,
                                     .samples = data->train,
                                     .n_samples = data->train_count,
                                     .buckets = work->buckets,
                                     .n_buckets = work->n_buckets,
                                     .rng_key = &data->rng_key,
                                     .global_batch_sizes = data->part ? sizes : NULL,
                                     .part = data->part,
                                     .user = data->part_user};
    return cleat_batches_create(&spec, &data->pass, error);
}

void cleat_run_data_end_epoch(cleat_run_data *data) {
    cleat_batches_destroy(data->pass);
    data->pass = NULL;
}
