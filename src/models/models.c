/* Calls from the runtime into the model families. */
#include "models/model.h"

#include "core/files.h"
#include "core/memory.h"
#include "graph/graph.h"
#include "models/param_rules.h"
#include "models/targets.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

cleat_status cleat_model_create(const cleat_model_class *family, const cleat_data_settings *settings,
                                const cleat_model_options *options, cleat_model **model, cleat_error *error) {
    cleat_data_settings *copy = NULL;
    cleat_model *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a model");
    cleat_status status = cleat_settings_clone(family, settings, &copy, error);
    if (status) {
        cleat_free(made);
        return status;
    }
    *made = (cleat_model){.type = family, .settings = copy, .options = *options};
    *model = made;
    return CLEAT_OK;
}

void cleat_model_destroy(cleat_model *model) {
    if (!model) return;
    cleat_settings_destroy(model->type, model->settings);
    cleat_free(model->own);
    cleat_free(model);
}

const cleat_model_origin *cleat_model_origin_of(const cleat_model_class *type, const char *family) {
    for (const cleat_model_origin *one = type->origins; one && one->type; ++one)
        if (strcmp(one->type, family) == 0) return one;
    return NULL;
}

const char *cleat_model_name(const cleat_model *model) {
    return model->type->name;
}

int cleat_model_terms(const cleat_model *model) {
    return model->type->n_terms;
}

const char *cleat_model_term(const cleat_model *model, int term) {
    const char *name = cleat_problem_term(cleat_settings_problem(model->type, model->settings));
    return name ? name : model->type->terms[term];
}

cleat_status cleat_model_check_data(const cleat_model *model, const char *path, cleat_error *error) {
    return model->type->check_data ? model->type->check_data(model, path, error) : CLEAT_OK;
}

cleat_status cleat_model_check_path(const cleat_model *model, const char *path, cleat_error *error) {
    (void)model;
    if (cleat_file_exists(path) || cleat_folder_exists(path)) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "%s: no such file or folder (data.path)", path);
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
    const cleat_lora lora = cleat_model_lora(model, mode);
    cleat_nn_set_lora(graph, lora.rank > 0 ? &lora : NULL);
    model->type->build(model, graph, mode, batch, length, built);
    cleat_nn_set_lora(graph, NULL);
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
    cleat_metric *metric = &metrics->items[metrics->count++];
    snprintf(metric->name, sizeof metric->name, "%s", name);
    metric->value = value;
}

cleat_status cleat_model_keep(const cleat_model *model, const cleat_host_batch *batch, int64_t b, const float *output,
                              int64_t each, cleat_prediction *prediction, cleat_error *error) {
    float *kept = NULL;
    int64_t values = each;
    cleat_status status = CLEAT_OK;
    if (model->type->condense) {
        status = model->type->condense(model, batch, b, output + b * each, each, &kept, &values, error);
    } else if ((kept = cleat_alloc((size_t)each, sizeof *kept))) {
        memcpy(kept, output + b * each, (size_t)each * sizeof *kept);
    } else {
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a prediction");
    }
    if (status) return status;
    *prediction = (cleat_prediction){.dataset = batch->dataset,
                                     .sample = batch->samples[b],
                                     .output = kept,
                                     .length = batch->length,
                                     .values = values};
    return CLEAT_OK;
}

void cleat_prediction_free(cleat_prediction *prediction) {
    cleat_free((float *)prediction->output);
    prediction->output = NULL;
}

bool cleat_model_writes_each(const cleat_model *model) {
    return model->type->writes_each;
}

cleat_status cleat_model_write(const cleat_model *model, const cleat_prediction *predictions, size_t count,
                               const char *folder, cleat_error *error) {
    return model->type->write(model, predictions, count, folder, error);
}
