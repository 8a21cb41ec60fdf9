/* Loading a trained model for evaluation or prediction. */
#include "train/load_model.h"

#include "checkpoint/checkpoint.h"
#include "cleat/rates.h"
#include "core/files.h"
#include "core/memory.h"
#include "core/string.h"
#include "exec/copy.h"
#include "graph/store.h"
#include "models/model.h"
#include "train/init_weights.h"
#include "train/model_of_checkpoint.h"
#include "train/model_tensors.h"

#include <math.h>
#include <string.h>

/* Elements that are on their way from the file to the device: 1 MiB. */
enum { BLOCK = 1 << 18 };

/* A checkpoint being loaded. */
typedef struct loading {
    cleat_session *session;
    const cleat_checkpoint *checkpoint;
    float *block; /* [BLOCK] */
    bool warned;
} loading;

/* Warns about a checkpoint whose tensors are not finite: its results will not be finite either. */
static void warn_not_finite(loading *l, const char *name, int64_t first, int64_t count) {
    for (int64_t k = 0; k < count && !l->warned; ++k) {
        if (isfinite(l->block[k])) continue;
        cleat_log(CLEAT_LOG_WARNING, "%s: '%s' is %g at element %lld", l->checkpoint->folder, name, (double)l->block[k],
                  (long long)(first + k));
        l->warned = true;
    }
}

/* Loads a weight in blocks of the type that the run had: quantising its values again may change their scales. */
static cleat_status load_blocks(loading *l, const cleat_tensor *blocks, const cleat_st_tensor *stored,
                                cleat_error *error) {
    void *bytes = cleat_alloc(cleat_st_bytes(stored), 1);
    if (!bytes) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for '%s'", stored->name);
    cleat_status status = cleat_safetensors_read_stored(l->checkpoint->model, stored, bytes, error);
    if (!status) status = cleat_exec_write_unchecked(l->session->exec, 0, blocks, bytes, error);
    cleat_free(bytes);
    return status;
}

static cleat_status load_tensor(loading *l, const cleat_tensor *tensor, cleat_error *error) {
    int64_t row;
    const cleat_st_tensor *stored = cleat_checkpoint_tensor(l->checkpoint, tensor, &row);
    const int64_t elements = cleat_tensor_elements(tensor), start = row * elements;
    const cleat_tensor *blocks = tensor->is_buffer ? NULL : cleat_store_blocks_of(l->session->work->store, tensor);
    cleat_status status = CLEAT_OK;
    if (blocks && blocks->dtype == stored->blocks) return load_blocks(l, blocks, stored, error);
    for (int64_t i = 0; i < elements && !status; i += BLOCK) {
        const int64_t some = elements - i < BLOCK ? elements - i : BLOCK;
        status = cleat_safetensors_read(l->checkpoint->model, stored, start + i, some, l->block, error);
        if (status) break;
        warn_not_finite(l, stored->name, start + i, some);
        status = cleat_exec_write_part(l->session->exec, 0, tensor, i, some, l->block, error);
    }
    return status;
}

/* Checks that the checkpoint is of this model before anything is written. */
static cleat_status check_tensors(const cleat_session *session, const cleat_checkpoint *checkpoint,
                                  cleat_error *error) {
    cleat_st_tensor *tensors = NULL;
    size_t count = 0;
    cleat_status status = cleat_session_tensors(session, NULL, true, &tensors, &count, error);
    if (!status) status = cleat_safetensors_check(checkpoint->model, tensors, count, error);
    cleat_free(tensors);
    return status;
}

cleat_status cleat_load_values(cleat_session *session, const cleat_checkpoint *checkpoint, cleat_error *error) {
    const cleat_store *store = session->work->store;
    loading l = {.session = session, .checkpoint = checkpoint, .block = cleat_alloc(BLOCK, sizeof *l.block)};
    if (!l.block) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the parameters");
    cleat_status status = check_tensors(session, checkpoint, error);
    for (size_t i = 0; i < store->count && !status; ++i) status = load_tensor(&l, store->params[i], error);
    for (size_t i = 0; i < store->buffer_count && !status; ++i) status = load_tensor(&l, store->buffers[i], error);
    cleat_free(l.block);
    return status;
}

cleat_status cleat_load_published(cleat_session *session, const char *init, cleat_error *error) {
    cleat_weights *weights = NULL;
    cleat_weight_report report = {0};
    cleat_status status = cleat_open_init(init, &weights, error);
    if (!status) status = cleat_session_load_weights(session, weights, 0, NULL, &report, error);
    if (!status && report.tensors[CLEAT_WEIGHT_NEW])
        status = cleat_fail(error, CLEAT_ERR_FORMAT,
                            "%s lacks %zu tensors of the network, such as a head or adapters; train it first", init,
                            report.tensors[CLEAT_WEIGHT_NEW]);
    cleat_weight_report_free(&report);
    cleat_weights_close(weights);
    return status;
}

/* The buckets of a profile may end at the longest sample of its training. */
static void add_longer_bucket(const cleat_dataset *dataset, cleat_lengths *lengths) {
    const size_t last = lengths->count - 1;
    int64_t longest = 0, samples = 0;
    for (size_t i = 0; i < cleat_dataset_count(dataset); ++i) {
        const int64_t length = cleat_dataset_length(dataset, i);
        if (length > longest) longest = length;
        samples += length > lengths->lengths[last];
    }
    if (!samples) return;
    const size_t at = lengths->count < CLEAT_BUCKETS ? lengths->count++ : last;
    lengths->lengths[at] = longest;
    lengths->samples[at] += samples;
}

cleat_status cleat_list_samples(size_t first, size_t count, uint32_t **samples, cleat_error *error) {
    *samples = cleat_alloc(count, sizeof **samples);
    if (!*samples) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu samples", count);
    for (size_t i = 0; i < count; ++i) (*samples)[i] = (uint32_t)(first + i);
    return CLEAT_OK;
}

/* All samples count, because the samples to evaluate are not known here. */
static cleat_status choose_lengths(const cleat_profile *profile, const cleat_model *model, const cleat_dataset *dataset,
                                   cleat_lengths *lengths, cleat_error *error) {
    size_t count = cleat_dataset_count(dataset);
    uint32_t *samples = NULL;
    cleat_status status = cleat_list_samples(0, count, &samples, error);
    if (status) return status;
    status = cleat_lengths_choose(profile, cleat_model_fixed_length(model), dataset, samples, count, lengths, error);
    if (!status) add_longer_bucket(dataset, lengths);
    cleat_free(samples);
    return status;
}

/* The speed of a device counts only where ranks divide the work by it. */
static double measure_flops(cleat_device *device, const cleat_ranks *ranks) {
    cleat_rates rates = {0};
    cleat_error why = {0};
    if (!ranks) return 0;
    if (cleat_rates_measure(device, &rates, &why) == CLEAT_OK) return rates.flops;
    cleat_log(CLEAT_LOG_WARNING,
              "the speed of the device could not be measured, so that all ranks take equal parts: %s", why.text);
    return 0;
}

/* `saved` is set also after some errors; the caller closes it and `made`. */
static cleat_status load(const cleat_profile *profile, const char *checkpoint, const char *data, cleat_purpose purpose,
                         cleat_ranks *ranks, cleat_checkpoint **saved, cleat_loaded_model *made, cleat_error *error) {
    cleat_settings settings;
    cleat_lengths lengths;
    const cleat_mode mode = purpose == CLEAT_FOR_PREDICTION ? CLEAT_MODE_PREDICT : CLEAT_MODE_EVALUATE;
    cleat_status status = cleat_model_settings(profile, &settings, error);
    if (!status && checkpoint) status = cleat_checkpoint_open_best(checkpoint, saved, error);
    if (status) return status;
    if (checkpoint) {
        made->step = (*saved)->state.step;
        made->epoch = (*saved)->state.epoch;
        memcpy(made->folder, (*saved)->folder, sizeof made->folder);
        made->files = (*saved)->files;
        status = cleat_checkpoint_expect_settings(*saved, settings.items, settings.count, error);
    }
    if (!status) status = cleat_profile_create_model(profile, &made->model, error);
    if (!status) {
        made->model->options.dropout_in_prediction = made->dropout;
        made->model->options.next_only = made->next_only;
        made->model->options.drawings = made->drawings;
    }
    const char *fitted = checkpoint ? made->folder : NULL;
    if (!status) status = cleat_model_open_data(made->model, data, mode, fitted, &made->dataset, error);
    if (!status) status = choose_lengths(profile, made->model, made->dataset, &lengths, error);
    if (!status) status = cleat_rank_open_device(ranks, profile->run.device, &made->device, error);
    if (status) return status;
    if (made->flops == 0) made->flops = measure_flops(made->device, ranks);
    cleat_fit_request request =
        cleat_fit_request_for(profile, made->model, purpose, &lengths, cleat_device_get_facts(made->device), NULL);
    request.exactly = false; /* the sizes may be those of another device, where the model was trained */
    status = cleat_session_fit(made->device, &request, &made->session, error);
    if (!status) status = cleat_program_check_create(made->session, &made->check, error);
    if (status) return status;
    return checkpoint ? cleat_load_values(made->session, *saved, error)
                      : cleat_load_published(made->session, profile->init, error);
}

static cleat_status hash_samples(const cleat_loaded_model *loaded, char hash[33], cleat_error *error) {
    const cleat_dataset *dataset = loaded->dataset;
    cleat_string text = {0};
    cleat_string_add(&text, "%s %lld", cleat_version(), (long long)loaded->step);
    for (size_t i = 0; i < cleat_dataset_count(dataset); ++i)
        cleat_string_add(&text, "\n%s %lld", cleat_dataset_id(dataset, i), (long long)cleat_dataset_length(dataset, i));
    const bool failed = text.failed;
    if (!failed) cleat_hash_text(text.data, text.size, hash);
    cleat_string_free(&text);
    return failed ? cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the names of the samples") : CLEAT_OK;
}

/* Ranks with other samples, or other parameters, would not compute parts of one result. */
static cleat_status check_same(cleat_ranks *ranks, cleat_loaded_model *loaded, cleat_error *error) {
    char hash[33] = "";
    if (!ranks) return CLEAT_OK;
    cleat_status status = cleat_ranks_agree(ranks, hash_samples(loaded, hash, error), error);
    if (!status)
        status = cleat_ranks_compare(
            ranks, "the version of cleat, the step of the checkpoint, or the samples of the data", hash, error);
    status = cleat_ranks_agree(ranks, status, error);
    return status ? status : cleat_data_parallel_check_start(&loaded->parallel, loaded->session, error);
}

cleat_status cleat_load_model(const cleat_profile *profile, const char *checkpoint, const char *data,
                              cleat_purpose purpose, cleat_ranks *ranks, cleat_loaded_model *loaded,
                              cleat_error *error) {
    cleat_loaded_model made = {.dropout = loaded->dropout,
                               .next_only = loaded->next_only,
                               .drawings = loaded->drawings,
                               .flops = loaded->flops};
    cleat_checkpoint *saved = NULL;
    cleat_status status = load(profile, checkpoint, data, purpose, ranks, &saved, &made, error);
    cleat_checkpoint_close(saved);
    status = cleat_ranks_agree(ranks, status, error);
    if (!status) status = cleat_data_parallel_open_pass(&made.parallel, ranks, profile, made.flops, error);
    if (!status) status = check_same(ranks, &made, error);
    if (status) {
        cleat_loaded_model_close(&made);
        return status;
    }
    *loaded = made;
    return CLEAT_OK;
}

void cleat_loaded_model_close(cleat_loaded_model *loaded) {
    cleat_data_parallel_close(&loaded->parallel);
    cleat_program_check_destroy(loaded->check);
    cleat_session_destroy(loaded->session);
    cleat_device_close(loaded->device);
    cleat_dataset_destroy(loaded->dataset);
    cleat_model_destroy(loaded->model);
    *loaded = (cleat_loaded_model){0};
}
