/* W4: a training step of a dense classifier, 64-512-512-256-2 with ReLU, made of operations in one graph: forward,
 * cross entropy, backward, AdamW. */
#include "measure/bench.h"

#include "cleat/ops.h"
#include "core/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BATCH = 512, LAYERS = 4, HYPER = 8 };
static const int64_t widths[LAYERS + 1] = {64, 512, 512, 256, 2};

typedef struct dense_job {
    cleat_bench_graph made;
    cleat_staging *inputs; /* x [BATCH, 64], labels [BATCH], scale [BATCH], seed [1], hyper [HYPER] */
    cleat_tensor *loss;
    int64_t step;
} dense_job;

/* Initialised as PyTorch's nn.Linear. */
static cleat_tensor *layer(cleat_graph *graph, int i, cleat_tensor *x) {
    char weight[CLEAT_NAME], bias[CLEAT_NAME];
    const int64_t shape[] = {widths[i + 1], widths[i]};
    const cleat_init init = {CLEAT_INIT_UNIFORM, 1.0f / sqrtf((float)widths[i])};
    snprintf(weight, sizeof weight, "%d.weight", i);
    snprintf(bias, sizeof bias, "%d.bias", i);
    return cleat_linear(graph, x, cleat_param(graph, weight, 2, shape, init), cleat_param(graph, bias, 1, shape, init),
                        NULL);
}

static void build(dense_job *own) {
    cleat_graph *graph = own->made.graph;
    const int64_t batch = BATCH, one = 1, hyper = HYPER;
    cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 2, (int64_t[]){BATCH, widths[0]});
    for (int i = 0; i < LAYERS; ++i) {
        x = layer(graph, i, x); /* [BATCH, widths[i + 1]] */
        if (i < LAYERS - 1) x = cleat_relu(graph, x);
    }
    own->loss = cleat_cross_entropy(graph, x, cleat_input(graph, "labels", CLEAT_I32, 1, &batch),
                                    cleat_input(graph, "scale", CLEAT_F32, 1, &batch), 0);
    cleat_keep(graph, own->loss);
    cleat_backward(graph, own->loss, cleat_input(graph, "seed", CLEAT_F32, 1, &one));
    cleat_adamw(graph, cleat_input(graph, "hyper", CLEAT_F32, 1, &hyper), cleat_grad_norm(graph));
}

/* --- its inputs ----------------------------------------------------------------------------------------------- */

static void *input(const dense_job *own, const char *name) {
    const cleat_tensor *tensor = cleat_graph_find(own->made.graph, name);
    return (char *)cleat_staging_data(own->inputs) + cleat_exec_input_offset(own->made.exec, 0, tensor);
}

static cleat_status make_inputs(dense_job *own, cleat_error *error) {
    static const char *const filled[] = {"x", "labels"};
    cleat_exec *exec = own->made.exec;
    cleat_status status = cleat_staging_create(exec, cleat_exec_input_bytes(exec, 0), true, &own->inputs, error);
    if (status != CLEAT_OK) return status;
    for (int i = 0; i < 2; ++i) cleat_bench_fill(cleat_graph_find(own->made.graph, filled[i]), input(own, filled[i]));
    float *scale = input(own, "scale"), *seed = input(own, "seed");
    for (int i = 0; i < BATCH; ++i) scale[i] = 1.0f / BATCH;
    *seed = 1;
    return CLEAT_OK;
}

/* Parameters as a run draws them; no gradient yet. */
static cleat_status initialise(dense_job *own, cleat_error *error) {
    const cleat_store *store = own->made.store;
    float *values = cleat_alloc((size_t)store->flat_elements, sizeof *values);
    if (!values) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for parameters");
    cleat_status status = cleat_exec_write(own->made.exec, 0, &store->flat[1], values, error);
    for (size_t i = 0; i < store->count; ++i)
        cleat_param_initialise(store, store->params[i], 1, values + store->params[i]->flat_offset);
    if (status == CLEAT_OK) status = cleat_exec_write(own->made.exec, 0, &store->flat[0], values, error);
    cleat_free(values);
    return status;
}

/* --- a step --------------------------------------------------------------------------------------------------- */

static void prepare(dense_job *own) {
    const double beta1 = 0.9f, beta2 = 0.999f, t = (double)++own->step;
    const float hyper[HYPER] = {
        1e-4f, (float)beta1, (float)beta2, 1e-8f, 0.01f, 0, (float)(1 - pow(beta1, t)), (float)(1 - pow(beta2, t))};
    memcpy(input(own, "hyper"), hyper, sizeof hyper);
}

static cleat_status step(cleat_bench_job *job, cleat_error *error) {
    dense_job *own = job->own;
    cleat_exec *exec = own->made.exec;
    float loss = 0;
    prepare(own);
    cleat_status status = cleat_exec_upload(exec, 0, own->inputs, error);
    if (status == CLEAT_OK) status = cleat_exec_run(exec, 0, error);
    if (status == CLEAT_OK) status = cleat_exec_finish(exec, error);
    if (status == CLEAT_OK) status = cleat_exec_read(exec, 0, own->loss, &loss, error);
    job->loss = loss;
    return status;
}

static void close_dense(void *own) {
    dense_job *dense = own;
    cleat_staging_destroy(dense->inputs);
    cleat_bench_graph_destroy(&dense->made);
    cleat_free(dense);
}

cleat_status cleat_bench_open_dense(const void *spec, cleat_bench_job *job, cleat_error *error) {
    (void)spec;
    dense_job *own = cleat_alloc(1, sizeof *own);
    if (!own) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a model");
    job->own = own;
    job->close = close_dense;
    job->step = step;
    job->samples = BATCH;
    cleat_status status = cleat_bench_graph_create("dense", &own->made, error);
    if (status != CLEAT_OK) return status;
    build(own);
    status = cleat_bench_graph_open(&own->made, job, error);
    if (status == CLEAT_OK) status = initialise(own, error);
    return status == CLEAT_OK ? make_inputs(own, error) : status;
}
