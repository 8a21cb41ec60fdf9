/* Prediction: outputs of one checkpoint or several for samples without targets, in the output format of the model
 * family. */
#include "core/files.h"
#include "core/memory.h"
#include "data/dataset.h"
#include "exec/copy.h"
#include "models/examples.h"
#include "train/complete_check.h"
#include "train/members.h"
#include "train/output_check.h"
#include "train/parallel_pass.h"

#include <stdio.h>
#include <string.h>

typedef struct outputs {
    cleat_prediction *predictions; /* [samples] each owns its output */
    unsigned char *states;         /* [samples] cleat_sample_state, after the pass */
    size_t count;
    cleat_output_check bad;
} outputs;

enum { SEEDS = 5 }; /* passes with dropout in place of five models */
/* Bytes of several members' outputs that are kept at once, for families that write each prediction. */
static const double MAX_BYTES = (double)((int64_t)1 << 30);

typedef struct prediction_run {
    const cleat_predict_request *request;
    cleat_loaded_model loaded;
    size_t loaded_member;  /* request->n_members: none */
    size_t passes;         /* members, or seeds of dropout */
    bool combines, writes; /* several outputs of a sample; each prediction is written at once */
    size_t first, count;   /* samples of this rank */
    cleat_members members; /* if it combines */
    outputs kept;
    cleat_prediction *drawings; /* [n_drawings] the first ones, the JSON of their examples as outputs */
    size_t n_drawings;
} prediction_run;

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

/* Keeps the example of a prediction if it is one of the first. */
static cleat_status keep_figure(const prediction_run *run, size_t sample, cleat_error *error) {
    const cleat_prediction *shown = &run->kept.predictions[sample];
    const cleat_evaluation evaluated = {.predictions = shown, .n_predictions = 1, .drawings = true};
    cleat_string json = {0};
    if (sample >= run->n_drawings) return CLEAT_OK;
    cleat_status status = run->loaded.model->type->examples->add(run->loaded.model, &evaluated, 0, &json, error);
    while (!json.failed && json.size % sizeof(float)) cleat_string_add(&json, " ");
    run->drawings[sample] = *shown;
    run->drawings[sample].output = (float *)(void *)json.data;
    run->drawings[sample].values = (int64_t)(json.size / sizeof(float));
    return status || !json.failed ? status : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a figure");
}

static cleat_status store_batch(const prediction_run *run, const cleat_fed_batch *fed, const float *output,
                                int64_t elements, cleat_error *error) {
    const int64_t each = elements / fed->host.batch;
    cleat_status status = CLEAT_OK;
    for (uint32_t i = 0; i < fed->micro_batch->count && !status; ++i) {
        const uint32_t sample = fed->micro_batch->samples[i];
        if (!is_readable(run->loaded.dataset, sample)) continue;
        status =
            cleat_model_keep(run->loaded.model, &fed->host, i, output, each, &run->kept.predictions[sample], error);
        if (!status) status = keep_figure(run, sample, error);
    }
    return status;
}

/* Writes the predictions of samples [count] into the folder and frees their values, because thousands of images
 * do not fit into memory. */
static cleat_status write_samples(const prediction_run *run, const uint32_t *samples, size_t count,
                                  cleat_error *error) {
    cleat_prediction *some = cleat_alloc(count, sizeof *some);
    if (!some) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a batch of predictions");
    size_t readable = 0;
    for (size_t i = 0; i < count; ++i)
        if (is_readable(run->loaded.dataset, samples[i])) some[readable++] = run->kept.predictions[samples[i]];
    cleat_status status =
        readable ? cleat_model_write(run->loaded.model, some, readable, run->request->out, error) : CLEAT_OK;
    for (size_t i = 0; i < count; ++i) cleat_prediction_free(&run->kept.predictions[samples[i]]);
    cleat_free(some);
    return status;
}

/* `seen`: samples of the pass before this batch, which key dropout. */
static cleat_status predict_batch(prediction_run *run, size_t pass, uint32_t seen, cleat_feed *feed,
                                  const cleat_fed_batch *fed, cleat_error *error) {
    const cleat_loaded_model *loaded = &run->loaded;
    const cleat_work_graph *graph = &loaded->session->work->evaluate[fed->micro_batch->bucket];
    const cleat_dropout_key key = {.seed = pass + 1, .first = seen};
    int64_t elements = cleat_tensor_elements(graph->built.output);
    float *output = cleat_alloc((size_t)elements, sizeof *output);
    if (!output) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the outputs of a batch");
    if (graph->rng_offset >= 0) cleat_session_prepare(loaded->session, graph, fed->bytes, &fed->host, NULL, &key);
    cleat_status status = cleat_program_check_batch(loaded->check, feed, graph, fed, error);
    if (!status && run->request->flips) {
        status =
            cleat_flips_run(loaded, run->request->members[run->loaded_member].profile, feed, graph, fed, output, error);
    } else if (!status) {
        status = cleat_feed_run(feed, graph, fed, error);
        if (!status)
            status = cleat_exec_read_unchecked(loaded->session->exec, graph->index, graph->built.output, output, error);
    }
    if (!status) cleat_output_check_add(&run->kept.bad, loaded->session, fed, output);
    if (!status && run->combines)
        status = cleat_members_keep(&run->members, pass, loaded, fed, output, error);
    else if (!status)
        status = store_batch(run, fed, output, elements, error);
    if (!status && run->writes && !run->combines)
        status = write_samples(run, fed->micro_batch->samples, fed->micro_batch->count, error);
    cleat_free(output);
    return status;
}

/* Samples [first, first + count). */
static cleat_status predict_some(prediction_run *run, size_t pass, size_t first, size_t count, cleat_error *error) {
    cleat_session *session = run->loaded.session;
    cleat_batches *batches = NULL;
    cleat_feed *feed = NULL;
    uint32_t *samples = NULL, seen = (uint32_t)first;
    cleat_status status = cleat_list_samples(first, count, &samples, error);
    if (status) return status;
    const cleat_batches_spec spec = {.dataset = run->loaded.dataset,
                                     .samples = samples,
                                     .n_samples = count,
                                     .buckets = session->work->buckets,
                                     .n_buckets = session->work->n_buckets};
    status = cleat_batches_create(&spec, &batches, error);
    if (!status) status = cleat_feed_open(session, run->loaded.dataset, &feed, error);
    if (!status) status = cleat_feed_start(feed, batches, 0, NULL, error);
    for (cleat_fed_batch fed; !status;) {
        status = cleat_feed_next(feed, &fed, error);
        if (status || !fed.micro_batch) break;
        status = predict_batch(run, pass, seen, feed, &fed, error);
        seen += fed.micro_batch->count;
        cleat_feed_release(feed, &fed);
    }
    cleat_feed_close(feed);
    cleat_batches_destroy(batches);
    cleat_free(samples);
    return status;
}

/* --- several outputs of a sample ------------------------------------------------------------------------------ */

static bool is_submission(const prediction_run *run) {
    return run->request->format != NULL;
}

static cleat_status load_member(prediction_run *run, size_t member, cleat_error *error) {
    const cleat_predict_request *request = run->request;
    const cleat_member *one = &request->members[member];
    if (run->loaded_member == member) return CLEAT_OK;
    cleat_loaded_model_close(&run->loaded);
    run->loaded_member = request->n_members;
    run->loaded.next_only = !request->all;
    run->loaded.drawings = request->drawings;
    run->loaded.dropout = is_submission(run) && request->n_members == 1;
    cleat_status status = cleat_load_model(one->profile, one->checkpoint, request->data, CLEAT_FOR_PREDICTION,
                                           request->ranks, &run->loaded, error);
    if (status) return status;
    run->loaded_member = member;
    if (is_submission(run) && !run->loaded.model->type->write_submission)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "--format submission is for RNA; model.type is %s",
                          cleat_model_name(run->loaded.model));
    if (run->loaded.dropout && run->passes == 1 && run->loaded.session->work->evaluate[0].rng_offset >= 0)
        run->passes = SEEDS;
    run->combines = run->passes > 1 || is_submission(run);
    return run->combines ? cleat_members_add(&run->members, run->passes, &run->loaded, one->profile, error) : CLEAT_OK;
}

static void log_structures(const prediction_run *run) {
    const size_t n = run->request->n_members;
    if (is_submission(run))
        cleat_log(run->passes < SEEDS ? CLEAT_LOG_WARNING : CLEAT_LOG_INFO, "submission.csv: structures 1 to 5: %s",
                  n > SEEDS              ? "the first five checkpoints"
                  : n == SEEDS           ? "the five checkpoints"
                  : n > 1                ? "the checkpoints, repeated, since there are fewer than five"
                  : run->passes == SEEDS ? "one checkpoint with dropout, seeds 1 to 5"
                                         : "all equal, from one checkpoint without model.dropout");
}

static cleat_status combine_sample(prediction_run *run, size_t sample, cleat_error *error) {
    const cleat_prediction *first = &run->members.outputs[sample];
    const float *members[CLEAT_MAX_MEMBERS];
    if (!is_readable(run->loaded.dataset, sample)) return CLEAT_OK;
    float *combined = cleat_alloc((size_t)first->values, sizeof *combined);
    if (!combined) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a prediction");
    cleat_status status = cleat_members_combine(&run->members, &run->loaded, sample, combined, members, error);
    run->kept.predictions[sample] = *first;
    run->kept.predictions[sample].output = combined;
    for (size_t p = 0; p < run->passes; ++p)
        cleat_prediction_free(&run->members.outputs[p * run->members.samples + sample]);
    return status ? status : keep_figure(run, sample, error);
}

static cleat_status combine_some(prediction_run *run, size_t first, size_t count, cleat_error *error) {
    uint32_t *samples = NULL;
    cleat_status status = cleat_list_samples(first, count, &samples, error);
    for (size_t i = 0; i < count && !status; ++i) status = combine_sample(run, samples[i], error);
    if (!status && run->writes) status = write_samples(run, samples, count, error);
    cleat_free(samples);
    return status;
}

/* Parts of the samples that all members predict in turn, so that their outputs fit into memory. */
static size_t count_blocks(const prediction_run *run) {
    const cleat_work_graph *last = &run->loaded.session->work->evaluate[run->loaded.session->work->n_buckets - 1];
    const double each = (double)cleat_tensor_elements(last->built.output) / (double)last->built.output->shape[0];
    if (!run->combines || !run->writes) return 1;
    return 1 + (size_t)(each * sizeof(float) * (double)run->passes * (double)run->kept.count / MAX_BYTES);
}

/* The first member comes last: its dataset and settings write the predictions. Ranks load together, and predict their
 * parts alone. */
static cleat_status predict_all(prediction_run *run, cleat_error *error) {
    cleat_ranks *ranks = run->request->ranks;
    const size_t blocks = count_blocks(run);
    cleat_status status = CLEAT_OK;
    for (size_t k = 0; k < blocks && !status; ++k) {
        const size_t begin = run->count * k / blocks, end = run->count * (k + 1) / blocks;
        for (size_t p = run->passes; p-- > 0 && !status;) {
            status = load_member(run, run->request->n_members > 1 ? p : 0, error);
            if (!status) status = predict_some(run, p, run->first + begin, end - begin, error);
            status = cleat_ranks_agree(ranks, status, error);
        }
        if (!status && run->combines && !is_submission(run))
            status = combine_some(run, run->first + begin, end - begin, error);
        status = cleat_ranks_agree(ranks, status, error);
    }
    return status;
}

/* --- results -------------------------------------------------------------------------------------------------- */

/* Sends the predictions of all ranks to rank 0, which writes them, unless each rank has written its own;
 * combines counts and states on all ranks. */
static cleat_status bring_together(prediction_run *run, cleat_error *error) {
    const cleat_loaded_model *loaded = &run->loaded;
    outputs *kept = &run->kept;
    for (size_t i = 0; i < kept->count; ++i)
        kept->states[i] = (unsigned char)cleat_dataset_sample_state(loaded->dataset, i);
    cleat_status status = cleat_pass_share_states(&loaded->parallel, kept->states, kept->count, error);
    if (!status) status = cleat_pass_add_check(&loaded->parallel, &kept->bad, error);
    for (size_t p = 0; p < run->passes && !status && is_submission(run); ++p) {
        cleat_prediction *structures = run->members.outputs + p * kept->count;
        status = cleat_pass_collect(&loaded->parallel, loaded->dataset, structures, kept->count, error);
        for (size_t i = 0; i < kept->count; ++i) structures[i].dataset = loaded->dataset;
    }
    if (!status && !run->writes && !is_submission(run))
        status = cleat_pass_collect(&loaded->parallel, loaded->dataset, kept->predictions, kept->count, error);
    if (!status && run->n_drawings)
        status = cleat_pass_collect(&loaded->parallel, loaded->dataset, run->drawings, run->n_drawings, error);
    return status;
}

/* Makes room for the figures of the first samples; a series has one for each target. */
static cleat_status prepare_drawings(prediction_run *run, cleat_error *error) {
    const size_t each = (size_t)run->loaded.model->sizes.outputs;
    if (!run->request->drawings) return CLEAT_OK;
    if (!cleat_model_has_examples(run->loaded.model) || is_submission(run))
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "--figures: a model.type of %s%s has none",
                          cleat_model_name(run->loaded.model), is_submission(run) ? " with --format submission" : "");
    const size_t most = each > CLEAT_DRAWINGS ? 1 : CLEAT_DRAWINGS / (each ? each : 1);
    run->n_drawings = most < run->kept.count ? most : run->kept.count;
    run->drawings = cleat_alloc(run->n_drawings, sizeof *run->drawings);
    if (!run->drawings) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu figures", run->n_drawings);
    return cleat_folder_make(run->request->drawings, error);
}

static cleat_status write_drawings(const prediction_run *run, size_t predicted, cleat_error *error) {
    char text[CLEAT_CHECKPOINT_PATH + 128];
    cleat_string json = {0};
    const size_t shown = predicted < run->n_drawings ? predicted : run->n_drawings;
    snprintf(text, sizeof text, "The first %zu of %zu predictions of %s.", shown, predicted, run->loaded.folder);
    if (shown < predicted) cleat_log(CLEAT_LOG_INFO, "%s: %s", run->request->drawings, text);
    json_add(&json, json_open(NULL, '{'), json_clean("text", text), json_open("examples", '['));
    for (size_t i = 0, added = 0; i < run->n_drawings; ++i) {
        const cleat_prediction *one = &run->drawings[i];
        if (!one->output) continue;
        cleat_string_add(&json, added++ ? ",\n" : "\n");
        cleat_string_add_bytes(&json, (const char *)one->output, (size_t)one->values * sizeof(float));
    }
    cleat_string_add(&json, "]}\n");
    return cleat_file_write_in(run->request->drawings, "examples.json", &json, error);
}

/* *predicted: number of samples with a prediction. */
static cleat_status write_all(prediction_run *run, size_t *predicted, cleat_error *error) {
    const cleat_model *model = run->loaded.model;
    const char *out = run->request->out;
    cleat_ranks *ranks = run->request->ranks;
    const bool leads = cleat_ranks_rank(ranks) == 0;
    cleat_status status = leads ? cleat_folder_make(out, error) : CLEAT_OK;
    *predicted = drop_unreadable(&run->kept);
    if (!status && leads && is_submission(run))
        status = model->type->write_submission(model, run->members.outputs, run->passes, run->kept.count, out, error);
    else if (!status && leads && !run->writes && *predicted)
        status = cleat_model_write(model, run->kept.predictions, *predicted, out, error);
    if (!status && leads && run->n_drawings) status = write_drawings(run, *predicted, error);
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

cleat_status cleat_predict_members(const cleat_predict_request *request, size_t *count, cleat_error *error) {
    prediction_run run = {.request = request, .loaded_member = request->n_members, .passes = request->n_members};
    size_t predicted = 0;
    if (request->format && strcmp(request->format, "submission") != 0)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "unknown format '%s'; there is 'submission'", request->format);
    cleat_status status = cleat_members_check(request->members, request->n_members, error);
    if (!status) status = load_member(&run, request->n_members - 1, error);
    if (!status) status = outputs_create(run.loaded.dataset, &run.kept, error);
    if (!status) status = prepare_drawings(&run, error);
    if (!status) status = cleat_pass_part(&run.loaded.parallel, run.kept.count, &run.first, &run.count, error);
    run.writes = !status && cleat_model_writes_each(run.loaded.model);
    if (run.writes) status = cleat_folder_make(request->out, error);
    status = cleat_ranks_agree(request->ranks, status, error);
    if (!status) status = predict_all(&run, error);
    if (!status) status = bring_together(&run, error);
    status = cleat_ranks_agree(request->ranks, status, error);
    if (!status) status = write_all(&run, &predicted, error);
    if (!status) log_structures(&run);
    if (!status && count) *count = predicted;
    if (!status) status = check_outputs(request->members[0].profile, &run.loaded, &run.kept, request->out, error);
    for (size_t i = 0; i < run.n_drawings && run.drawings; ++i) cleat_prediction_free(&run.drawings[i]);
    cleat_free(run.drawings);
    outputs_free(&run.kept);
    cleat_members_free(&run.members);
    cleat_loaded_model_close(&run.loaded);
    return status;
}

cleat_status cleat_predict_ranks(const cleat_profile *profile, const char *checkpoint, const char *data,
                                 const char *out, cleat_ranks *ranks, size_t *count, cleat_error *error) {
    const cleat_member one = {profile, checkpoint};
    const cleat_predict_request request = {&one, 1, data, out, .all = true, .ranks = ranks};
    return cleat_predict_members(&request, count, error);
}

cleat_status cleat_predict(const cleat_profile *profile, const char *checkpoint, const char *data, const char *out,
                           size_t *count, cleat_error *error) {
    return cleat_predict_ranks(profile, checkpoint, data, out, NULL, count, error);
}
