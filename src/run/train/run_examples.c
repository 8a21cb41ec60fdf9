/* Examples of an evaluation: choosing, keeping, writing. */
#include "train/run_examples.h"

#include "core/files.h"
#include "core/memory.h"

#include <string.h>

/* Forgets the last evaluation, but not the baseline. */
static void clear(cleat_run_examples *examples) {
    for (size_t i = 0; i < examples->n_chosen; ++i) cleat_prediction_free(&examples->predictions[i]);
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
    examples->n_chosen = count < CLEAT_EXAMPLES ? count : CLEAT_EXAMPLES;
    for (size_t i = 0; i < examples->n_chosen; ++i) examples->chosen[i] = samples[i * count / examples->n_chosen];
}

void cleat_run_examples_keep(cleat_run_examples *examples, const cleat_model *model, const cleat_host_batch *batch,
                             const float *output, int64_t each) {
    for (int64_t b = 0; b < batch->count; ++b)
        for (size_t i = 0; i < examples->n_chosen; ++i) {
            cleat_error ignored;
            if (examples->chosen[i] != batch->samples[b] || examples->predictions[i].output) continue;
            cleat_model_keep(model, batch, b, output, each, &examples->predictions[i], &ignored);
        }
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
    for (size_t i = 0; i < examples->n_chosen; ++i)
        if (examples->predictions[i].output) shown[evaluated.n_predictions++] = examples->predictions[i];
    if (!examples->has_baseline) status = cleat_model_baseline(model, &evaluated, &examples->baseline, error);
    examples->has_baseline = examples->has_baseline || !status;
    if (!status) status = cleat_model_examples_json(model, &evaluated, &examples->baseline, &json, error);
    if (!status) return cleat_file_write_text(path, &json, error);
    cleat_string_free(&json);
    return status;
}
