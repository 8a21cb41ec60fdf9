/* Evaluation: one pass without gradients; its loss terms and metrics. */
#include "train/evaluate.h"

#include "core/files.h"
#include "core/memory.h"
#include "exec/copy.h"
#include "models/model.h"
#include "train/load_model.h"
#include "train/parallel_pass.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Results collected by a pass over the samples. */
typedef struct collected {
    double *metric_state;
    cleat_output_check bad;
    cleat_run_examples *examples; /* or NULL */
} collected;

/* Keeps the outputs of a member; of the last one, replaces each by the combination. */
static cleat_status combine(const cleat_evaluation_setup *setup, const cleat_fed_batch *fed, float *output,
                            collected *found, cleat_error *error) {
    const cleat_model *model = setup->session->model;
    const cleat_work_graph *graph = &setup->session->work->evaluate[fed->micro_batch->bucket];
    const int64_t each = cleat_tensor_elements(graph->built.output) / fed->host.batch;
    cleat_status status = cleat_members_keep(setup->members, setup->member, setup->loaded, fed, output, error);
    for (int64_t b = 0; b < fed->host.count && !status && setup->member == 0; ++b) {
        const float *outputs[CLEAT_MAX_MEMBERS];
        const uint32_t sample = fed->host.samples[b];
        status = cleat_members_combine(setup->members, setup->loaded, sample, output + b * each, outputs, error);
        if (!status && model->type->metric_update_members && setup->members->count > 1)
            status = model->type->metric_update_members(model, &fed->host, b, outputs, setup->members->count,
                                                        found->metric_state, error);
    }
    return status;
}

static cleat_status update_metrics(const cleat_evaluation_setup *setup, const cleat_fed_batch *fed,
                                   const cleat_global_batch *all, float *output, collected *found, cleat_error *error) {
    cleat_session *session = setup->session;
    const cleat_work_graph *graph = &session->work->evaluate[fed->micro_batch->bucket];
    cleat_host_batch host = fed->host;
    cleat_session_prepare(session, graph, fed->bytes, &fed->host, all, NULL);
    cleat_status status = cleat_program_check_batch(setup->check, setup->feed, graph, fed, error);
    if (!status) status = cleat_feed_run(setup->feed, graph, fed, error);
    if (!status) status = cleat_exec_read_unchecked(session->exec, graph->index, graph->built.output, output, error);
    if (!status) cleat_output_check_add(&found->bad, session, fed, output);
    if (!status && setup->members) status = combine(setup, fed, output, found, error);
    if (found->examples) host.badness = cleat_alloc((size_t)host.batch, sizeof *host.badness);
    for (int64_t b = 0; b < host.batch && host.badness; ++b) host.badness[b] = NAN;
    if (!status && (!setup->members || setup->member == 0))
        status = cleat_model_metric_update(session->model, &host, output, found->metric_state, error);
    if (!status && found->examples)
        cleat_run_examples_keep(found->examples, session->model, &host, output,
                                cleat_tensor_elements(graph->built.output) / host.batch);
    cleat_free(host.badness);
    cleat_feed_release(setup->feed, fed);
    return status;
}

static cleat_status run_pass(const cleat_evaluation_setup *setup, const cleat_batches *batches,
                             const cleat_global_batch *all, collected *found, cleat_error *error) {
    const cleat_workload *work = setup->session->work;
    int64_t most = 0;
    for (size_t b = 0; b < work->n_buckets; ++b) {
        int64_t elements = cleat_tensor_elements(work->evaluate[b].built.output);
        if (elements > most) most = elements;
    }
    float *output = cleat_alloc((size_t)most, sizeof *output);
    if (!output) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the outputs of an evaluation");
    cleat_status status = cleat_feed_start(setup->feed, batches, 0, NULL, error);
    for (cleat_fed_batch fed; !status;) {
        status = cleat_feed_next(setup->feed, &fed, error);
        if (status || !fed.micro_batch) break;
        if (setup->stop && *setup->stop) {
            cleat_feed_release(setup->feed, &fed);
            status = cleat_fail(error, CLEAT_ERR_INTERRUPTED, "the evaluation was interrupted");
            break;
        }
        status = update_metrics(setup, &fed, all, output, found, error);
    }
    cleat_free(output);
    return status;
}

/* The terms are running sums on the device. They must be zero before a pass, and zero again after it for
 * the next training step. */
static cleat_status read_and_clear_terms(cleat_session *session, float *terms, cleat_error *error) {
    float zeros[CLEAT_MAX_METRICS] = {0};
    cleat_status status =
        terms ? cleat_exec_read_unchecked(session->exec, 0, session->work->terms, terms, error) : CLEAT_OK;
    return status ? status : cleat_exec_write_unchecked(session->exec, 0, session->work->terms, zeros, error);
}

/* terms [CLEAT_MAX_METRICS] */
static cleat_status evaluate_part(const cleat_evaluation_setup *setup, const uint32_t *samples, size_t count,
                                  const cleat_global_batch *all, float *terms, collected *found, cleat_error *error) {
    cleat_session *session = setup->session;
    cleat_batches *batches = NULL;
    const cleat_batches_spec spec = {.dataset = setup->dataset,
                                     .samples = samples,
                                     .n_samples = count,
                                     .buckets = session->work->buckets,
                                     .n_buckets = session->work->n_buckets};
    cleat_status status = cleat_batches_create(&spec, &batches, error);
    if (!status) status = read_and_clear_terms(session, NULL, error);
    if (!status) status = run_pass(setup, batches, all, found, error);
    if (!status) status = read_and_clear_terms(session, terms, error);
    if (status == CLEAT_ERR_INTERRUPTED && read_and_clear_terms(session, NULL, error)) status = CLEAT_ERR_DEVICE;
    cleat_feed_stop(setup->feed);
    cleat_batches_destroy(batches);
    return status;
}

/* Combines the results of the ranks' parts. sums [n_terms + 1] */
static cleat_status bring_together(const cleat_evaluation_setup *setup, double *sums, collected *found,
                                   cleat_error *error) {
    const cleat_model *model = setup->session->model;
    const cleat_data_parallel *parallel = setup->parallel;
    const size_t n_sums = (size_t)cleat_model_terms(model) + 1;
    cleat_status status = cleat_pass_add(parallel, sums, n_sums, error);
    if (!status) status = cleat_pass_add(parallel, found->metric_state, cleat_model_metric_state_size(model), error);
    if (!status) status = cleat_pass_add_check(parallel, &found->bad, error);
    if (!status && found->examples) status = cleat_run_examples_collect(found->examples, parallel, error);
    return status;
}

static void write_results(const cleat_session *session, const cleat_dataset *dataset, const double *sums,
                          const collected *found, cleat_metrics *metrics, char *bad) {
    const int n_terms = cleat_model_terms(session->model);
    cleat_metrics made = {0};
    cleat_metrics_add(&made, "loss", sums[n_terms]);
    for (int i = 0; i < n_terms; ++i) cleat_metrics_add(&made, cleat_model_term(session->model, i), sums[i]);
    cleat_model_metric_compute(session->model, found->metric_state, &made);
    *metrics = made;
    cleat_output_check_format(&found->bad, session, dataset, bad);
    if (found->bad.bad == 0 && !isfinite(sums[n_terms]))
        snprintf(bad, CLEAT_OUTPUT_CHECK_TEXT,
                 "every output is finite, but the loss is %g: check the targets in the data", sums[n_terms]);
}

cleat_status cleat_evaluate_samples(const cleat_evaluation_setup *setup, const uint32_t *samples, size_t count,
                                    cleat_run_examples *examples, cleat_metrics *metrics, char *bad,
                                    cleat_error *error) {
    cleat_model *model = setup->session->model;
    cleat_ranks *ranks = setup->parallel ? setup->parallel->ranks : NULL;
    float terms[CLEAT_MAX_METRICS] = {0};
    double sums[CLEAT_MAX_METRICS];
    size_t first, own;
    if (cleat_model_terms(model) + 1 > CLEAT_MAX_METRICS)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "the model has too many loss terms");
    cleat_status status = cleat_pass_part(setup->parallel, count, &first, &own, error);
    if (status) return status;
    collected found = {.metric_state = cleat_alloc(cleat_model_metric_state_size(model), sizeof *found.metric_state),
                       .examples = examples};
    if (!found.metric_state) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the metrics");
    if (examples) cleat_run_examples_begin(examples, model, setup->dataset, samples, count);
    /* The whole pass as one global batch, because the loss is the mean over it, even if ranks evaluate parts of it. */
    cleat_global_batch all = {.samples = (int64_t)count};
    for (size_t i = 0; i < count; ++i) all.items += cleat_dataset_items(setup->dataset, samples[i]);
    status = evaluate_part(setup, samples + first, own, &all, terms, &found, error);
    for (int i = 0; i < CLEAT_MAX_METRICS; ++i) sums[i] = (double)terms[i];
    status = cleat_ranks_agree(ranks, status, error);
    if (!status) status = bring_together(setup, sums, &found, error);
    for (int i = 0; i <= cleat_model_terms(model) && setup->members; ++i) { /* the mean of the members so far */
        setup->members->losses[i] += sums[i];
        sums[i] = setup->members->losses[i] / (double)(setup->members->count - setup->member);
    }
    if (!status && setup->fits && model->type->fit_outputs)
        status = model->type->fit_outputs(model, found.metric_state, setup->dataset, error);
    if (!status) write_results(setup->session, setup->dataset, sums, &found, metrics, bad);
    if (!status && examples)
        cleat_run_examples_end(examples, found.metric_state);
    else
        cleat_free(found.metric_state);
    return status;
}

/* Training samples are limited to those that the profile trains on. */
static cleat_status list_split(const cleat_profile *profile, const cleat_dataset *dataset, cleat_split split,
                               uint32_t **samples, size_t *count, cleat_error *error) {
    size_t limit = (size_t)profile->data->limit;
    cleat_status status = cleat_dataset_samples(dataset, split, samples, count, error);
    if (!status && split == CLEAT_SPLIT_TRAIN && limit > 0 && limit < *count) *count = limit;
    return status;
}

/* Data without splits are held-out data: `val` and `test` select all of them. */
static cleat_status choose_samples(const cleat_profile *profile, cleat_dataset *dataset, const char *split,
                                   uint32_t **samples, size_t *count, cleat_error *error) {
    int s = 0;
    while (s < CLEAT_SPLITS && strcmp(split, cleat_split_name((cleat_split)s)) != 0) ++s;
    const bool all = strcmp(split, "all") == 0;
    if (s == CLEAT_SPLITS && !all)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "unknown split '%s'; the splits are train, val, test and all",
                          split);
    cleat_status status = all ? cleat_dataset_make_whole(dataset, error) : CLEAT_OK;
    if (status) return status;
    if (!all && !cleat_dataset_is_whole(dataset))
        return list_split(profile, dataset, (cleat_split)s, samples, count, error);
    if (s == CLEAT_SPLIT_TRAIN)
        return cleat_fail(error, CLEAT_ERR_NOT_FOUND,
                          "%s: no split 'train': the file is too short for the splits of the profile, so it is not the "
                          "file of the training; use split 'all', or set data.path to that file",
                          profile->data->path);
    *count = cleat_dataset_count(dataset);
    return cleat_list_samples(0, *count, samples, error);
}

/* Names the splits that have samples. */
static cleat_status no_samples(const cleat_profile *profile, const cleat_dataset *dataset, const char *split,
                               cleat_error *error) {
    size_t counts[CLEAT_SPLITS] = {0};
    for (size_t i = 0; i < cleat_dataset_count(dataset); ++i) ++counts[cleat_dataset_split(dataset, i)];
    return cleat_fail(
        error, CLEAT_ERR_NOT_FOUND,
        "%s: split '%s' has no samples; split 'all' has all of them (train %zu, val %zu, test %zu): choose "
        "with --split, or give other data with --data",
        profile->data->path, split, counts[CLEAT_SPLIT_TRAIN], counts[CLEAT_SPLIT_VAL], counts[CLEAT_SPLIT_TEST]);
}

/* Rank 0 writes the examples for all; the others receive its status. */
static cleat_status write_examples(cleat_run_examples *examples, const cleat_loaded_model *loaded, const char *path,
                                   const cleat_run_examples_place *place, cleat_error *error) {
    cleat_ranks *ranks = loaded->parallel.ranks;
    cleat_status status = CLEAT_OK;
    if (cleat_ranks_rank(ranks) == 0) status = cleat_run_examples_write(examples, loaded->model, path, place, error);
    return cleat_ranks_agree(ranks, status, error);
}

/* An evaluation of members: combined on one split, or, for `folds`, of each on its validation samples. */
typedef struct evaluation {
    const cleat_member *members;
    size_t n;
    const char *split, *path;
    const char *folds; /* folder for the predictions of the validation samples; NULL: they are combined */
    cleat_ranks *ranks;
    cleat_class_table *table; /* NULL: not wanted */
    cleat_members all;
} evaluation;

/* Predictions of folds: all of them after the last, but of families with files of each sample those of this fold. */
static cleat_status write_fold(evaluation *e, const cleat_loaded_model *loaded, bool is_last, cleat_error *error) {
    cleat_prediction *all = e->all.outputs;
    size_t count = 0;
    if (!is_last && !cleat_model_writes_each(loaded->model)) return CLEAT_OK;
    for (size_t i = 0; i < e->all.samples; ++i) {
        cleat_prediction one = all[i];
        one.dataset = loaded->dataset;
        all[i].output = NULL;
        if (one.output) cleat_members_rescale(&e->all, loaded->dataset, true, (float *)one.output);
        if (one.output) all[count++] = one;
    }
    cleat_status status = cleat_folder_make(e->folds, error);
    if (!status) status = cleat_model_write(loaded->model, all, count, e->folds, error);
    for (size_t i = 0; i < count; ++i) cleat_prediction_free(&all[i]);
    return status;
}

static cleat_status evaluate_member(evaluation *e, size_t m, cleat_metrics *metrics, cleat_error *error) {
    const cleat_member *member = &e->members[m];
    const cleat_profile *profile = e->members[0].profile;
    const bool keeps = e->n > 1 || e->folds;
    const char *path = m == 0 ? e->path : NULL;
    cleat_class_table *table = m == 0 ? e->table : NULL;
    cleat_run_examples_place place = {.metric = profile->run.metric, .split = e->split};
    cleat_run_examples examples = {0};
    cleat_loaded_model loaded = {.flops = e->all.flops}; /* all members have equal parts of ranks */
    cleat_feed *feed = NULL;
    uint32_t *samples = NULL;
    size_t count = 0;
    char bad[CLEAT_OUTPUT_CHECK_TEXT] = "";
    cleat_status status = cleat_load_model(member->profile, member->checkpoint, profile->data->path,
                                           CLEAT_FOR_EVALUATION, e->ranks, &loaded, error);
    if (!status) status = choose_samples(profile, loaded.dataset, e->split, &samples, &count, error);
    if (!status && count == 0) status = no_samples(profile, loaded.dataset, e->split, error);
    if (!status && keeps) status = cleat_members_add(&e->all, e->folds ? 1 : e->n, &loaded, member->profile, error);
    if (!status)
        cleat_log(CLEAT_LOG_INFO, "evaluating %zu samples, split '%s' of %s", count, e->split, profile->data->path);
    if (!status) status = cleat_feed_open(loaded.session, loaded.dataset, &feed, error);
    status = cleat_ranks_agree(e->ranks, status, error);
    if (e->folds) memset(e->all.losses, 0, sizeof e->all.losses);
    const cleat_evaluation_setup setup = {.session = loaded.session,
                                          .feed = feed,
                                          .dataset = loaded.dataset,
                                          .parallel = &loaded.parallel,
                                          .check = loaded.check,
                                          .members = keeps ? &e->all : NULL,
                                          .loaded = &loaded,
                                          .member = e->folds ? 0 : m};
    if (!status)
        status = cleat_evaluate_samples(&setup, samples, count, path || table ? &examples : NULL, metrics, bad, error);
    status = cleat_ranks_agree(e->ranks, status, error);
    place.step = loaded.step;
    place.epoch = loaded.epoch;
    if (!status && path) status = write_examples(&examples, &loaded, path, &place, error);
    if (!status && table) status = cleat_model_class_table(loaded.model, examples.metric_state, table, error);
    if (!status && e->folds) status = write_fold(e, &loaded, m == 0, error);
    if (!status && bad[0])
        status = cleat_fail(error, CLEAT_ERR_NAN, "evaluation of %s: %s",
                            member->checkpoint ? member->checkpoint : member->profile->init, bad);
    cleat_run_examples_free(&examples);
    cleat_feed_close(feed);
    cleat_samples_free(samples);
    cleat_loaded_model_close(&loaded);
    return status;
}

cleat_status cleat_evaluate_members(const cleat_member *members, size_t n, const char *split, const char *path,
                                    cleat_ranks *ranks, cleat_metrics *metrics, cleat_class_table *table,
                                    cleat_error *error) {
    evaluation e = {.members = members, .n = n, .split = split, .path = path, .ranks = ranks, .table = table};
    cleat_status status = cleat_members_check(members, n, error);
    for (size_t m = n; m-- > 0 && !status;) {
        cleat_metrics found = {.count = 0};
        status = evaluate_member(&e, m, &found, error);
        if (m == 0 && found.count) *metrics = found;
    }
    cleat_members_free(&e.all);
    return status;
}

cleat_status cleat_evaluate_folds(const cleat_member *folds, size_t n, const char *out, cleat_metrics *metrics,
                                  cleat_error *error) {
    evaluation e = {.members = folds, .n = n, .split = "val", .folds = out};
    cleat_status status = cleat_members_check(folds, n, error);
    for (size_t m = n; m-- > 0 && !status;) status = evaluate_member(&e, m, &metrics[m], error);
    cleat_members_free(&e.all);
    return status;
}

cleat_status cleat_evaluate_ranks(const cleat_profile *profile, const char *checkpoint, const char *split,
                                  const char *path, cleat_ranks *ranks, cleat_metrics *metrics, cleat_error *error) {
    const cleat_member one = {profile, checkpoint};
    return cleat_evaluate_members(&one, 1, split, path, ranks, metrics, NULL, error);
}

cleat_status cleat_evaluate_examples(const cleat_profile *profile, const char *checkpoint, const char *split,
                                     const char *path, cleat_metrics *metrics, cleat_error *error) {
    return cleat_evaluate_ranks(profile, checkpoint, split, path, NULL, metrics, error);
}

cleat_status cleat_evaluate(const cleat_profile *profile, const char *checkpoint, const char *split,
                            cleat_metrics *metrics, cleat_error *error) {
    return cleat_evaluate_ranks(profile, checkpoint, split, NULL, NULL, metrics, error);
}
