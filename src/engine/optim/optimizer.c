/* An optimizer for networks trained without cleat_train: the graph of a step, and reading and writing its
 * state. */
#include "cleat/optimizer.h"

#include "core/memory.h"
#include "exec/exec.h"
#include "ops/update.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HYPER = 8, GROWTH_INTERVAL = 2000, TEXT = 32 };

struct cleat_optimizer {
    cleat_store *store;
    cleat_graph *graph;
    int moments; /* kept per parameter: AdamW 2, SGD 1 or, without momentum, 0 */
    bool is_sgd;
    cleat_adamw_spec adamw;
    cleat_sgd_spec sgd;
    cleat_tensor *hyper; /* state f32 [8] */
    cleat_tensor *norm;  /* f32 [1] */
    bool is_scaled;
    cleat_loss_scale scale; /* loss scale, if is_scaled */
    int64_t steps;          /* completed steps */
};

/* --- creating --- */

cleat_adamw_spec cleat_adamw_defaults(void) {
    return (cleat_adamw_spec){.beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .weight_decay = 0.01f};
}

typedef struct setting {
    const char *name, *range;
    float value;
    bool is_good;
} setting;

static cleat_status check_settings(const char *kind, const setting *settings, size_t count, cleat_error *error) {
    for (size_t i = 0; i < count; ++i)
        if (!settings[i].is_good)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s: %s is %g; it should be %s", kind, settings[i].name,
                              (double)settings[i].value, settings[i].range);
    return CLEAT_OK;
}

static bool is_decay_rate(float value) {
    return value >= 0 && value < 1;
}

static bool is_not_negative(float value) {
    return value >= 0 && isfinite(value);
}

static cleat_status check_adamw(const cleat_adamw_spec *spec, cleat_error *error) {
    const setting settings[] = {
        {"beta1", "in [0, 1)", spec->beta1, is_decay_rate(spec->beta1)},
        {"beta2", "in [0, 1)", spec->beta2, is_decay_rate(spec->beta2)},
        {"eps", "above 0", spec->eps, spec->eps > 0 && isfinite(spec->eps)},
        {"weight_decay", "0 or more", spec->weight_decay, is_not_negative(spec->weight_decay)},
        {"max_norm", "0 (no clipping) or more", spec->max_norm, is_not_negative(spec->max_norm)},
    };
    return check_settings("AdamW", settings, sizeof settings / sizeof *settings, error);
}

static cleat_status check_sgd(const cleat_sgd_spec *spec, cleat_error *error) {
    const setting settings[] = {
        {"momentum", "in [0, 1)", spec->momentum, is_decay_rate(spec->momentum)},
        {"momentum", "above 0 for nesterov", spec->momentum, spec->momentum > 0 || !spec->nesterov},
        {"weight_decay", "0 or more", spec->weight_decay, is_not_negative(spec->weight_decay)},
        {"max_norm", "0 (no clipping) or more", spec->max_norm, is_not_negative(spec->max_norm)},
    };
    return check_settings("SGD", settings, sizeof settings / sizeof *settings, error);
}

static cleat_status build(cleat_optimizer *optimizer, cleat_error *error) {
    cleat_status status = cleat_graph_create(optimizer->store, "optimizer", &optimizer->graph, error);
    if (status) return status;
    cleat_graph *graph = optimizer->graph;
    optimizer->hyper = cleat_state(graph, "optimizer.hyper", CLEAT_F32, 1, (const int64_t[1]){HYPER});
    cleat_tensor *hyper = optimizer->hyper, *norm;
    if (optimizer->is_scaled) optimizer->scale = cleat_loss_scale_states(graph);
    norm = optimizer->is_scaled ? cleat_unscaled_grad_norm(graph, &optimizer->scale, &hyper) : cleat_grad_norm(graph);
    if (optimizer->is_sgd)
        cleat_sgd(graph, optimizer->moments > 0, hyper, norm, optimizer->scale.loss_scale);
    else
        cleat_adamw(graph, hyper, norm, optimizer->scale.loss_scale);
    if (optimizer->is_scaled) cleat_loss_scale_update(graph, &optimizer->scale, norm, GROWTH_INTERVAL);
    cleat_retain(graph, norm);
    optimizer->norm = norm;
    return cleat_graph_status(graph, error);
}

/* Completes a copy of `settings`, which are checked. */
static cleat_status create(cleat_store *store, cleat_optimizer settings, cleat_optimizer **optimizer,
                           cleat_error *error) {
    if (cleat_store_count(store) == 0)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "an optimizer of a store without parameters: build the graphs to be trained first");
    cleat_optimizer *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for an optimizer");
    *made = settings;
    made->store = store;
    made->is_scaled = cleat_store_has_loss_scale(store);
    cleat_status status = build(made, error);
    if (status) {
        cleat_optimizer_destroy(made);
        return status;
    }
    *optimizer = made;
    return CLEAT_OK;
}

cleat_status cleat_optimizer_create(cleat_store *store, const cleat_adamw_spec *spec, cleat_optimizer **optimizer,
                                    cleat_error *error) {
    const cleat_optimizer settings = {.moments = 2, .adamw = spec ? *spec : cleat_adamw_defaults()};
    cleat_status status = check_adamw(&settings.adamw, error);
    return status ? status : create(store, settings, optimizer, error);
}

cleat_status cleat_optimizer_create_sgd(cleat_store *store, const cleat_sgd_spec *spec, cleat_optimizer **optimizer,
                                        cleat_error *error) {
    cleat_optimizer settings = {.is_sgd = true};
    if (spec) settings.sgd = *spec;
    settings.moments = settings.sgd.momentum > 0 ? 1 : 0;
    cleat_status status = check_sgd(&settings.sgd, error);
    return status ? status : create(store, settings, optimizer, error);
}

void cleat_optimizer_destroy(cleat_optimizer *optimizer) {
    if (!optimizer) return;
    cleat_graph_destroy(optimizer->graph);
    cleat_free(optimizer);
}

cleat_graph *cleat_optimizer_graph(const cleat_optimizer *optimizer) {
    return optimizer->graph;
}

cleat_tensor *cleat_optimizer_grad_norm(const cleat_optimizer *optimizer) {
    return optimizer->norm;
}

/* --- stepping --- */

cleat_status cleat_optimizer_step(cleat_optimizer *optimizer, cleat_exec *exec, double learning_rate,
                                  cleat_error *error) {
    float hyper[HYPER];
    size_t graph = 0;
    cleat_status status = cleat_exec_find_graph(exec, optimizer->graph, &graph, error);
    if (status) return status;
    if (optimizer->is_sgd)
        cleat_sgd_hyper(&optimizer->sgd, learning_rate, hyper);
    else
        cleat_adamw_hyper(&optimizer->adamw, learning_rate, optimizer->steps, hyper);
    status = cleat_exec_enqueue_write(exec, optimizer->hyper, hyper, error);
    if (!status) status = cleat_exec_run(exec, graph, error);
    if (!status) ++optimizer->steps;
    return status;
}

/* --- files --- */

/* Collects NAME.moment1 and NAME.moment2 of every parameter, as far as the optimizer has them. */
static cleat_status collect_moments(const cleat_optimizer *optimizer, cleat_host_tensors *tensors, cleat_error *error) {
    const cleat_store *store = optimizer->store;
    const size_t moments = (size_t)optimizer->moments;
    cleat_status status = cleat_host_tensors_create(moments * store->count,
                                                    optimizer->moments * cleat_store_elements(store), tensors, error);
    if (status) return status;
    for (size_t i = 0; i < store->count; ++i) {
        if (store->params[i]->rule.frozen) continue;
        if (moments > 0) cleat_host_tensors_add(tensors, store->moments1[i], ".moment1");
        if (moments > 1) cleat_host_tensors_add(tensors, store->moments2[i], ".moment2");
    }
    return CLEAT_OK;
}

/* Optimizer state in the metadata of the file. */
typedef struct progress {
    int64_t steps;
    float loss_scale; /* 0: no loss scaling */
    int32_t clean_steps, updates;
} progress;

static cleat_status read_progress(const cleat_optimizer *optimizer, cleat_exec *exec, progress *out,
                                  cleat_error *error) {
    const cleat_loss_scale *scale = &optimizer->scale;
    progress read = {.steps = optimizer->steps};
    cleat_status status = CLEAT_OK;
    if (optimizer->is_scaled) {
        status = cleat_exec_read_unchecked(exec, 0, scale->loss_scale, &read.loss_scale, error);
        if (!status) status = cleat_exec_read_unchecked(exec, 0, scale->clean_steps, &read.clean_steps, error);
        if (!status) status = cleat_exec_read_unchecked(exec, 0, scale->updates, &read.updates, error);
    }
    if (!status) *out = read;
    return status;
}

static cleat_status write_progress(cleat_optimizer *optimizer, cleat_exec *exec, const progress *from,
                                   cleat_error *error) {
    const cleat_loss_scale *scale = &optimizer->scale;
    cleat_status status = CLEAT_OK;
    if (optimizer->is_scaled) {
        status = cleat_exec_write_unchecked(exec, 0, scale->updates, &from->updates, error);
        /* A file of a network in f32 or bf16 contains no scale: the current scale is then kept. */
        if (!status && from->loss_scale > 0)
            status = cleat_exec_write_unchecked(exec, 0, scale->loss_scale, &from->loss_scale, error);
        if (!status) status = cleat_exec_write_unchecked(exec, 0, scale->clean_steps, &from->clean_steps, error);
    }
    if (!status) optimizer->steps = from->steps;
    return status;
}

cleat_status cleat_optimizer_save(const cleat_optimizer *optimizer, cleat_exec *exec, const char *path,
                                  cleat_error *error) {
    cleat_host_tensors tensors;
    progress now = {0};
    char text[4][TEXT];
    cleat_status status = collect_moments(optimizer, &tensors, error);
    if (status) return status;
    status = cleat_host_tensors_read(&tensors, exec, error);
    if (!status) status = read_progress(optimizer, exec, &now, error);
    snprintf(text[0], TEXT, "%lld", (long long)now.steps);
    snprintf(text[1], TEXT, "%.9g", (double)now.loss_scale);
    snprintf(text[2], TEXT, "%d", (int)now.clean_steps);
    snprintf(text[3], TEXT, "%d", optimizer->is_scaled ? (int)now.updates : (int)now.steps);
    const cleat_st_metadata metadata[] = {
        {"steps", text[0]}, {"loss_scale", text[1]}, {"clean_steps", text[2]}, {"updates", text[3]}};
    if (!status) status = cleat_safetensors_write(path, tensors.items, tensors.count, metadata, 4, error);
    cleat_host_tensors_clear(&tensors);
    return status;
}

/* Reads the number `key` of the metadata and checks that it is in [0, most]. */
static cleat_status read_number(const cleat_safetensors *file, const char *path, const char *key, double most,
                                double *value, cleat_error *error) {
    const char *text = cleat_safetensors_metadata(file, key);
    char *end = NULL;
    double number = text ? strtod(text, &end) : -1;
    if (!text || !*text || *end || !(number >= 0 && number <= most))
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: '%s' is %s; a file that cleat_optimizer_save wrote has it",
                          path, key, text ? "no such number" : "missing");
    *value = number;
    return CLEAT_OK;
}

static cleat_status parse_progress(const cleat_safetensors *file, const char *path, progress *out, cleat_error *error) {
    const double most_steps = 9007199254740992.0, most_scale = 1099511627776.0; /* 2^53, 2^40 */
    double steps = 0, scale = 0, clean = 0, updates = 0;
    cleat_status status = read_number(file, path, "steps", most_steps, &steps, error);
    if (!status) status = read_number(file, path, "loss_scale", most_scale, &scale, error);
    if (!status) status = read_number(file, path, "clean_steps", INT32_MAX, &clean, error);
    if (!status) status = read_number(file, path, "updates", INT32_MAX, &updates, error);
    if (!status)
        *out = (progress){.steps = (int64_t)steps,
                          .loss_scale = (float)scale,
                          .clean_steps = (int32_t)clean,
                          .updates = (int32_t)updates};
    return status;
}

cleat_status cleat_optimizer_load(cleat_optimizer *optimizer, cleat_exec *exec, const char *path, cleat_error *error) {
    cleat_host_tensors tensors;
    cleat_safetensors *file = NULL;
    progress then = {0};
    cleat_status status = collect_moments(optimizer, &tensors, error);
    if (status) return status;
    status = cleat_safetensors_open(path, &file, error);
    if (!status) status = parse_progress(file, path, &then, error);
    if (!status) status = cleat_safetensors_copy(file, tensors.items, tensors.count, error);
    if (!status) status = cleat_host_tensors_write(&tensors, exec, error);
    if (!status) status = write_progress(optimizer, exec, &then, error);
    cleat_safetensors_close(file);
    cleat_host_tensors_clear(&tensors);
    return status;
}
