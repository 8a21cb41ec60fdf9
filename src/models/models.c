/* The model families, and the calls that reach them. A family is one line in this list. */
#include "models/model.h"

#include "core/memory.h"
#include "graph/graph.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* By cleat_model_type. */
static const cleat_model_class *const families[] = {[CLEAT_MODEL_RNA_TRANSFORMER] = &cleat_rna_transformer,
                                                    [CLEAT_MODEL_TEXT_CLASSIFIER] = &cleat_text_classifier,
                                                    [CLEAT_MODEL_TEXT_TAGGER] = &cleat_text_tagger,
                                                    [CLEAT_MODEL_SERIES_LSTM] = &cleat_series_lstm,
                                                    [CLEAT_MODEL_SERIES_TRANSFORMER] = &cleat_series_transformer,
                                                    [CLEAT_MODEL_SERIES_DENSE] = &cleat_series_dense,
                                                    [CLEAT_MODEL_IMAGE_RESNET] = &cleat_image_resnet,
                                                    [CLEAT_MODEL_MASK_SEGFORMER] = &cleat_mask_segformer,
                                                    [CLEAT_MODEL_EMBERFORMER] = &cleat_emberformer};
enum { FAMILIES = sizeof families / sizeof families[0] };

cleat_status cleat_model_create(const cleat_profile *profile, cleat_model **model, cleat_error *error) {
    size_t type = (size_t)profile->model.type;
    if (type >= FAMILIES) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "model type %zu does not exist", type);
    cleat_model *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a model");
    made->type = families[type];
    made->profile = *profile;
    made->profile.origins = NULL; /* the profile's own */
    *model = made;
    return CLEAT_OK;
}

void cleat_model_destroy(cleat_model *model) {
    if (model) cleat_free(model->own);
    cleat_free(model);
}

const char *cleat_model_name(const cleat_model *model) {
    return model->type->name;
}

int cleat_model_terms(const cleat_model *model) {
    return model->type->n_terms;
}

const char *cleat_model_term(const cleat_model *model, int term) {
    return model->type->terms[term];
}

cleat_status cleat_model_open_data(cleat_model *model, const char *path, cleat_mode mode, const char *fitted,
                                   cleat_dataset **dataset, cleat_error *error) {
    return model->type->open_data(model, path, mode, fitted, dataset, error);
}

cleat_status cleat_model_open_synthetic(const cleat_model *model, int64_t count, int64_t length,
                                        cleat_dataset **dataset, cleat_error *error) {
    const uint64_t seed = 1;
    cleat_synthetic_field fields[CLEAT_MODEL_FIELDS];
    const size_t n_fields = model->type->fields(model, fields);
    return cleat_synthetic_open(fields, n_fields, (size_t)count, length, seed, dataset, error);
}

int64_t cleat_model_fixed_length(const cleat_model *model) {
    return model->type->fixed_length ? model->type->fixed_length(model) : 0;
}

void cleat_model_build(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch, int64_t length,
                       cleat_model_graph *built) {
    model->type->build(model, graph, mode, batch, length, built);
}

void cleat_model_sample_weight(const cleat_model *model, const cleat_host_batch *batch,
                               const cleat_global_batch *global_batch, float *sample_weight) {
    model->type->sample_weight(model, batch, global_batch, sample_weight);
}

size_t cleat_model_metric_state_size(const cleat_model *model) {
    return model->type->metric_state_size(model);
}

cleat_status cleat_model_metric_update(const cleat_model *model, const cleat_host_batch *batch, const float *output,
                                       double *metric_state, cleat_error *error) {
    return model->type->metric_update(model, batch, output, metric_state, error);
}

void cleat_model_metric_compute(const cleat_model *model, const double *metric_state, cleat_metrics *metrics) {
    model->type->metric_compute(model, metric_state, metrics);
}

double cleat_metrics_get(const cleat_metrics *metrics, const char *name) {
    for (size_t i = 0; i < metrics->count; ++i)
        if (strcmp(metrics->items[i].name, name) == 0) return metrics->items[i].value;
    return NAN;
}

void cleat_metrics_add(cleat_metrics *metrics, const char *name, double value) {
    if (metrics->count == CLEAT_MAX_METRICS) return;
    cleat_metric_value *metric = &metrics->items[metrics->count++];
    snprintf(metric->name, sizeof metric->name, "%s", name);
    metric->value = value;
}

bool cleat_model_writes_each(const cleat_model *model) {
    return model->type->writes_each;
}

cleat_status cleat_model_write(const cleat_model *model, const cleat_prediction *predictions, size_t count,
                               const char *folder, cleat_error *error) {
    return model->type->write(model, predictions, count, folder, error);
}
