/* The model families, and the calls that reach them. A family is one line in this list. */
#include "models/model.h"

#include "core/memory.h"

/* By cleat_model_type. */
static const cleat_model_class *const families[] = {&cleat_rna_transformer};

cleat_status cleat_model_create(const cleat_profile *profile, cleat_model **model, cleat_error *error) {
    size_t type = (size_t)profile->model.type;
    if (type >= sizeof families / sizeof families[0])
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "model type %zu does not exist", type);
    cleat_model *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a model");
    made->type = families[type];
    made->profile = *profile;
    made->profile.origins = NULL; /* the profile's own */
    *model = made;
    return CLEAT_OK;
}

cleat_status cleat_model_from_reference(const char *config, cleat_model **model, cleat_error *error) {
    cleat_profile *defaults = NULL;
    cleat_model *made = NULL;
    cleat_status status;
    cJSON *json = cJSON_Parse(config);
    if (!json) return cleat_fail(error, CLEAT_ERR_FORMAT, "the trajectory's config is not JSON: %.200s", config);
    status = cleat_profile_create(&defaults, error);
    if (status == CLEAT_OK) status = cleat_model_create(defaults, &made, error);
    if (status == CLEAT_OK) {
        status = CLEAT_ERR_NOT_SUPPORTED;
        for (size_t i = 0; i < sizeof families / sizeof families[0] && status != CLEAT_OK; ++i)
            if (families[i]->from_reference(json, made)) {
                made->type = families[i];
                status = CLEAT_OK;
            }
        if (status != CLEAT_OK)
            cleat_fail(error, status, "no model family of this version knows the trajectory's config %.300s", config);
    }
    cleat_profile_destroy(defaults);
    cJSON_Delete(json);
    if (status != CLEAT_OK) {
        cleat_model_destroy(made);
        return status;
    }
    *model = made;
    return CLEAT_OK;
}

void cleat_model_destroy(cleat_model *model) {
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

int cleat_model_metrics(const cleat_model *model) {
    return model->type->n_metrics;
}

const char *cleat_model_metric(const cleat_model *model, int metric) {
    return model->type->metrics[metric].name;
}

bool cleat_model_metric_rises(const cleat_model *model, int metric) {
    return model->type->metrics[metric].rises;
}

cleat_status cleat_model_open_data(const cleat_model *model, const char *path, cleat_mode mode, cleat_dataset **dataset,
                                   cleat_error *error) {
    return model->type->open_data(model, path, mode, dataset, error);
}

void cleat_model_build(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch, int64_t length,
                       cleat_model_graph *built) {
    model->type->build(model, graph, mode, batch, length, built);
}

void cleat_model_scale(const cleat_model *model, const cleat_host_batch *batch, const cleat_window *window,
                       float *scale) {
    model->type->scale(model, batch, window, scale);
}

cleat_status cleat_model_measure(const cleat_model *model, const cleat_host_batch *batch, const float *output,
                                 double *sums, double *counts, cleat_error *error) {
    return model->type->measure(model, batch, output, sums, counts, error);
}

cleat_status cleat_model_write(const cleat_model *model, const cleat_prediction *predictions, size_t count,
                               const char *folder, cleat_error *error) {
    return model->type->write(model, predictions, count, folder, error);
}

void cleat_model_reference_input(const cleat_model *model, const cleat_reference *reference, const char *name,
                                 void *values) {
    model->type->reference_input(model, reference, name, values);
}
