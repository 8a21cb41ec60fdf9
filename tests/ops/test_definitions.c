/* Definitions of operations (cleat_op.define) reject changed kernels and name the operation. Every op test
 * checks that correct kernels agree with them (harness.h). */
/* ctest: device */
#include "harness.h"

#include "cleat/ops.h"
#include "core/files.h"
#include "core/memory.h"
#include "core/philox.h"
#include "graph/store.h"
#include "ops/update.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "source_path.h"
#include "verify/node_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- graphs --------------------------------------------------------------------------------------------------- */

/* f32 input with a gradient. */
static cleat_tensor *value(cleat_graph *graph, const char *name, int rank, const int64_t *shape) {
    cleat_tensor *tensor = cleat_input(graph, name, CLEAT_F32, rank, shape);
    cleat_require_grad(graph, tensor);
    return tensor;
}
#define VALUE(name, rank, ...) value(graph, name, rank, (int64_t[]){__VA_ARGS__})
#define CONSTANT(name, type, rank, ...) cleat_input(graph, name, type, rank, (int64_t[]){__VA_ARGS__})

static cleat_tensor *build_conv(cleat_graph *graph) {
    return cleat_conv2d(graph, VALUE("x", 4, 2, 6, 7, 3), VALUE("weight", 4, 5, 3, 3, 3), VALUE("bias", 1, 5), 2, 1);
}

static cleat_tensor *build_batch_norm(cleat_graph *graph) {
    cleat_tensor *x = VALUE("x", 4, 3, 4, 5, 7), *statistics;
    const cleat_batch_norm_spec spec = {.gamma = VALUE("gamma", 1, 7),
                                        .beta = VALUE("beta", 1, 7),
                                        .samples = CONSTANT("samples", CLEAT_I32, 1, 1),
                                        .eps = 1e-5f};
    cleat_tensor *y = cleat_batch_norm(graph, x, &spec, &statistics);
    const cleat_running_stats running = {cleat_state(graph, "mean", CLEAT_F32, 1, (int64_t[]){7}),
                                         cleat_state(graph, "var", CLEAT_F32, 1, (int64_t[]){7})};
    cleat_batch_norm_update_running_stats(graph, statistics, running, 0.1f);
    return y;
}

/* As in training: the same kernels update the running averages. */
static cleat_tensor *build_following(cleat_graph *graph) {
    cleat_tensor *statistics;
    const cleat_batch_norm_spec spec = {
        .gamma = CONSTANT("gamma", CLEAT_F32, 1, 7), .beta = CONSTANT("beta", CLEAT_F32, 1, 7), .eps = 1e-5f};
    cleat_retain(graph, cleat_batch_norm(graph, CONSTANT("x", CLEAT_F32, 4, 3, 4, 5, 7), &spec, &statistics));
    const cleat_running_stats running = cleat_running_statistics(graph, "running", 7);
    cleat_batch_norm_update_running_stats(graph, statistics, running, 0.1f);
    cleat_graph_fuse(graph);
    return NULL;
}

static cleat_tensor *build_inference(cleat_graph *graph) {
    const cleat_batch_norm_spec spec = {.gamma = VALUE("gamma", 1, 7), .beta = VALUE("beta", 1, 7), .eps = 1e-5f};
    const cleat_running_stats running = {CONSTANT("mean", CLEAT_F32, 1, 7), CONSTANT("var", CLEAT_F32, 1, 7)};
    cleat_retain(graph, cleat_batch_norm_inference(graph, VALUE("x", 4, 3, 4, 5, 7), &spec, running));
    return NULL;
}

static cleat_tensor *build_max_pool(cleat_graph *graph) {
    return cleat_max_pool(graph, VALUE("x", 4, 2, 7, 6, 5), 3, 2, 1);
}

static cleat_tensor *build_average_pool(cleat_graph *graph) {
    return cleat_average_pool(graph, VALUE("x", 4, 2, 7, 6, 5), 3, 2, 1);
}

static cleat_tensor *build_lstm(cleat_graph *graph) {
    return cleat_lstm(graph, VALUE("x", 3, 3, 5, 4), VALUE("weight_ih", 2, 24, 4), VALUE("weight_hh", 2, 24, 6),
                      VALUE("bias_ih", 1, 24), VALUE("bias_hh", 1, 24));
}

static cleat_tensor *build_mse(cleat_graph *graph) {
    return cleat_mse_loss(graph, VALUE("x", 2, 5, 6), CONSTANT("target", CLEAT_F32, 2, 5, 6),
                          CONSTANT("scale", CLEAT_F32, 1, 5));
}

static cleat_tensor *build_cross_entropy(cleat_graph *graph) {
    return cleat_binary_cross_entropy(graph, VALUE("x", 2, 5, 6), CONSTANT("target", CLEAT_F32, 2, 5, 6),
                                      CONSTANT("scale", CLEAT_F32, 1, 5), 2);
}

static cleat_tensor *build_positions(cleat_graph *graph) {
    return cleat_position_embedding(graph, VALUE("x", 3, 3, 4, 6), VALUE("table", 2, 4, 6), 0);
}

static cleat_tensor *build_marked(cleat_graph *graph) {
    return cleat_select_marked(graph, VALUE("x", 3, 3, 6, 4), CONSTANT("marks", CLEAT_I32, 2, 3, 6), 2, NULL);
}

static cleat_tensor *build_depthwise(cleat_graph *graph) {
    return cleat_depthwise_conv2d(graph, VALUE("x", 4, 2, 5, 6, 7), VALUE("weight", 3, 3, 3, 7), VALUE("bias", 1, 7));
}

static cleat_tensor *build_resize(cleat_graph *graph) {
    return cleat_resize(graph, VALUE("x", 4, 2, 4, 3, 5), 7, 8);
}

static cleat_tensor *build_mask_loss(cleat_graph *graph) {
    const cleat_mask_loss_spec spec = {.positive_weight = 2, .focal_gamma = 1.5f, .dice_weight = 0.7f};
    return cleat_mask_loss(graph, VALUE("x", 3, 2, 6, 5), CONSTANT("mask", CLEAT_I32, 3, 2, 6, 5),
                           CONSTANT("scale", CLEAT_F32, 1, 2), &spec);
}

static cleat_tensor *build_depth_to_space(cleat_graph *graph) {
    return cleat_depth_to_space(graph, VALUE("x", 4, 2, 3, 4, 12), 2);
}

static cleat_tensor *build_chunk(cleat_graph *graph) {
    cleat_tensor *parts[3];
    return cleat_chunk(graph, VALUE("x", 2, 5, 12), 3, parts) ? cleat_concat(graph, parts, 3) : NULL;
}

static cleat_tensor *build_disentangled(cleat_graph *graph) {
    const cleat_disentangled_spec spec = {.heads = 2, .buckets = 4, .max_relative_positions = 8};
    return cleat_disentangled_attention(graph, VALUE("qkv", 3, 2, 9, 24), VALUE("keys", 2, 8, 8),
                                        VALUE("queries", 2, 8, 8), NULL, &spec);
}

static cleat_tensor *build_pointwise(cleat_graph *graph) {
    return cleat_silu(graph, cleat_tanh(graph, cleat_sigmoid(graph, VALUE("x", 2, 5, 12))));
}

static cleat_tensor *build_relu(cleat_graph *graph) {
    return cleat_relu(graph, VALUE("x", 2, 5, 6));
}

/* "broken" holds NaN. */
static cleat_tensor *build_broken(cleat_graph *graph) {
    cleat_tensor *x = VALUE("broken", 2, 5, 12), *rng = CONSTANT("rng", CLEAT_U32, 1, 4);
    cleat_retain(graph, cleat_relu(graph, x));
    return cleat_add(graph, cleat_dropout(graph, x, rng, 0.5f), cleat_gelu(graph, x));
}

static cleat_tensor *build_sgd(cleat_graph *graph) {
    enum { HYPER = 8 };
    cleat_param(graph, "weight", 2, (int64_t[]){4, 16}, (cleat_init){0});
    cleat_sgd(graph, true, CONSTANT("hyper", CLEAT_F32, 1, HYPER), CONSTANT("norm", CLEAT_F32, 1, 1), NULL);
    return NULL;
}

static cleat_tensor *build_lion(cleat_graph *graph) {
    cleat_param(graph, "weight", 2, (int64_t[]){4, 16}, (cleat_init){0});
    cleat_lion(graph, CONSTANT("hyper", CLEAT_F32, 1, 8), CONSTANT("norm", CLEAT_F32, 1, 1), NULL);
    return NULL;
}

/* --- values --------------------------------------------------------------------------------------------------- */

/* Numbers in [0.1, 1), every third one negative; integers from -1 to 1. */
static void fill(op_rig *rig, const cleat_tensor *tensor) {
    const int64_t count = cleat_tensor_elements(tensor);
    cleat_random random = cleat_random_stream(3, (uint32_t)tensor->index, (uint32_t)tensor->role);
    double *values = calloc((size_t)count, sizeof *values);
    for (int64_t i = 0; i < count; ++i) {
        const double drawn = 0.1 + 0.9 * cleat_random_uniform(&random);
        values[i] = cleat_is_storage(tensor->dtype) ? (i % 3 == 2 ? -drawn : drawn) : (double)(i % 3) - 1;
        if (strcmp(tensor->name, "samples") == 0) values[i] = 2;
        if (strcmp(tensor->name, "rng") == 0) values[i] = (double)i;
        if (strcmp(tensor->name, "broken") == 0) values[i] = i % 2 ? NAN : INFINITY;
        if (strcmp(tensor->name, "hyper") == 0 || strcmp(tensor->name, "var") == 0) values[i] = fabs(values[i]);
    }
    op_rig_write(rig, tensor, values);
    free(values);
}

static void fill_all(op_rig *rig) {
    const cleat_graph *graph = rig->graph;
    const cleat_store *store = graph->store;
    for (size_t i = 0; i < graph->tensor_count; ++i)
        if (graph->tensors[i]->role == CLEAT_ROLE_INPUT) fill(rig, graph->tensors[i]);
    for (size_t i = 0; i < store->state_count; ++i)
        if (strncmp(store->states[i]->name, "guard.", 6) != 0) fill(rig, store->states[i]);
    for (int flat = 0; flat < CLEAT_FLATS; ++flat)
        if (rig->plan->flat[flat].slab >= 0) fill(rig, &store->flat[flat]);
}

/* --- changed kernels ------------------------------------------------------------------------------------------ */

typedef struct mutant {
    cleat_tensor *(*build)(cleat_graph *graph);
    const char *variant; /* its name; NULL: the first that is usable */
    const char *file, *from, *to, *op;
} mutant;

static const mutant mutants[] = {
    {build_conv, "plain", "conv/conv.cl", "p * stride + r - padding", "p * stride + r", "(conv2d,"},
    {build_conv, "plain", "conv/conv.cl", "h + padding - r", "h + padding - s", "(conv2d_dx,"},
    {build_conv, "plain", "conv/conv.cl", "row < (long)B * P", "row < (long)B * P - 1", "(conv2d_dw,"},
    {build_conv, "plain", "conv/conv.cl", "m < pixels", "m < pixels - 1", "(conv2d_dw,"},
    {build_batch_norm, NULL, "batch_norm.cl", "squared[v] - sum[v] * sum[v]", "squared[v] + sum[v] * sum[v]",
     "(batch_norm,"},
    {build_batch_norm, NULL, "batch_norm.cl", "mean[v], scale[v], bias[v]);", "mean[v], scale[v], -bias[v]);",
     "(batch_norm,"},
    {build_batch_norm, NULL, "batch_norm.cl", "fmax(count - 1.0f", "fmax(count", "(batch_norm,"},
    {build_batch_norm, NULL, "batch_norm.cl", "- centred * slope[v]", "+ centred * slope[v]", "(batch_norm_grad,"},
    {build_batch_norm, NULL, "batch_norm.cl", "sums) * rstd;", "sums);", "(batch_norm_grad,"},
    {build_batch_norm, NULL, "batch_norm.cl", "AT(statistics)[i] - *running", "AT(statistics)[i] + *running",
     "(batch_norm_update_running_stats,"},
    {build_following, NULL, "batch_norm.cl", "isfinite(next) ? next : old", "isfinite(next) ? -next : old",
     "(batch_norm_and_running_stats,"},
    {build_inference, NULL, "batch_norm.cl", "mean[v], scale[v], bias[v]);", "mean[v], scale[v], -bias[v]);",
     "(batch_norm_inference,"},
    {build_max_pool, NULL, "window_pool.cl", "h * width + w;", "h * width;", "(max_pool,"},
    {build_max_pool, NULL, "window_pool.cl", "== (intv)(here)", ">= (intv)(here)", "(max_pool_grad,"},
    {build_average_pool, NULL, "window_pool.cl", "sum[v] * (1.0f / (SIZE * SIZE)), AT(y)",
     "sum[v] * (1.0f / (SIZE * SIZE - 1)), AT(y)", "(average_pool,"},
    {build_average_pool, NULL, "window_pool.cl", "floatv d = sum[v] *", "floatv d = 0.5f * sum[v] *",
     "(average_pool_grad,"},
    {build_lstm, "plain", "lstm/lstm.cl", "t ? x[1] * c[j] : 0.0f", "x[1]", "(lstm,"},
    {build_lstm, "plain", "lstm/lstm.cl", "fma(LOAD(row, k), now[k], x[g])", "fma(LOAD(row, k), next[k], x[g])",
     "(lstm,"},
    {build_lstm, "plain", "lstm/lstm.cl", "dc[j] = dc_t * x[1]", "dc[j] = dc_t * x[0]", "(lstm_grad,"},
    {build_lstm, "plain", "lstm/lstm.cl", "int t = 1; t < length", "int t = 2; t < length", "(lstm_grad,"},
    {build_mse, NULL, "element_loss.cl", "fma(d, d, sum)", "fma(d, x, sum)", "(mse_loss,"},
    {build_mse, NULL, "element_loss.cl", "[row] * sum * (", "[row] - sum * (", "(mse_loss,"},
    {build_mse, NULL, "element_loss.cl", "2.0f * (x - t)", "(x - t)", "(mse_loss_grad,"},
    {build_cross_entropy, NULL, "element_loss.cl", "larger(zero, -x) + rest", "larger(zero, x) + rest",
     "(binary_cross_entropy,"},
    {build_cross_entropy, NULL, "element_loss.cl", "-positive_weight * t * q", "positive_weight * t * q",
     "(binary_cross_entropy_grad,"},
    {build_positions, NULL, "position_embedding.cl", "sample) + rows[k]", "sample) - rows[k]", "(position_embedding,"},
    {build_positions, NULL, "position_embedding.cl", "uint b = part * each; b", "uint b = part * each + 1; b",
     "(position_embedding_grad,"},
    {build_marked, NULL, "select_marked.cl", "marks[l] >= 0 && wanted", "marks[l] > 0 && wanted", "(select_marked,"},
    {build_marked, NULL, "select_marked.cl", "before < count", "before <= count", "(select_marked_grad,"},
    {build_depthwise, NULL, "depthwise_conv2d.cl", "w < a.end + S / 2", "w < a.end", "(depthwise_conv2d,"},
    {build_resize, NULL, "resize.cl", "((2 * p + 1) * in - out", "((2 * p) * in - out", "(resize,"},
    {build_resize, NULL, "resize.cl", "(first && at < 0)", "(first && at > 0)", "(resize_grad,"},
    {build_mask_loss, NULL, "mask_loss.cl", "fma(dice_weight, dice,", "fma(dice_weight, -dice,", "(mask_loss,"},
    {build_mask_loss, NULL, "mask_loss.cl", "- cross * weight * slope", "+ cross * weight * slope", "(mask_loss_grad,"},
    {build_depth_to_space, NULL, "depth_to_space.cl", "(o * a + i) * b + j", "(o * b + j) * a + i", "(depth_to_space"},
    {build_relu, NULL, "lib/relu.clh", "0.0f) : dy;", "0.0f) : 0 * y;", "(relu_grad,"},
    {build_disentangled, "plain", "attention/disentangled.cl", "fma(y, c[d]", "fma(-y, c[d]",
     "(disentangled_attention,"},
    {build_disentangled, "plain", "attention/disentangled.clh", "(int)ceil(", "(int)floor(",
     "(disentangled_attention,"},
    {build_disentangled, "plain", "attention/disentangled.cl", "d) + a[row + d]", "d) - a[row + d]",
     "(disentangled_attention_grad,"},
    {build_disentangled, "plain", "attention/disentangled.cl", "LOAD(KV_AT(k, b, j, h), d), sum_k[d]",
     "LOAD(Q_AT(q, b, i, h), d), sum_k[d]", "(disentangled_attention_grad,"},
    {build_pointwise, NULL, "pointwise.cl", "return tanh_of(x)", "return -tanh_of(x)", "(tanh,"},
    {build_pointwise, NULL, "pointwise.cl", "return x * sigmoid_of(x)", "return sigmoid_of(x)", "(silu,"},
    {build_pointwise, NULL, "pointwise.cl", "fma(-y, y, y)", "fma(y, y, y)", "(sigmoid_grad,"},
    {build_pointwise, NULL, "pointwise.cl", "fma(-y, y, (floatv)", "fma(y, y, (floatv)", "(tanh_grad,"},
    {build_pointwise, NULL, "pointwise.cl", "return s * fma", "return fma", "(silu_grad,"},
    {build_sgd, NULL, "sgd.cl", "+ decay * from", "- decay * from", "(sgd,"},
    {build_sgd, NULL, "sgd.cl", "step + momentum * velocity", "velocity", "(sgd,"},
    {build_lion, NULL, "lion.cl", "- lr * sign", "+ lr * sign", "(lion,"},
    {build_lion, NULL, "lion.cl", "b2 * before + (1.0f - b2)", "b2 * before - (1.0f - b2)", "(lion,"},
};

/* Reads kernels from a folder that holds cl/FILE with the first `from` replaced. */
static void use_mutant(const mutant *m, const char *folder) {
    char path[512], *text, *changed;
    size_t size;
    snprintf(path, sizeof path, "%s/%s", source_path("cl"), m->file);
    assert_int_equal(cleat_file_read(path, &text, &size, NULL), CLEAT_OK);
    const char *at = strstr(text, m->from);
    if (!at) fail_msg("cl/%s has no '%s'", m->file, m->from);
    changed = calloc(size + strlen(m->to) + 1, 1);
    sprintf(changed, "%.*s%s%s", (int)(at - text), text, m->to, at + strlen(m->from));
    snprintf(path, sizeof path, "%s/%s", folder, m->file);
    *strrchr(path, '/') = 0;
    assert_int_equal(cleat_folder_make(path, NULL), CLEAT_OK);
    snprintf(path, sizeof path, "%s/%s", folder, m->file);
    assert_int_equal(cleat_file_write(path, changed, strlen(changed), NULL), CLEAT_OK);
    setenv("CLEAT_KERNEL_DIR", folder, 1);
    cleat_free(text);
    free(changed);
}

/* The number of the variant among those of the ops whose names begin with `ops`. */
static int variant_of(const cleat_graph *graph, const char *ops, const char *name) {
    for (size_t i = 0; name && i < graph->node_count; ++i)
        for (int v = 0; strncmp(graph->nodes[i]->op->name, ops, strlen(ops)) == 0 && graph->nodes[i]->op->variants &&
                        graph->nodes[i]->op->variants[v].name;
             ++v)
            if (strcmp(graph->nodes[i]->op->variants[v].name, name) == 0) return v;
    return 0;
}

/* Builds the graph with its gradients and compares every node with its definition. */
static cleat_status check(const mutant *m, cleat_error *error) {
    cleat_graph *graph = op_graph();
    op_rig rig;
    cleat_node_check result = {0};
    cleat_tensor *y = m->build(graph);
    if (y) {
        cleat_tensor *dy = cleat_input(graph, "dy", y->dtype, y->rank, y->shape);
        cleat_backward_from(graph, &y, &dy, 1);
    }
    cleat_status status = cleat_graph_status(graph, error);
    if (status) fail_msg("%s", error->text);
    const char *ops = m->build == build_conv ? "conv2d" : m->build == build_lstm ? "lstm" : "disentangled";
    assert_true(op_rig_open(&rig, graph, &op_shape_cpu, m->variant ? ops : NULL, variant_of(graph, ops, m->variant)));
    fill_all(&rig);
    for (size_t i = 0; i < graph->node_count && !status; ++i)
        if (graph->nodes[i]->op->variants) {
            if (!graph->nodes[i]->op->define) fail_msg("%s has no definition", graph->nodes[i]->op->name);
            status = cleat_check_node(rig.exec, 0, i, &result, error);
        }
    op_rig_close(&rig);
    op_graph_end(graph);
    return status;
}

static void changed_kernels_are_refused(void **state) {
    char folder[] = "/tmp/cleat_definitions_XXXXXX", own[64];
    cleat_error error = {0};
    (void)state;
    if (!op_shape_is_tested(&op_shape_cpu)) skip();
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < sizeof mutants / sizeof *mutants; ++i) {
        const mutant *m = &mutants[i];
        if (i == 0 || m->build != mutants[i - 1].build)
            if (check(m, &error)) fail_msg("unchanged: %s", error.text);
        snprintf(own, sizeof own, "%s/%zu", folder, i);
        use_mutant(m, own);
        const cleat_status status = check(m, &error);
        unsetenv("CLEAT_KERNEL_DIR");
        if (status != CLEAT_ERR_DEVICE) fail_msg("%s: '%s' is not refused", m->file, m->to);
        if (!strstr(error.text, m->op)) fail_msg("%s: '%s' is reported as: %s", m->file, m->to, error.text);
    }
    snprintf(own, sizeof own, "rm -rf %s", folder);
    assert_int_equal(system(own), 0);
}

/* Not mutated: chunk and concat only copy, with kernels that other ops share. */
static void copies_are_compared(void **state) {
    const mutant none = {.build = build_chunk};
    cleat_error error = {0};
    (void)state;
    if (check(&none, &error)) fail_msg("%s", error.text);
}

/* A diverging run must end because its loss is not finite, not because the device is rejected. */
static void a_nan_is_no_fault_of_the_device(void **state) {
    const mutant none = {.build = build_broken};
    cleat_error error = {0};
    (void)state;
    if (check(&none, &error)) fail_msg("%s", error.text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(changed_kernels_are_refused),
                                       cmocka_unit_test(copies_are_compared),
                                       cmocka_unit_test(a_nan_is_no_fault_of_the_device)};
    return op_main(NULL, 0, tests, sizeof tests / sizeof *tests);
}
