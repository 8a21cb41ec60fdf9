/* Builds and plans the graphs of a workload. */
#include "fit/workload.h"

#include "cleat/ops.h"
#include "core/kernel_shape.h"
#include "core/memory.h"
#include "graph/graph.h"
#include "graph/plan.h"
#include "graph/recompute.h"
#include "graph/store.h"
#include "models/model.h"
#include "models/param_rules.h"
#include "ops/lib/tiles.h"

#include <stdio.h>

cleat_dtype cleat_precision_storage(int precision, const cleat_device_facts *facts) {
    const bool units = facts->matrix_unit != CLEAT_MATRIX_NONE && !cleat_matrix_is_emulated(facts->matrix_unit);
    if (precision == CLEAT_PRECISION_AUTO) return units ? CLEAT_F16 : CLEAT_F32;
    if (precision == CLEAT_PRECISION_F32) return CLEAT_F32;
    if (precision == CLEAT_PRECISION_TF32) return cleat_matrix_refuse(facts, CLEAT_TF32) ? CLEAT_F32 : CLEAT_TF32;
    return precision == CLEAT_PRECISION_F16 ? CLEAT_F16 : CLEAT_BF16;
}

void cleat_warn_no_tf32(int precision, const cleat_device_facts *facts) {
    const char *why = cleat_matrix_refuse(facts, CLEAT_TF32);
    if (precision == CLEAT_PRECISION_TF32 && why)
        cleat_log(CLEAT_LOG_WARNING,
                  "train.precision = tf32: %s trains in f32: %s; train.precision = auto chooses one for this device",
                  facts->name, why);
}

cleat_precision cleat_storage_precision(cleat_dtype storage) {
    if (storage == CLEAT_F32) return CLEAT_PRECISION_F32;
    if (storage == CLEAT_TF32) return CLEAT_PRECISION_TF32;
    return storage == CLEAT_F16 ? CLEAT_PRECISION_F16 : CLEAT_PRECISION_BF16;
}

static cleat_status build_graph(cleat_workload *work, const char *name, cleat_mode mode, size_t bucket,
                                const cleat_device_facts *facts, cleat_work_graph *out, cleat_error *error) {
    char label[CLEAT_NAME];
    int64_t batch = work->buckets[bucket].micro_batch_size, length = work->buckets[bucket].length;
    snprintf(label, sizeof label, "%s %lld x %lld", name, (long long)batch, (long long)length);
    cleat_status status = cleat_graph_create(work->store, label, &out->graph, error);
    if (status) return status;
    if (work->storage != CLEAT_F32) cleat_autocast(out->graph, work->storage);
    if (mode == CLEAT_MODE_TRAIN && work->recompute == CLEAT_RECOMPUTE_CHEAP)
        cleat_graph_recompute_cheap(out->graph);
    else
        cleat_graph_set_recompute(out->graph, mode == CLEAT_MODE_TRAIN ? work->recompute : 0);
    cleat_model_build(work->model, out->graph, mode, batch, length, &out->built);
    cleat_graph_set_wide(out->graph, facts->work_group == 1);
    cleat_graph_fuse(out->graph);
    return cleat_graph_status(out->graph, error);
}

/* Builds the graph norm -> optimizer -> log_step, which runs once per optimizer step for every model; for f16
 * with the loss scale around it. */
static cleat_status build_update(cleat_workload *work, bool host_norm, cleat_error *error) {
    cleat_status status = cleat_graph_create(work->store, "update", &work->update.graph, error);
    if (status) return status;
    cleat_graph *graph = work->update.graph;
    const bool scaled = work->storage == CLEAT_F16;
    int64_t terms = cleat_model_terms(work->model) + 1, eight = 8, one = 1;
    int64_t ring[2] = {CLEAT_RING, terms + (scaled ? 2 : 1)};
    work->hyper = cleat_input(graph, "hyper", CLEAT_F32, 1, &eight);
    work->slot = cleat_input(graph, "slot", CLEAT_I32, 1, &one);
    work->terms = cleat_state(graph, "terms", CLEAT_F32, 1, &terms);
    work->ring = cleat_state(graph, "ring", CLEAT_F32, 2, ring);
    if (host_norm) work->norm = cleat_input(graph, "norm", CLEAT_F32, 1, &one);
    cleat_tensor *norm = work->norm, *hyper = work->hyper;
    if (scaled) work->loss_scale = cleat_loss_scale_states(graph);
    if (scaled && host_norm)
        cleat_loss_scale_unscale(graph, &work->loss_scale, &norm, &hyper);
    else if (scaled)
        norm = cleat_unscaled_grad_norm(graph, &work->loss_scale, &hyper);
    else if (!host_norm)
        norm = cleat_grad_norm(graph);
    const cleat_model_options *options = &work->model->options;
    if (options->optimizer == CLEAT_OPTIMIZER_SGD)
        cleat_sgd(graph, options->has_momentum, hyper, norm, work->loss_scale.loss_scale);
    else if (options->optimizer == CLEAT_OPTIMIZER_LION)
        cleat_lion(graph, hyper, norm, work->loss_scale.loss_scale);
    else
        cleat_adamw(graph, hyper, norm, work->loss_scale.loss_scale);
    cleat_log_step(graph, work->terms, norm, scaled ? &work->loss_scale : NULL,
                   (int)options->loss_scale_growth_interval, work->slot, work->ring);
    return cleat_graph_status(graph, error);
}

/* Comes after all others: only then is it known whether half weights exist. */
static cleat_status build_refresh(cleat_workload *work, cleat_error *error) {
    if (!cleat_has_half_weights(work->store)) return CLEAT_OK;
    cleat_status status = cleat_graph_create(work->store, "copies", &work->refresh.graph, error);
    if (status) return status;
    cleat_refresh_half_weights(work->refresh.graph);
    return cleat_graph_status(work->refresh.graph, error);
}

static cleat_status build_graphs(cleat_workload *work, const cleat_workload_spec *spec, cleat_error *error) {
    const cleat_purpose purpose = spec->purpose;
    cleat_status status = CLEAT_OK;
    for (size_t b = 0; b < work->n_buckets && !status; ++b) {
        if (purpose == CLEAT_FOR_TRAINING)
            status = build_graph(work, "train", CLEAT_MODE_TRAIN, b, spec->facts, &work->train[b], error);
        if (status) break;
        if (purpose == CLEAT_FOR_GENERATION)
            status = build_graph(work, "generate", CLEAT_MODE_GENERATE, b, spec->facts, &work->evaluate[b], error);
        else if (purpose == CLEAT_FOR_PREDICTION)
            status = build_graph(work, "predict", CLEAT_MODE_PREDICT, b, spec->facts, &work->evaluate[b], error);
        else
            status = build_graph(work, "evaluate", CLEAT_MODE_EVALUATE, b, spec->facts, &work->evaluate[b], error);
    }
    if (!status) status = cleat_model_check_adapters(work->model, work->store, error);
    if (!status) status = cleat_store_arrange(work->store, error);
    if (!status && purpose == CLEAT_FOR_TRAINING) status = build_update(work, spec->host_norm, error);
    if (!status) status = build_refresh(work, error);
    if (!status && purpose < CLEAT_FOR_PREDICTION) work->terms = work->evaluate[0].built.terms;
    return status;
}

static int64_t input_offset(const cleat_workload *work, const cleat_work_graph *graph, const char *name) {
    const cleat_tensor *tensor = cleat_graph_find(graph->graph, name);
    return tensor ? work->plan->layouts[graph->index].tensors[tensor->index].offset : -1;
}

static void find_inputs(const cleat_workload *work, cleat_work_graph *graph) {
    graph->sample_weight_offset = input_offset(work, graph, "scale");
    graph->rng_offset = input_offset(work, graph, "rng");
    graph->seed_offset = input_offset(work, graph, "seed");
    graph->samples_offset = input_offset(work, graph, "samples");
}

static cleat_status plan_graphs(cleat_workload *work, const cleat_device_facts *facts, const cleat_tuning_table *tuning,
                                cleat_error *error) {
    cleat_graph *graphs[2 * CLEAT_BUCKETS + 2] = {NULL};
    cleat_work_graph *owners[2 * CLEAT_BUCKETS + 2];
    size_t count = 0;
    for (size_t b = 0; b < work->n_buckets; ++b)
        if (work->train[b].graph) owners[count++] = &work->train[b];
    for (size_t b = 0; b < work->n_buckets; ++b)
        if (work->evaluate[b].graph) owners[count++] = &work->evaluate[b];
    if (work->update.graph) owners[count++] = &work->update;
    if (work->refresh.graph) owners[count++] = &work->refresh;
    for (size_t i = 0; i < count; ++i) {
        owners[i]->index = i;
        graphs[i] = owners[i]->graph;
    }
    cleat_status status =
        cleat_plan_create_with(graphs, count, facts, cleat_choose_tuned, (void *)tuning, &work->plan, error);
    for (size_t i = 0; i < count && !status; ++i) find_inputs(work, owners[i]);
    return status;
}

cleat_status cleat_workload_create(const cleat_workload_spec *spec, cleat_workload **workload, cleat_error *error) {
    const size_t n = spec->n_buckets;
    if (n < 1 || n > CLEAT_BUCKETS)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%zu length buckets; the number must be 1 to %d", n,
                          CLEAT_BUCKETS);
    cleat_workload *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a workload");
    made->model = spec->model;
    made->storage = cleat_precision_storage(spec->model->options.precision, spec->facts);
    made->recompute = spec->recompute;
    made->n_buckets = n;
    for (size_t b = 0; b < n; ++b) made->buckets[b] = spec->buckets[b];
    cleat_status status = cleat_store_create(&made->store, error);
    if (!status && spec->purpose == CLEAT_FOR_GENERATION)
        cleat_store_set_rules(made->store, cleat_model_generation_rule, (void *)made->model);
    /* Evaluation and prediction train nothing, so they need no rules. */
    if (!status && spec->purpose == CLEAT_FOR_TRAINING && cleat_model_has_rules(made->model)) {
        cleat_store_set_rules(made->store, cleat_model_choose_rule, (void *)made->model);
        status = cleat_model_check_rules(made->model, error);
    }
    if (!status) status = build_graphs(made, spec, error);
    if (!status) status = plan_graphs(made, spec->facts, spec->tuning, error);
    if (status) {
        cleat_workload_destroy(made);
        return status;
    }
    *workload = made;
    return CLEAT_OK;
}

void cleat_workload_destroy(cleat_workload *workload) {
    if (!workload) return;
    cleat_plan_destroy(workload->plan);
    for (size_t b = 0; b < workload->n_buckets; ++b) {
        cleat_graph_destroy(workload->train[b].graph);
        cleat_graph_destroy(workload->evaluate[b].graph);
    }
    cleat_graph_destroy(workload->update.graph);
    cleat_graph_destroy(workload->refresh.graph);
    cleat_store_destroy(workload->store);
    cleat_free(workload);
}

bool cleat_workload_is_whole(const cleat_workload *workload) {
    for (size_t b = 0; b < workload->n_buckets; ++b)
        if (workload->buckets[b].micro_batch_size < workload->buckets[b].global_batch_size) return false;
    return true;
}

size_t cleat_workload_segments(const cleat_workload *workload) {
    return workload->train[0].graph ? cleat_graph_segments(workload->train[0].graph) : 0;
}
