/* Sessions: from a profile and a device to something that runs. */
#include "train/session.h"

#include "cleat/ops.h"
#include "core/memory.h"
#include "graph/graph.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static cleat_status build_graph(cleat_session *session, const char *name, cleat_mode mode, size_t bucket,
                                cleat_session_graph *out, cleat_error *error) {
    char label[CLEAT_NAME];
    snprintf(label, sizeof label, "%s %lld x %lld", name, (long long)session->buckets[bucket].batch,
             (long long)session->buckets[bucket].length);
    cleat_status status = cleat_graph_create(session->store, label, &out->graph, error);
    if (status != CLEAT_OK) return status;
    cleat_model_build(session->model, out->graph, mode, session->buckets[bucket].batch, session->buckets[bucket].length,
                      &out->built);
    return cleat_graph_status(out->graph, error);
}

/* norm -> AdamW -> report: once an optimizer step, whatever the model. */
static cleat_status build_update(cleat_session *session, cleat_error *error) {
    cleat_status status = cleat_graph_create(session->store, "update", &session->update.graph, error);
    if (status != CLEAT_OK) return status;
    cleat_graph *graph = session->update.graph;
    int64_t terms = cleat_model_terms(session->model) + 1, eight = 8, one = 1, ring[2] = {CLEAT_RING, terms + 1};
    session->hyper = cleat_input(graph, "hyper", CLEAT_F32, 1, &eight);
    session->slot = cleat_input(graph, "slot", CLEAT_I32, 1, &one);
    session->terms = cleat_state(graph, "terms", CLEAT_F32, 1, &terms);
    session->ring = cleat_state(graph, "ring", CLEAT_F32, 2, ring);
    cleat_tensor *norm = cleat_grad_norm(graph);
    cleat_adamw(graph, session->hyper, norm);
    cleat_report(graph, session->terms, norm, session->slot, session->ring);
    return cleat_graph_status(graph, error);
}

static cleat_status build_graphs(cleat_session *session, cleat_purpose purpose, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t b = 0; b < session->n_buckets && status == CLEAT_OK; ++b) {
        if (purpose == CLEAT_FOR_TRAINING)
            status = build_graph(session, "train", CLEAT_MODE_TRAIN, b, &session->train[b], error);
        if (status != CLEAT_OK) break;
        if (purpose == CLEAT_FOR_PREDICTION)
            status = build_graph(session, "predict", CLEAT_MODE_PREDICT, b, &session->evaluate[b], error);
        else
            status = build_graph(session, "evaluate", CLEAT_MODE_EVALUATE, b, &session->evaluate[b], error);
    }
    if (status == CLEAT_OK && purpose == CLEAT_FOR_TRAINING) status = build_update(session, error);
    if (status == CLEAT_OK && purpose != CLEAT_FOR_PREDICTION) session->terms = session->evaluate[0].built.terms;
    return status;
}

static cleat_status plan_graphs(cleat_session *session, int64_t limit, cleat_error *error) {
    cleat_graph *graphs[2 * CLEAT_BUCKETS + 1];
    size_t count = 0;
    cleat_session_graph *lists[2] = {session->train, session->evaluate};
    for (int k = 0; k < 2; ++k)
        for (size_t b = 0; b < session->n_buckets; ++b)
            if (lists[k][b].graph) {
                lists[k][b].index = count;
                graphs[count++] = lists[k][b].graph;
            }
    if (session->update.graph) {
        session->update.index = count;
        graphs[count++] = session->update.graph;
    }
    cleat_status status =
        cleat_plan_create(graphs, count, cleat_device_get_facts(session->device), &session->plan, error);
    if (status != CLEAT_OK) return status;
    int64_t bytes = cleat_plan_bytes(session->plan);
    if (limit > 0 && bytes > limit)
        return cleat_fail(
            error, CLEAT_ERR_FIT,
            "a batch of %lld at length %lld needs %.1f MiB, %.1f MiB more than may be used (%.1f MiB); the peak "
            "is at "
            "'%s'. Smaller train.batch_size or data.max_length, or a larger run.max_memory_usage, would help",
            (long long)session->buckets[session->n_buckets - 1].batch,
            (long long)session->buckets[session->n_buckets - 1].length, (double)bytes / 1048576.0,
            (double)(bytes - limit) / 1048576.0, (double)limit / 1048576.0, cleat_plan_peak_node(session->plan));
    return CLEAT_OK;
}

static int64_t input_offset(const cleat_session *session, const cleat_session_graph *graph, const char *name) {
    const cleat_tensor *tensor = cleat_graph_find(graph->graph, name);
    return tensor ? cleat_exec_input_offset(session->exec, graph->index, tensor) : -1;
}

static void find_own_inputs(cleat_session *session) {
    cleat_session_graph *lists[2] = {session->train, session->evaluate};
    for (int k = 0; k < 2; ++k)
        for (size_t b = 0; b < session->n_buckets; ++b) {
            cleat_session_graph *graph = &lists[k][b];
            if (!graph->graph) continue;
            graph->scale_offset = input_offset(session, graph, "scale");
            graph->rng_offset = input_offset(session, graph, "rng");
            graph->seed_offset = input_offset(session, graph, "seed");
        }
}

cleat_status cleat_session_create(cleat_device *device, const cleat_profile *profile, cleat_model *model,
                                  cleat_purpose purpose, const cleat_bucket *buckets, size_t n, int64_t limit,
                                  cleat_session **session, cleat_error *error) {
    if (n < 1 || n > CLEAT_BUCKETS)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%zu length buckets; 1 to %d are possible", n, CLEAT_BUCKETS);
    cleat_session *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a session");
    made->device = device;
    made->profile = profile;
    made->model = model;
    made->n_buckets = n;
    for (size_t b = 0; b < n; ++b) made->buckets[b] = buckets[b];
    cleat_status status = cleat_store_create(&made->store, error);
    if (status == CLEAT_OK) status = build_graphs(made, purpose, error);
    if (status == CLEAT_OK) status = plan_graphs(made, limit, error);
    if (status == CLEAT_OK) status = cleat_exec_create(device, made->plan, &made->exec, error);
    if (status != CLEAT_OK) {
        cleat_session_destroy(made);
        return status;
    }
    find_own_inputs(made);
    *session = made;
    return CLEAT_OK;
}

void cleat_session_destroy(cleat_session *session) {
    if (!session) return;
    cleat_exec_destroy(session->exec);
    cleat_plan_destroy(session->plan);
    for (size_t b = 0; b < session->n_buckets; ++b) {
        cleat_graph_destroy(session->train[b].graph);
        cleat_graph_destroy(session->evaluate[b].graph);
    }
    cleat_graph_destroy(session->update.graph);
    cleat_store_destroy(session->store);
    cleat_free(session);
}

static int64_t memory_limit(const cleat_device *device, const cleat_profile *profile) {
    const cleat_device_facts *facts = cleat_device_get_facts(device);
    int64_t available = facts->memory_free > 0 ? facts->memory_free : facts->memory_total;
    return (int64_t)((double)available * profile->run.max_memory_usage);
}

static cleat_status try_batch(cleat_device *device, const cleat_profile *profile, cleat_model *model,
                              cleat_purpose purpose, const cleat_lengths *lengths, int64_t batch,
                              cleat_session **session, cleat_error *error) {
    cleat_bucket buckets[CLEAT_BUCKETS];
    cleat_lengths_buckets(lengths, batch, buckets);
    return cleat_session_create(device, profile, model, purpose, buckets, lengths->count, memory_limit(device, profile),
                                session, error);
}

cleat_status cleat_session_fit(cleat_device *device, const cleat_profile *profile, cleat_model *model,
                               cleat_purpose purpose, const cleat_lengths *lengths, int64_t *batch,
                               cleat_session **session, cleat_error *error) {
    int64_t effective = cleat_profile_effective_batch(profile);
    if (profile->train.batch_size != CLEAT_AUTO) {
        *batch = profile->train.batch_size;
        return try_batch(device, profile, model, purpose, lengths, *batch, session, error);
    }
    cleat_status status = CLEAT_ERR_FIT;
    for (int64_t candidate = effective; candidate >= 1; --candidate) {
        if (effective % candidate != 0) continue;
        status = try_batch(device, profile, model, purpose, lengths, candidate, session, error);
        if (status == CLEAT_OK) *batch = candidate;
        if (status != CLEAT_ERR_FIT && status != CLEAT_ERR_DEVICE_MEMORY) return status;
        cleat_log(CLEAT_LOG_INFO, "batch %lld does not fit: %s", (long long)candidate, error ? error->text : "");
    }
    return status;
}

cleat_status cleat_session_initialise(cleat_session *session, uint64_t seed, cleat_error *error) {
    int64_t elements = cleat_session_flat(session);
    float *values = cleat_alloc((size_t)elements, sizeof *values);
    if (!values) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %lld parameters", (long long)elements);
    for (size_t i = 0; i < cleat_store_count(session->store); ++i) {
        const cleat_tensor *param = cleat_store_param(session->store, i);
        cleat_param_initialise(session->store, param, seed, values + param->flat_offset);
    }
    cleat_status status = cleat_session_write_flat(session, 0, values, error);
    cleat_free(values);
    return status;
}

int64_t cleat_session_input_bytes(const cleat_session *session) {
    int64_t most = 0;
    const cleat_session_graph *lists[2] = {session->train, session->evaluate};
    for (int k = 0; k < 2; ++k)
        for (size_t b = 0; b < session->n_buckets; ++b) {
            if (!lists[k][b].graph) continue;
            int64_t bytes = cleat_exec_input_bytes(session->exec, lists[k][b].index);
            if (bytes > most) most = bytes;
        }
    return most;
}

void cleat_session_prepare(const cleat_session *session, const cleat_session_graph *graph, void *staging,
                           const cleat_host_batch *batch, int64_t window_samples, uint64_t seed, uint64_t micro_step) {
    char *bytes = staging;
    if (graph->scale_offset >= 0)
        cleat_model_scale(session->model, batch, window_samples, (float *)(void *)(bytes + graph->scale_offset));
    if (graph->rng_offset >= 0) {
        uint32_t rng[4] = {(uint32_t)seed, (uint32_t)(seed >> 32), (uint32_t)micro_step, 0};
        memcpy(bytes + graph->rng_offset, rng, sizeof rng);
    }
    if (graph->seed_offset >= 0) {
        float one = 1.0f;
        memcpy(bytes + graph->seed_offset, &one, sizeof one);
    }
}

/* 1 - beta^t for the beta the kernel works with: 1 - 0.999 in single precision is 1e-5 off, which must cancel. */
static float bias_correction(float beta, int64_t step) {
    return (float)(1.0 - pow((double)beta, (double)(step + 1)));
}

void cleat_session_prepare_update(const cleat_session *session, void *staging, double rate, int64_t step) {
    const cleat_profile *profile = session->profile;
    float hyper[8] = {(float)rate,
                      (float)profile->train.beta1,
                      (float)profile->train.beta2,
                      (float)profile->train.eps,
                      (float)profile->train.weight_decay,
                      (float)profile->train.max_grad_norm,
                      bias_correction((float)profile->train.beta1, step),
                      bias_correction((float)profile->train.beta2, step)};
    int32_t slot = (int32_t)(step % CLEAT_RING);
    char *bytes = staging;
    memcpy(bytes + cleat_exec_input_offset(session->exec, session->update.index, session->hyper), hyper, sizeof hyper);
    memcpy(bytes + cleat_exec_input_offset(session->exec, session->update.index, session->slot), &slot, sizeof slot);
}

int64_t cleat_session_flat(const cleat_session *session) {
    return session->store->flat_elements;
}

static const cleat_tensor *flat_tensor(const cleat_session *session, int which) {
    return &session->store->flat[which ? which + 1 : 0];
}

cleat_status cleat_session_read_flat(cleat_session *session, int which, float *values, cleat_error *error) {
    return cleat_exec_read(session->exec, 0, flat_tensor(session, which), values, error);
}

cleat_status cleat_session_write_flat(cleat_session *session, int which, const float *values, cleat_error *error) {
    return cleat_exec_write(session->exec, 0, flat_tensor(session, which), values, error);
}

void cleat_session_log_plan(const cleat_session *session) {
    const cleat_device_facts *facts = cleat_device_get_facts(session->device);
    cleat_log(CLEAT_LOG_INFO, "device %s (%s), %.1f GiB, free %.1f GiB by %s", facts->name,
              cleat_device_kind_text(facts->kind), (double)facts->memory_total / 1073741824.0,
              (double)facts->memory_free / 1073741824.0, facts->memory_source);
    char buckets[512] = "";
    int used = 0;
    for (size_t b = 0; b < session->n_buckets && used < (int)sizeof buckets; ++b)
        used += snprintf(buckets + used, sizeof buckets - (size_t)used, " %lldx%lld",
                         (long long)session->buckets[b].batch, (long long)session->buckets[b].length);
    cleat_log(CLEAT_LOG_INFO, "model %s: %lld parameters; batches (samples x length)%s",
              cleat_model_name(session->model), (long long)cleat_store_elements(session->store), buckets);
    for (int c = 0; c < CLEAT_CATEGORIES; ++c) {
        int64_t bytes = cleat_plan_category_bytes(session->plan, (cleat_category)c);
        if (bytes)
            cleat_log(CLEAT_LOG_INFO, "  %-26s %12.2f MiB", cleat_category_name((cleat_category)c),
                      (double)bytes / 1048576.0);
    }
    cleat_log(CLEAT_LOG_INFO, "  %-26s %12.2f MiB planned, %.2f MiB allocated (peak at %s)", "all",
              (double)cleat_plan_bytes(session->plan) / 1048576.0,
              (double)cleat_device_allocated(session->device) / 1048576.0, cleat_plan_peak_node(session->plan));
}
