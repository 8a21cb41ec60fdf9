/* Runs one operation, or its gradients, once on the device of the environment, for tools/kernel_counts.
 *   run_op STORAGE VARIANT OP SIZE...
 * STORAGE is f32, f16 or bf16. VARIANT: a kernel variant. If the operation lacks it or it refuses, and for
 * "-", the one that training would select. The operations and their sizes are in the table below. Prints the
 * variant of each node. */
#include "bench/bench.h"
#include "cleat/device.h"
#include "cleat/ops.h"
#include "core/memory.h"
#include "exec/copy.h"
#include "graph/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZES = 6 };

/* The part of an operation that runs. */
typedef enum phase { FORWARD, BOTH, DX, DW } phase;

/* A graph input, which requires a gradient if the phase computes it. */
static cleat_tensor *operand(cleat_graph *graph, const char *name, cleat_dtype type, bool gradient, int rank,
                             const int64_t *shape) {
    cleat_tensor *tensor = cleat_input(graph, name, type, rank, shape);
    if (gradient) cleat_require_grad(graph, tensor);
    return tensor;
}

static cleat_tensor *build_linear(cleat_graph *graph, cleat_dtype type, phase p, const int64_t *s) {
    cleat_tensor *x = operand(graph, "x", type, p == BOTH || p == DX, 2, (int64_t[]){s[0], s[2]});
    cleat_tensor *weight = operand(graph, "weight", type, p == BOTH || p == DW, 2, (int64_t[]){s[1], s[2]});
    return cleat_linear(graph, x, weight, NULL, NULL); /* [m, n] */
}

/* With the gradient of the bias, summed by the dW product. */
static cleat_tensor *build_biased_linear(cleat_graph *graph, cleat_dtype type, phase p, const int64_t *s) {
    cleat_tensor *x = operand(graph, "x", type, false, 2, (int64_t[]){s[0], s[2]});
    cleat_tensor *weight = operand(graph, "weight", type, p == DW, 2, (int64_t[]){s[1], s[2]});
    cleat_tensor *bias = operand(graph, "bias", CLEAT_F32, p == DW, 1, (int64_t[]){s[1]});
    return cleat_linear(graph, x, weight, bias, NULL);
}

static cleat_tensor *build_attention(cleat_graph *graph, cleat_dtype type, phase p, const int64_t *s) {
    const int64_t shape[] = {s[0], s[1], 3 * s[2] * s[3]};
    return cleat_attention(graph, operand(graph, "x", type, p == BOTH, 3, shape), NULL, (int)s[2]);
}

static cleat_tensor *build_conv(cleat_graph *graph, cleat_dtype type, phase p, const int64_t *s) {
    const int64_t images[] = {s[0], s[1], s[1], s[2]}, kernels[] = {s[3], s[4], s[4], s[2]};
    cleat_tensor *x = operand(graph, "x", type, p == BOTH || p == DX, 4, images);
    cleat_tensor *filters = operand(graph, "filters", type, p == BOTH || p == DW, 4, kernels);
    return cleat_conv2d(graph, x, filters, NULL, s[5], s[4] / 2);
}

/* With the gradient of the recurrent weight. */
static cleat_tensor *build_lstm(cleat_graph *graph, cleat_dtype type, phase p, const int64_t *s) {
    enum { INPUTS = 16 };
    const int64_t rows = 4 * s[2];
    cleat_tensor *x = operand(graph, "x", type, false, 3, (int64_t[]){s[0], s[1], INPUTS});
    cleat_tensor *w_ih = operand(graph, "w_ih", type, false, 2, (int64_t[]){rows, INPUTS});
    cleat_tensor *w_hh = operand(graph, "w_hh", type, p == BOTH, 2, (int64_t[]){rows, s[2]});
    cleat_tensor *b_ih = operand(graph, "b_ih", CLEAT_F32, false, 1, &rows);
    cleat_tensor *b_hh = operand(graph, "b_hh", CLEAT_F32, false, 1, &rows);
    return cleat_lstm(graph, x, w_ih, w_hh, b_ih, b_hh);
}

typedef struct operation {
    const char *name, *sizes;
    int n_sizes;
    phase phase;
    cleat_tensor *(*build)(cleat_graph *graph, cleat_dtype type, phase p, const int64_t *sizes);
} operation;

#define LINEAR "M N K (y [M, N] = x [M, K] weight^T)"
#define CONV "BATCH HEIGHT CHANNELS FEATURES KERNEL STRIDE"
static const operation operations[] = {
    {"linear", LINEAR, 3, FORWARD, build_linear},
    {"linear_dx", LINEAR, 3, DX, build_linear},
    {"linear_dw", LINEAR, 3, DW, build_linear},
    {"linear_dw_bias", LINEAR, 3, DW, build_biased_linear},
    {"conv", CONV, 6, FORWARD, build_conv},
    {"conv_dx", CONV, 6, DX, build_conv},
    {"conv_dw", CONV, 6, DW, build_conv},
    {"attention", "BATCH LENGTH HEADS WIDTH", 4, BOTH, build_attention},
    {"lstm", "BATCH LENGTH HIDDEN", 3, BOTH, build_lstm},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

/* A cleat_choose_fn; `user` is the name of the requested variant. */
static const cleat_variant *choose(void *user, const cleat_node *node, const cleat_device_facts *facts) {
    const cleat_variant *chosen = NULL;
    for (const cleat_variant *v = node->op->variants; v && v->name && !chosen; ++v)
        if (strcmp(v->name, user) == 0 && !(v->refuse && v->refuse(node, facts))) chosen = v;
    if (!chosen) chosen = cleat_choose_first(NULL, node, facts);
    if (chosen) printf("%s: %s\n", node->op->name, chosen->name);
    return chosen;
}

static cleat_status fill_inputs(cleat_exec *exec, const cleat_graph *graph, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < graph->tensor_count && !status; ++i) {
        const cleat_tensor *tensor = graph->tensors[i];
        if (tensor->role != CLEAT_ROLE_INPUT) continue;
        void *values = cleat_alloc((size_t)cleat_tensor_bytes(tensor), 1);
        if (!values) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for '%s'", tensor->name);
        cleat_bench_fill(tensor, values);
        status = cleat_exec_write_unchecked(exec, 0, tensor, values, error);
        cleat_free(values);
    }
    return status;
}

/* Appends the operation and the gradients of the phase. Returns the first node to run. */
static size_t build(cleat_graph *graph, const operation *what, cleat_dtype type, const int64_t *sizes) {
    cleat_tensor *y = what->build(graph, type, what->phase, sizes);
    if (!y) return 0;
    cleat_retain(graph, y);
    if (what->phase == FORWARD) return 0;
    cleat_tensor *dy = cleat_input(graph, "dy", y->dtype, y->rank, y->shape);
    cleat_backward_from(graph, &y, &dy, 1);
    for (size_t i = 0; i < graph->tensor_count; ++i) {
        cleat_tensor *input = graph->tensors[i];
        if (input->role == CLEAT_ROLE_INPUT && input->requires_grad) cleat_retain(graph, cleat_gradient(graph, input));
    }
    return what->phase == BOTH ? 0 : graph->forward_nodes;
}

static cleat_status run(const operation *what, cleat_dtype type, char *variant, const int64_t *sizes,
                        cleat_error *error) {
    cleat_device *device = NULL;
    cleat_bench_graph made = {0};
    size_t first = 0;
    cleat_status status = cleat_device_open("auto", &device, error);
    if (!status) status = cleat_bench_graph_create("op", &made, error);
    if (!status) first = build(made.graph, what, type, sizes);
    if (!status) status = cleat_graph_status(made.graph, error);
    if (!status)
        status =
            cleat_plan_create_with(&made.graph, 1, cleat_device_get_facts(device), choose, variant, &made.plan, error);
    if (!status) status = cleat_exec_create(device, made.plan, &made.exec, error);
    if (!status) status = cleat_exec_build(made.exec, error);
    if (!status) status = fill_inputs(made.exec, made.graph, error);
    if (!status) status = cleat_exec_run_nodes(made.exec, 0, first, made.graph->node_count, error);
    if (!status) status = cleat_exec_finish(made.exec, error);
    cleat_bench_graph_destroy(&made);
    cleat_device_close(device);
    return status;
}

static int usage(void) {
    fprintf(stderr, "run_op STORAGE VARIANT OP SIZE...\n");
    for (size_t i = 0; i < OPERATIONS; ++i) fprintf(stderr, "  %s %s\n", operations[i].name, operations[i].sizes);
    return 2;
}

static bool read_type(const char *name, cleat_dtype *type) {
    static const cleat_dtype types[] = {CLEAT_F32, CLEAT_F16, CLEAT_BF16};
    for (size_t i = 0; i < sizeof types / sizeof *types; ++i)
        if (strcmp(cleat_dtype_name(types[i]), name) == 0) {
            *type = types[i];
            return true;
        }
    return false;
}

int main(int argc, char **argv) {
    cleat_dtype type;
    int64_t sizes[SIZES] = {0};
    cleat_error error = {0};
    size_t i = 0;
    if (argc < 4 || !read_type(argv[1], &type)) return usage();
    while (i < OPERATIONS && strcmp(operations[i].name, argv[3]) != 0) ++i;
    if (i == OPERATIONS || argc != 4 + operations[i].n_sizes) return usage();
    for (int k = 4; k < argc; ++k)
        if ((sizes[k - 4] = strtoll(argv[k], NULL, 10)) < 1) return usage();
    if (run(&operations[i], type, argv[2], sizes, &error) == CLEAT_OK) return 0;
    fprintf(stderr, "run_op: %s\n", error.text);
    return 1;
}
