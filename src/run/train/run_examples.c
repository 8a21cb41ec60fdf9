/* Examples of an evaluation: choosing, keeping, writing. */
#include "train/run_examples.h"

#include "core/files.h"
#include "core/memory.h"

#include <string.h>

enum { KEPT = CLEAT_EXAMPLES + CLEAT_WORST };

/* Forgets the last evaluation, but not the baseline. */
static void clear(cleat_run_examples *examples) {
    for (size_t i = 0; i < KEPT; ++i) cleat_prediction_free(&examples->predictions[i]);
    for (size_t i = 0; i < CLEAT_WORST; ++i) examples->worst[i] = (cleat_bad_sample){-1, 0};
    memset(examples->predictions, 0, sizeof examples->predictions);
    cleat_free(examples->metric_state);
    examples->metric_state = NULL;
    examples->n_chosen = 0;
}

void cleat_run_examples_begin(cleat_run_examples *examples, const cleat_model *model, const cleat_dataset *dataset,
                              const uint32_t *samples, size_t count) {
    clear(examples);
    examples->dataset = dataset;
    examples->samples = samples;
    examples->n_samples = count;
    if (!cleat_model_has_examples(model)) return;
    examples->n_chosen = count <= CLEAT_EXAMPLES ? count : CLEAT_EXAMPLES - CLEAT_WORST;
    for (size_t i = 0; i < examples->n_chosen; ++i) examples->chosen[i] = samples[i * count / examples->n_chosen];
}

static bool is_worse(const cleat_bad_sample *a, const cleat_bad_sample *b) {
    return a->badness > b->badness || (a->badness == b->badness && a->sample < b->sample);
}

/* Puts a sample of a batch among the worst, if it is one of them. */
static void keep_worst(cleat_run_examples *examples, const cleat_model *model, const cleat_host_batch *batch, int64_t b,
                       const float *output, int64_t each) {
    const cleat_bad_sample here = {batch->badness[b], batch->samples[b]};
    cleat_prediction *kept = examples->predictions + CLEAT_EXAMPLES, made;
    cleat_error ignored;
    int at = CLEAT_WORST - 1;
    if (!is_worse(&here, &examples->worst[at]) || cleat_model_keep(model, batch, b, output, each, &made, &ignored))
        return;
    cleat_prediction_free(&kept[at]);
    for (; at > 0 && is_worse(&here, &examples->worst[at - 1]); --at) {
        examples->worst[at] = examples->worst[at - 1];
        kept[at] = kept[at - 1];
    }
    examples->worst[at] = here;
    kept[at] = made;
}

void cleat_run_examples_keep(cleat_run_examples *examples, const cleat_model *model, const cleat_host_batch *batch,
                             const float *output, int64_t each) {
    for (int64_t b = 0; b < batch->count; ++b)
        for (size_t i = 0; i < examples->n_chosen; ++i) {
            cleat_error ignored;
            if (examples->chosen[i] != batch->samples[b] || examples->predictions[i].output) continue;
            cleat_model_keep(model, batch, b, output, each, &examples->predictions[i], &ignored);
        }
    for (int64_t b = 0; b < batch->count && batch->badness && examples->n_chosen; ++b)
        keep_worst(examples, model, batch, b, output, each);
}

cleat_status cleat_run_examples_collect(cleat_run_examples *examples, const cleat_data_parallel *parallel,
                                        cleat_error *error) {
    cleat_ranks *ranks = parallel ? parallel->ranks : NULL;
    const size_t count = (size_t)cleat_ranks_count(ranks) * CLEAT_WORST, rank = (size_t)cleat_ranks_rank(ranks);
    cleat_prediction *kept = examples->predictions + CLEAT_EXAMPLES;
    cleat_bad_sample *all = cleat_alloc(count, sizeof *all);
    cleat_status status = all ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the worst samples");
    status = cleat_ranks_agree(ranks, status, error);
    if (!status) memcpy(all + rank * CLEAT_WORST, examples->worst, sizeof examples->worst);
    if (!status) status = cleat_pass_add(parallel, &all->badness, 2 * count, error);
    for (size_t k = CLEAT_WORST; k-- > 0 && !status;) {
        const cleat_prediction one = kept[k];
        size_t place = 0; /* among those of all ranks; at least k, and above the places that are filled below */
        for (size_t i = 0; i < count; ++i) place += is_worse(&all[i], &examples->worst[k]);
        kept[k].output = NULL;
        if (place < CLEAT_WORST)
            kept[place] = one;
        else
            cleat_prediction_free(&(cleat_prediction){.output = one.output});
    }
    cleat_free(all);
    return status ? status : cleat_pass_collect(parallel, examples->dataset, examples->predictions, KEPT, error);
}

void cleat_run_examples_end(cleat_run_examples *examples, double *metric_state) {
    cleat_free(examples->metric_state);
    examples->metric_state = metric_state;
}

void cleat_run_examples_free(cleat_run_examples *examples) {
    clear(examples);
    *examples = (cleat_run_examples){0};
}

cleat_status cleat_run_examples_write(cleat_run_examples *examples, const cleat_model *model, const char *path,
                                      const cleat_run_examples_place *place, cleat_error *error) {
    cleat_prediction shown[CLEAT_EXAMPLES];
    const cleat_prediction *kept = examples->predictions;
    cleat_evaluation evaluated = {.dataset = examples->dataset,
                                  .samples = examples->samples,
                                  .n_samples = examples->n_samples,
                                  .predictions = shown,
                                  .metric_state = examples->metric_state,
                                  .metric = place->metric,
                                  .split = place->split,
                                  .step = place->step,
                                  .epoch = place->epoch};
    cleat_string json = {0};
    cleat_status status = CLEAT_OK;
    if (!cleat_model_has_examples(model) || !examples->metric_state) return CLEAT_OK;
    for (size_t i = CLEAT_EXAMPLES; i < KEPT; ++i)
        if (kept[i].output) shown[evaluated.n_worst++] = kept[i];
    evaluated.n_predictions = evaluated.n_worst;
    for (size_t i = 0, k = 0; i < examples->n_chosen; ++i, k = 0) {
        while (k < evaluated.n_worst && shown[k].sample != examples->chosen[i]) ++k;
        if (kept[i].output && k == evaluated.n_worst) shown[evaluated.n_predictions++] = kept[i];
    }
    if (!examples->has_baseline) status = cleat_model_baseline(model, &evaluated, &examples->baseline, error);
    examples->has_baseline = examples->has_baseline || !status;
    if (!status) status = cleat_model_examples_json(model, &evaluated, &examples->baseline, &json, error);
    if (!status) return cleat_file_write_text(path, &json, error);
    cleat_string_free(&json);
    return status;
}
