/* Prediction: outputs of a checkpoint for samples without targets, in the output format of the model
 * family. */
#include "core/files.h"
#include "core/memory.h"
#include "data/dataset.h"
#include "exec/copy.h"
#include "train/complete_check.h"
#include "train/load_model.h"
#include "train/output_check.h"
#include "train/parallel_pass.h"

#include <string.h>

typedef struct outputs {
    cleat_prediction *predictions; /* [samples] each owns its output */
    unsigned char *states;         /* [samples] cleat_sample_state, after the pass */
    size_t count;
    cleat_output_check bad;
} outputs;

static cleat_status outputs_create(const cleat_dataset *dataset, outputs *made, cleat_error *error) {
    size_t count = cleat_dataset_count(dataset);
    made->predictions = cleat_alloc(count, sizeof *made->predictions);
    made->states = cleat_alloc(count, 1);
    made->count = count;
    if (!made->predictions || !made->states)
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu predictions", count);
    return CLEAT_OK;
}

static void outputs_free(outputs *kept) {
    for (size_t i = 0; kept->predictions && i < kept->count; ++i) cleat_prediction_free(&kept->predictions[i]);
    cleat_free(kept->predictions);
    cleat_free(kept->states);
}

static bool is_readable(const cleat_dataset *dataset, size_t sample) {
    return cleat_dataset_sample_state(dataset, sample) != CLEAT_SAMPLE_UNREADABLE;
}

/* Moves the predictions that exist to the front; their number. */
static size_t drop_unreadable(outputs *kept) {
    size_t count = 0;
    for (size_t i = 0; i < kept->count; ++i) {
        const cleat_prediction prediction = kept->predictions[i];
        if (kept->states[i] == CLEAT_SAMPLE_UNREADABLE) continue;
        kept->predictions[i] = (cleat_prediction){0};
        kept->predictions[count++] = prediction;
    }
    return count;
}

static cleat_status store_batch(const cleat_loaded_model *loaded, const cleat_fed_batch *fed, const float *output,
                                int64_t elements, outputs *kept, cleat_error *error) {
    const int64_t each = elements / fed->host.batch;
    cleat_status status = CLEAT_OK;
    for (uint32_t i = 0; i < fed->micro_batch->count && !status; ++i) {
        const uint32_t sample = fed->micro_batch->samples[i];
        if (!is_readable(loaded->dataset, sample)) continue;
        status = cleat_model_keep(loaded->model, &fed->host, i, output, each, &kept->predictions[sample], error);
    }
    return status;
}

/* Writes the predictions of the batch into the folder and frees their values, because thousands of images
 * do not fit into memory. */
static cleat_status write_batch(const cleat_loaded_model *loaded, const cleat_fed_batch *fed, const char *folder,
                                outputs *kept, cleat_error *error) {
    cleat_prediction *micro_batch = cleat_alloc(fed->micro_batch->count, sizeof *micro_batch);
    if (!micro_batch) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a batch of predictions");
    size_t count = 0;
    for (uint32_t i = 0; i < fed->micro_batch->count; ++i)
        if (is_readable(loaded->dataset, fed->micro_batch->samples[i]))
            micro_batch[count++] = kept->predictions[fed->micro_batch->samples[i]];
    cleat_status status = count ? cleat_model_write(loaded->model, micro_batch, count, folder, error) : CLEAT_OK;
    for (uint32_t i = 0; i < fed->micro_batch->count; ++i)
        cleat_prediction_free(&kept->predictions[fed->micro_batch->samples[i]]);
    cleat_free(micro_batch);
    return status;
}

/* `folder` NULL: the predictions are kept in memory. */
static cleat_status predict_batch(cleat_loaded_model *loaded, cleat_feed *feed, const cleat_fed_batch *fed,
                                  const char *folder, outputs *kept, cleat_error *error) {
    const cleat_work_graph *graph = &loaded->session->work->evaluate[fed->micro_batch->bucket];
    int64_t elements = cleat_tensor_elements(graph->built.output);
    float *output = cleat_alloc((size_t)elements, sizeof *output);
    if (!output) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the outputs of a batch");
    cleat_status status = cleat_program_check_batch(loaded->check, feed, graph, fed, error);
    if (!status) status = cleat_feed_run(feed, graph, fed, error);
    if (!status)
        status = cleat_exec_read_unchecked(loaded->session->exec, graph->index, graph->built.output, output, error);
    if (!status) cleat_output_check_add(&kept->bad, loaded->session, fed, output);
    if (!status) status = store_batch(loaded, fed, output, elements, kept, error);
    if (!status && folder) status = write_batch(loaded, fed, folder, kept, error);
    cleat_free(output);
    return status;
}

/* The part of this rank. */
static cleat_status predict_part(cleat_loaded_model *loaded, const char *folder, outputs *kept, cleat_error *error) {
    cleat_session *session = loaded->session;
    size_t first, count;
    cleat_batches *batches = NULL;
    cleat_feed *feed = NULL;
    cleat_status status = cleat_pass_part(&loaded->parallel, kept->count, &first, &count, error);
    if (status) return status;
    uint32_t *samples = NULL;
    status = cleat_list_samples(first, count, &samples, error);
    if (status) return status;
    const cleat_batches_spec spec = {.dataset = loaded->dataset,
                                     .samples = samples,
                                     .n_samples = count,
                                     .buckets = session->work->buckets,
                                     .n_buckets = session->work->n_buckets};
    status = cleat_batches_create(&spec, &batches, error);
    if (!status) status = cleat_feed_open(session, loaded->dataset, &feed, error);
    if (!status) status = cleat_feed_start(feed, batches, 0, NULL, error);
    for (cleat_fed_batch fed; !status;) {
        status = cleat_feed_next(feed, &fed, error);
        if (status || !fed.micro_batch) break;
        status = predict_batch(loaded, feed, &fed, folder, kept, error);
        cleat_feed_release(feed, &fed);
    }
    cleat_feed_close(feed);
    cleat_batches_destroy(batches);
    cleat_free(samples);
    return status;
}

/* Sends the predictions of all ranks to rank 0, which writes them, unless each rank has written its own;
 * combines counts and states on all ranks. */
static cleat_status bring_together(const cleat_loaded_model *loaded, bool each, outputs *kept, cleat_error *error) {
    for (size_t i = 0; i < kept->count; ++i)
        kept->states[i] = (unsigned char)cleat_dataset_sample_state(loaded->dataset, i);
    cleat_status status = cleat_pass_share_states(&loaded->parallel, kept->states, kept->count, error);
    if (!status) status = cleat_pass_add_check(&loaded->parallel, &kept->bad, error);
    if (!status && !each)
        status = cleat_pass_collect(&loaded->parallel, loaded->dataset, kept->predictions, kept->count, error);
    return status;
}

/* *predicted: number of samples with a prediction. */
static cleat_status write_all(const cleat_loaded_model *loaded, const char *out, bool each, outputs *kept,
                              size_t *predicted, cleat_error *error) {
    cleat_ranks *ranks = loaded->parallel.ranks;
    const bool leads = cleat_ranks_rank(ranks) == 0;
    cleat_status status = leads ? cleat_folder_make(out, error) : CLEAT_OK;
    *predicted = drop_unreadable(kept);
    if (!status && leads && !each && *predicted)
        status = cleat_model_write(loaded->model, kept->predictions, *predicted, out, error);
    return cleat_ranks_agree(ranks, status, error);
}

/* Every prediction that could be made is written by now. */
static cleat_status check_outputs(const cleat_profile *profile, const cleat_loaded_model *loaded, const outputs *kept,
                                  const char *out, cleat_error *error) {
    char bad[CLEAT_OUTPUT_CHECK_TEXT];
    cleat_error incomplete = {0};
    cleat_status status =
        cleat_check_complete(loaded->dataset, kept->states, profile->data->max_length, out, &incomplete);
    cleat_output_check_format(&kept->bad, loaded->session, loaded->dataset, bad);
    if (!bad[0]) return status ? cleat_fail(error, status, "%s", incomplete.text) : CLEAT_OK;
    if (status) cleat_log(CLEAT_LOG_WARNING, "%s", incomplete.text);
    return cleat_fail(error, CLEAT_ERR_NAN, "predictions in %s: %s", out, bad);
}

cleat_status cleat_predict_ranks(const cleat_profile *profile, const char *checkpoint, const char *data,
                                 const char *out, cleat_ranks *ranks, size_t *count, cleat_error *error) {
    cleat_loaded_model loaded = {0};
    outputs kept = {0};
    size_t predicted = 0;
    cleat_status status = cleat_load_model(profile, checkpoint, data, CLEAT_FOR_PREDICTION, ranks, &loaded, error);
    if (!status) status = outputs_create(loaded.dataset, &kept, error);
    bool each = !status && cleat_model_writes_each(loaded.model);
    if (each) status = cleat_folder_make(out, error);
    if (!status) status = predict_part(&loaded, each ? out : NULL, &kept, error);
    status = cleat_ranks_agree(ranks, status, error);
    if (!status) status = bring_together(&loaded, each, &kept, error);
    status = cleat_ranks_agree(ranks, status, error);
    if (!status) status = write_all(&loaded, out, each, &kept, &predicted, error);
    if (!status && count) *count = predicted;
    if (!status) status = check_outputs(profile, &loaded, &kept, out, error);
    outputs_free(&kept);
    cleat_loaded_model_close(&loaded);
    return status;
}

cleat_status cleat_predict(const cleat_profile *profile, const char *checkpoint, const char *data, const char *out,
                           size_t *count, cleat_error *error) {
    return cleat_predict_ranks(profile, checkpoint, data, out, NULL, count, error);
}
