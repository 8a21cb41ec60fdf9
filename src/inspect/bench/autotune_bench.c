/* Benchmark of a node's variants: one graph per variant with the same node, all in one plan and with shared
 * states. */
#include "bench/tune.h"
#include "core/clock.h"
#include "core/memory.h"
#include "core/philox.h"
#include "exec/copy.h"
#include "graph/extract_node.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double HOPELESS = 4; /* times slower than the fastest, in its first runs */
static const double BEHIND = 1.3; /* times slower after a few bursts */
/* Seconds; long enough that the overhead at its ends is negligible, short enough that some bursts are
 * undisturbed. */
static const double BURST = 0.004;
static const double STEADY = 0.995; /* the fastest run has converged if it improves by less than this factor */
enum { WARM_UPS = 5, MAX_RUNS = 4096, MIN_ROUNDS = 4, SETTLED_ROUNDS = 3 };

void cleat_autotune_bench_close(cleat_autotune_bench *a) {
    cleat_exec_destroy(a->exec);
    cleat_plan_destroy(a->plan);
    for (size_t i = 0; i < a->count; ++i) cleat_graph_destroy(a->graphs[i]);
    cleat_store_destroy(a->store);
    *a = (cleat_autotune_bench){0};
}

static const cleat_variant *choose(void *user, const cleat_node *node, const cleat_device_facts *facts) {
    const cleat_autotune_bench *a = user;
    (void)facts;
    for (size_t i = 0; i < a->count; ++i)
        if (a->graphs[i] == node->graph) return a->request->variants[a->candidates[i].index];
    return NULL;
}

static cleat_status build(cleat_autotune_bench *a, cleat_error *error) {
    cleat_status status = cleat_store_create(&a->store, error);
    for (size_t i = 0; i < a->count && !status; ++i) {
        const char *name = a->request->variants[a->candidates[i].index]->name;
        status = cleat_graph_create(a->store, name, &a->graphs[i], error);
        if (status) break;
        cleat_extract_node(a->graphs[i], a->request->node);
        status = cleat_graph_status(a->graphs[i], error);
    }
    return status;
}

/* Fills with magnitudes from 1/2 to 1 in every type: nothing underflows or overflows, and zeros would draw
 * less power than the values of a training step. */
static void fill_floats(cleat_dtype dtype, int64_t elements, void *values) {
    cleat_random random = cleat_random_stream(1, 0, 0);
    for (int64_t i = 0; i < elements; ++i) {
        uint32_t bits = cleat_random_u32(&random), sign = bits >> 31;
        if (dtype == CLEAT_F32)
            ((uint32_t *)values)[i] = sign << 31 | 0x3f000000u | (bits & 0x7fffffu);
        else if (dtype == CLEAT_F16)
            ((uint16_t *)values)[i] = (uint16_t)(sign << 15 | 0x3800u | (bits & 0x3ffu));
        else
            ((uint16_t *)values)[i] = (uint16_t)(sign << 15 | 0x3f00u | (bits & 0x7fu));
    }
}

static cleat_status fill(cleat_autotune_bench *a, int input, cleat_error *error) {
    const cleat_tensor *original = a->request->node->in[input], *state = a->graphs[0]->nodes[0]->in[input];
    if (!state) return CLEAT_OK;
    void *values = cleat_alloc((size_t)cleat_tensor_bytes(state), 1);
    if (!values) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for '%s'", original->name);
    if (cleat_is_storage(state->dtype)) fill_floats(state->dtype, cleat_tensor_elements(state), values);
    if (a->request->input) a->request->input(a->request->user, original, values);
    cleat_status status = cleat_exec_write_unchecked(a->exec, 0, state, values, error);
    cleat_free(values);
    return status;
}

cleat_status cleat_autotune_bench_fill(cleat_autotune_bench *a, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (int i = 0; i < a->request->node->n_in && !status; ++i) status = fill(a, i, error);
    return status;
}

cleat_status cleat_autotune_bench_open(const cleat_autotune_request *request, const bool *out,
                                       cleat_autotune_bench *opened, cleat_error *error) {
    cleat_autotune_bench a = {.request = request};
    for (size_t i = 0; i < request->count; ++i)
        if (!out[i])
            a.candidates[a.count++] =
                (cleat_autotune_candidate){.index = i, .runs = 1, .fastest = INFINITY, .running = true};
    cleat_status status = build(&a, error);
    if (!status)
        status = cleat_plan_create_with(a.graphs, a.count, cleat_device_get_facts(request->device), choose, &a, &a.plan,
                                        error);
    if (!status && request->limit > 0 && cleat_plan_bytes(a.plan) > request->limit)
        status = cleat_fail(error, CLEAT_ERR_FIT, "needs %lld bytes, but only %lld are usable",
                            (long long)cleat_plan_bytes(a.plan), (long long)request->limit);
    if (!status) status = cleat_exec_create(request->device, a.plan, &a.exec, error);
    if (!status) status = cleat_exec_build(a.exec, error);
    if (!status) status = cleat_autotune_bench_fill(&a, error);
    if (!status)
        *opened = a;
    else
        cleat_autotune_bench_close(&a);
    return status;
}

cleat_status cleat_autotune_bench_burst(cleat_autotune_bench *a, size_t i, cleat_error *error) {
    cleat_autotune_candidate *r = &a->candidates[i];
    cleat_status status = CLEAT_OK;
    double start = cleat_seconds();
    for (int k = 0; k < r->runs && !status; ++k) status = cleat_exec_enqueue(a->exec, i, error);
    if (!status) status = cleat_exec_finish(a->exec, error);
    double each = (cleat_seconds() - start) / r->runs;
    if (!status && each < r->fastest) r->fastest = each;
    return status;
}

/* Eliminates slow candidates; returns the number of remaining ones. */
static size_t drop_slow(cleat_autotune_bench *a, double factor) {
    size_t left = 0;
    double fastest = INFINITY;
    for (size_t i = 0; i < a->count; ++i) fastest = fmin(fastest, a->candidates[i].fastest);
    for (size_t i = 0; i < a->count; ++i) {
        if (a->candidates[i].fastest > factor * fastest) a->candidates[i].running = false;
        left += a->candidates[i].running;
    }
    return left;
}

cleat_status cleat_autotune_bench_warm_up(cleat_autotune_bench *a, size_t i, cleat_error *error) {
    cleat_autotune_candidate *r = &a->candidates[i];
    r->runs = 1;
    cleat_status status = cleat_autotune_bench_burst(a, i, error);
    r->fastest = INFINITY;
    double end = cleat_seconds() + BURST;
    for (int k = 0; k < WARM_UPS && !status && (k == 0 || cleat_seconds() < end); ++k)
        status = cleat_autotune_bench_burst(a, i, error);
    r->runs = (int)fmin(fmax(ceil(BURST / r->fastest), 1), MAX_RUNS);
    return status;
}

/* Runs a burst of each remaining candidate; *better: some became significantly faster. */
static cleat_status run_round(cleat_autotune_bench *a, bool *better, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    *better = false;
    for (size_t i = 0; i < a->count && !status; ++i) {
        if (!a->candidates[i].running) continue;
        double before = a->candidates[i].fastest;
        status = cleat_autotune_bench_burst(a, i, error);
        *better = *better || a->candidates[i].fastest < STEADY * before;
    }
    return status;
}

static cleat_status run_rounds(cleat_autotune_bench *a, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < a->count && !status; ++i) status = cleat_autotune_bench_warm_up(a, i, error);
    if (status) return status;
    size_t left = drop_slow(a, HOPELESS);
    double end = cleat_seconds() + a->request->seconds * (double)left;
    int settled = 0;
    for (int round = 0; !status; ++round) {
        bool better;
        status = run_round(a, &better, error);
        settled = better ? 0 : settled + 1;
        if (round + 1 < MIN_ROUNDS) continue;
        if (drop_slow(a, BEHIND) == 1 || settled >= SETTLED_ROUNDS || cleat_seconds() > end) break;
    }
    return status;
}

/* Runs each candidate separately to find those that fail; they are excluded and keep their error. The default
 * must not fail. */
static cleat_status exclude_failing(const cleat_autotune_request *request, bool *out, cleat_tune_node *result,
                                    cleat_error *error) {
    for (size_t i = 0; i < request->count; ++i) {
        bool others[CLEAT_TUNE_CANDIDATES];
        cleat_autotune_bench a = {0};
        cleat_error failure = {0};
        if (out[i]) continue;
        for (size_t k = 0; k < request->count; ++k) others[k] = k != i;
        cleat_status status = cleat_autotune_bench_open(request, others, &a, &failure);
        if (!status) status = cleat_autotune_bench_burst(&a, 0, &failure);
        cleat_autotune_bench_close(&a);
        if (!status) continue;
        if (i == 0) {
            if (error) *error = failure;
            return status;
        }
        out[i] = true;
        snprintf(result->candidates[i].error, sizeof result->candidates[i].error, "%.127s", failure.text);
    }
    return CLEAT_OK;
}

static cleat_status run(const cleat_autotune_request *request, const bool *out, cleat_tune_node *result,
                        cleat_error *error) {
    cleat_autotune_bench a = {0};
    cleat_status status = cleat_autotune_bench_open(request, out, &a, error);
    if (!status) status = run_rounds(&a, error);
    for (size_t i = 0; i < a.count && !status; ++i)
        result->candidates[a.candidates[i].index].seconds = a.candidates[i].fastest;
    cleat_autotune_bench_close(&a);
    return status;
}

cleat_status cleat_autotune_run(const cleat_autotune_request *request, cleat_tune_node *result, cleat_error *error) {
    bool out[CLEAT_TUNE_CANDIDATES];
    memcpy(out, request->out, sizeof out);
    cleat_status status = run(request, out, result, error);
    if (!status || status == CLEAT_ERR_FIT || status == CLEAT_ERR_MEMORY) return status;
    status = exclude_failing(request, out, result, error);
    return status ? status : run(request, out, result, error);
}
