/* Workloads of one operation: a table, and functions that build the graphs of its rows. A workload without a
 * suffix is the operation with its gradients, as in a training step (for a GEMM without a suffix, the forward
 * product). */
#include "bench/bench.h"

#include "core/memory.h"
#include "exec/copy.h"
#include "lib/shared_numbers.clh"
#include "ops/update.h"

#include <stdio.h>

/* The part of an operation that is timed. */
typedef enum phase {
    FORWARD,
    BOTH, /* forward, and the gradients of inputs and parameters */
    DX,   /* gradient of the input only */
    DW,   /* gradient of the weight only */
} phase;

typedef struct op_row {
    const char *name, *peer; /* peer "": none */
    const struct op_subject *subject;
    phase phase;
    int64_t size[6];
} op_row;

/* An operation; `build` appends it and returns its output. */
typedef struct op_subject {
    const char *what;
    cleat_tensor *(*build)(cleat_graph *graph, const op_row *row);
} op_subject;

/* Creates the input whose gradient the row may request. */
static cleat_tensor *make_x(cleat_graph *graph, const op_row *row, int rank, const int64_t *shape) {
    cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, rank, shape);
    if (row->phase == BOTH || row->phase == DX) cleat_require_grad(graph, x);
    return x;
}

static cleat_tensor *make_weight(cleat_graph *graph, const op_row *row, const char *name, int rank,
                                 const int64_t *shape) {
    if (row->phase == DX) return cleat_input(graph, name, CLEAT_F32, rank, shape);
    return cleat_param(graph, name, rank, shape, (cleat_init){CLEAT_INIT_UNIFORM, 0.5f});
}

static cleat_tensor *build_product(cleat_graph *graph, const op_row *row) {
    const int64_t m = row->size[0], n = row->size[1], k = row->size[2];
    cleat_tensor *x = make_x(graph, row, 2, (int64_t[]){m, k});
    return cleat_linear(graph, x, make_weight(graph, row, "w", 2, (int64_t[]){n, k}), NULL, NULL); /* [m, n] */
}

/* size: batch, height = width, input channels, output channels, kernel height = width, stride */
static cleat_tensor *build_conv(cleat_graph *graph, const op_row *row) {
    const int64_t shape[] = {row->size[0], row->size[1], row->size[1], row->size[2]};
    const int64_t filters[] = {row->size[3], row->size[4], row->size[4], row->size[2]};
    cleat_tensor *x = make_x(graph, row, 4, shape);
    return cleat_conv2d(graph, x, make_weight(graph, row, "w", 4, filters), NULL, row->size[5], row->size[4] / 2);
}

/* size: batch, length, heads, head width */
static cleat_tensor *build_attention(cleat_graph *graph, const op_row *row) {
    const int64_t shape[] = {row->size[0], row->size[1], 3 * row->size[2] * row->size[3]};
    return cleat_attention(graph, make_x(graph, row, 3, shape), NULL, (int)row->size[2]);
}

/* size: batch, length, heads, head width, heads of keys, window */
static cleat_tensor *build_causal_attention(cleat_graph *graph, const op_row *row) {
    const int64_t *size = row->size, shape[] = {size[0], size[1], (size[2] + 2 * size[4]) * size[3]};
    cleat_tensor *qkv = make_x(graph, row, 3, shape);
    return cleat_causal_attention(graph, qkv, NULL, NULL, (int)size[2], (int)size[4], (int)size[5], 0);
}

/* size: batch, length, heads, head width; buckets for distances as in DeBERTa-v3 */
static cleat_tensor *build_disentangled_attention(cleat_graph *graph, const op_row *row) {
    const cleat_disentangled_spec spec = {.heads = (int)row->size[2], .buckets = 256, .max_relative_positions = 512};
    const int64_t width = row->size[2] * row->size[3], shape[] = {row->size[0], row->size[1], 3 * width};
    const int64_t positions[] = {2 * spec.buckets, width};
    cleat_tensor *pos_keys = cleat_input(graph, "pos_keys", CLEAT_F32, 2, positions);
    cleat_tensor *pos_queries = cleat_input(graph, "pos_queries", CLEAT_F32, 2, positions);
    if (row->phase == BOTH) cleat_require_grad(graph, pos_keys), cleat_require_grad(graph, pos_queries);
    return cleat_disentangled_attention(graph, make_x(graph, row, 3, shape), pos_keys, pos_queries, NULL, &spec);
}

/* size: batch, queries, keys, width of the single head */
static cleat_tensor *build_cross_attention(cleat_graph *graph, const op_row *row) {
    const int64_t width = row->size[3];
    cleat_tensor *kv = cleat_input(graph, "kv", CLEAT_F32, 3, (int64_t[]){row->size[0], row->size[2], 2 * width});
    if (row->phase == BOTH) cleat_require_grad(graph, kv);
    return cleat_cross_attention(graph, make_x(graph, row, 3, (int64_t[]){row->size[0], row->size[1], width}), kv, 1);
}

static cleat_tensor *build_layer_norm(cleat_graph *graph, const op_row *row) {
    const int64_t width = row->size[1];
    cleat_tensor *gamma = make_weight(graph, row, "gamma", 1, &width);
    cleat_tensor *beta = make_weight(graph, row, "beta", 1, &width);
    return cleat_layer_norm(graph, make_x(graph, row, 2, row->size), gamma, beta, 1e-5f);
}

/* size: batch, height = width, channels; with a residual and ReLU */
static cleat_tensor *build_batch_norm(cleat_graph *graph, const op_row *row) {
    const int64_t shape[] = {row->size[0], row->size[1], row->size[1], row->size[2]}, *channels = &row->size[2];
    cleat_tensor *gamma = make_weight(graph, row, "gamma", 1, channels);
    cleat_tensor *beta = make_weight(graph, row, "beta", 1, channels);
    cleat_tensor *residual = row->size[3] ? cleat_input(graph, "residual", CLEAT_F32, 4, shape) : NULL;
    if (residual && row->phase == BOTH) cleat_require_grad(graph, residual);
    const cleat_batch_norm_spec spec = {.gamma = gamma, .beta = beta, .residual = residual, .relu = true, .eps = 1e-5f};
    return cleat_batch_norm(graph, make_x(graph, row, 4, shape), &spec, NULL);
}

/* size: batch, height = width, channels, window size, stride */
static cleat_tensor *build_max_pool(cleat_graph *graph, const op_row *row) {
    const int64_t shape[] = {row->size[0], row->size[1], row->size[1], row->size[2]};
    return cleat_max_pool(graph, make_x(graph, row, 4, shape), row->size[3], row->size[4], (row->size[3] - 1) / 2);
}

static cleat_tensor *build_softmax(cleat_graph *graph, const op_row *row) {
    return cleat_softmax(graph, make_x(graph, row, 2, row->size));
}

static cleat_tensor *build_cross_entropy(cleat_graph *graph, const op_row *row) {
    cleat_tensor *labels = cleat_input(graph, "labels", CLEAT_I32, 1, row->size);
    cleat_tensor *sample_weight = cleat_input(graph, "scale", CLEAT_F32, 1, row->size);
    return cleat_cross_entropy(graph, make_x(graph, row, 2, row->size), labels, sample_weight, 0);
}

static cleat_tensor *build_gelu(cleat_graph *graph, const op_row *row) {
    return cleat_gelu(graph, make_x(graph, row, 2, row->size));
}

static cleat_tensor *build_dropout(cleat_graph *graph, const op_row *row) {
    cleat_tensor *rng = cleat_input(graph, "rng", CLEAT_U32, 1, (int64_t[]){4});
    return cleat_dropout(graph, make_x(graph, row, 2, row->size), rng, 0.1f);
}

/* size: batch, length, vocabulary, width */
static cleat_tensor *build_embedding(cleat_graph *graph, const op_row *row) {
    cleat_tensor *tokens = cleat_input(graph, "tokens", CLEAT_I32, 2, row->size);
    return cleat_embedding(graph, tokens, make_weight(graph, row, "table", 2, row->size + 2), CLEAT_F32);
}

/* size: batch, length, inputs, hidden units */
static cleat_tensor *build_lstm(cleat_graph *graph, const op_row *row) {
    const int64_t inputs = row->size[2], hidden = row->size[3], bias = 4 * hidden;
    cleat_tensor *x = make_x(graph, row, 3, row->size);
    cleat_tensor *w_ih = make_weight(graph, row, "w_ih", 2, (int64_t[]){4 * hidden, inputs});
    cleat_tensor *w_hh = make_weight(graph, row, "w_hh", 2, (int64_t[]){4 * hidden, hidden});
    cleat_tensor *b_ih = make_weight(graph, row, "b_ih", 1, &bias), *b_hh = make_weight(graph, row, "b_hh", 1, &bias);
    return cleat_lstm(graph, x, w_ih, w_hh, b_ih, b_hh);
}

/* Persistent tensors occupy memory once, whereas inputs have additional upload slots. */
static cleat_tensor *build_copy(cleat_graph *graph, const op_row *row) {
    cleat_tensor *x = cleat_state(graph, "x", CLEAT_F32, 1, row->size);
    return cleat_add(graph, x, cleat_state(graph, "y", CLEAT_F32, 1, row->size));
}

/* Creates the single parameter of the store. */
static void make_parameter(cleat_graph *graph, const op_row *row) {
    cleat_param(graph, "p", 1, row->size, (cleat_init){CLEAT_INIT_UNIFORM, 0.5f});
}

static cleat_tensor *build_grad_norm(cleat_graph *graph, const op_row *row) {
    make_parameter(graph, row);
    return cleat_grad_norm(graph);
}

static cleat_tensor *build_adamw(cleat_graph *graph, const op_row *row) {
    make_parameter(graph, row);
    cleat_adamw(graph, cleat_input(graph, "hyper", CLEAT_F32, 1, (int64_t[]){8}),
                cleat_input(graph, "norm", CLEAT_F32, 1, (int64_t[]){1}), NULL);
    return NULL;
}

static const op_subject product = {"y = x w^T as m x n x k: x [m, k], w [n, k]", build_product};
static const op_subject conv = {"convolution of four images, a layer of ResNet-18 at 224 x 224", build_conv};
static const op_subject attention = {"self-attention of batch 2, 8 heads", build_attention};
static const op_subject causal = {"causal self-attention of batch 2, 8 heads", build_causal_attention};
static const op_subject disentangled = {"disentangled self-attention of batch 2, 256 buckets",
                                        build_disentangled_attention};
static const op_subject cross_attention = {"cross-attention of many rows to few, one head of width 32",
                                           build_cross_attention};
static const op_subject layer_norm = {"layer normalisation of rows x width", build_layer_norm};
static const op_subject batch_norm = {"batch normalisation of four images with relu, as in ResNet-18 at 224 x 224",
                                      build_batch_norm};
static const op_subject max_pool = {"max pooling of four images, as in ResNet-18 at 224 x 224", build_max_pool};
static const op_subject softmax = {"softmax of rows x width", build_softmax};
static const op_subject cross_entropy = {"cross entropy of rows x classes", build_cross_entropy};
static const op_subject gelu = {"GELU", build_gelu};
static const op_subject dropout = {"dropout, rate 0.1", build_dropout};
static const op_subject embedding = {"embedding of 32 x 128 tokens from a table of vocabulary x width",
                                     build_embedding};
static const op_subject grad_norm = {"global gradient norm", build_grad_norm};
static const op_subject adamw = {"AdamW step over all parameters", build_adamw};
static const op_subject lstm = {"LSTM layer, batch 256, 64 steps, 128 units", build_lstm};
/* Moves the same number of bytes as a copy of 2^26 elements. */
static const op_subject copy = {"z = x + y: three streams of 179 MB (no operation is a pure copy)", build_copy};

#define PRODUCTS(name, peer, m, n, k)                                                                                  \
    {"sgemm_" name, peer, &product, FORWARD, {m, n, k}}, {"sgemm_" name "_dx", "", &product, DX, {m, n, k}}, {         \
        "sgemm_" name "_dw", "", &product, DW, {                                                                       \
            m, n, k                                                                                                    \
        }                                                                                                              \
    }
#define BOTH_AND_FORWARD(name, peer, peer_forward, subject, ...)                                                       \
    {name, peer, &subject, BOTH, {__VA_ARGS__}}, {                                                                     \
        name "_forward", peer_forward, &subject, FORWARD, {                                                            \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }

static const op_row rows[] = {
    PRODUCTS("256", "sgemm256", 256, 256, 256),
    PRODUCTS("512", "sgemm512", 512, 512, 512),
    PRODUCTS("1024", "sgemm1024", 1024, 1024, 1024),
    PRODUCTS("2048", "sgemm2048", 2048, 2048, 2048),
    /* the layers of W1_B2L512 */
    PRODUCTS("1024x768x256", "", 1024, 768, 256),
    PRODUCTS("1024x256x256", "", 1024, 256, 256),
    PRODUCTS("1024x1024x256", "", 1024, 1024, 256),
    PRODUCTS("1024x256x1024", "", 1024, 256, 1024),
    BOTH_AND_FORWARD("conv_64", "", "", conv, 4, 56, 64, 64, 3, 1),
    BOTH_AND_FORWARD("conv_128", "", "", conv, 4, 28, 128, 128, 3, 1),
    BOTH_AND_FORWARD("conv_256", "", "", conv, 4, 14, 256, 256, 3, 1),
    BOTH_AND_FORWARD("conv_512", "", "", conv, 4, 7, 512, 512, 3, 1),
    {"conv_stem", "", &conv, FORWARD, {4, 224, 3, 64, 7, 2}}, /* the gradient of an image is not needed */
    {"conv_stem_dw", "", &conv, DW, {4, 224, 3, 64, 7, 2}},
    BOTH_AND_FORWARD("attention_L512_d32", "", "", attention, 2, 512, 8, 32),
    BOTH_AND_FORWARD("attention_L512_d64", "", "", attention, 2, 512, 8, 64),
    BOTH_AND_FORWARD("causal_attention_L512_d64", "", "", causal, 2, 512, 8, 64, 8),
    BOTH_AND_FORWARD("attention_L1200_d32", "attn_d32", "", attention, 2, 1200, 8, 32),
    BOTH_AND_FORWARD("attention_L1200_d64", "attn_d64", "", attention, 2, 1200, 8, 64),
    BOTH_AND_FORWARD("disentangled_L512_d64", "", "", disentangled, 2, 512, 8, 64),
    BOTH_AND_FORWARD("attention_8x256x4_d32", "", "", cross_attention, 8, 256, 4, 32),
    BOTH_AND_FORWARD("attention_8x4096x64_d32", "", "", cross_attention, 8, 4096, 64, 32),
    BOTH_AND_FORWARD("layer_norm_4096x256", "", "", layer_norm, 4096, 256),
    BOTH_AND_FORWARD("layer_norm_8192x512", "ln_fwdbwd", "ln_fwd", layer_norm, 8192, 512),
    BOTH_AND_FORWARD("batch_norm_stem", "", "", batch_norm, 4, 112, 64, 0),
    BOTH_AND_FORWARD("batch_norm_64", "", "", batch_norm, 4, 56, 64, 1),
    BOTH_AND_FORWARD("batch_norm_512", "", "", batch_norm, 4, 7, 512, 1),
    BOTH_AND_FORWARD("max_pool_stem", "", "", max_pool, 4, 112, 64, 3, 2),
    BOTH_AND_FORWARD("softmax_4096x256", "", "", softmax, 4096, 256),
    BOTH_AND_FORWARD("softmax_8192x512", "softmax_fwdbwd", "softmax_fwd", softmax, 8192, 512),
    BOTH_AND_FORWARD("cross_entropy_4096x1000", "", "", cross_entropy, 4096, 1000),
    BOTH_AND_FORWARD("gelu_4096x1024", "", "", gelu, 4096, 1024),
    BOTH_AND_FORWARD("gelu_8192x512", "gelu_fwdbwd", "", gelu, 8192, 512),
    BOTH_AND_FORWARD("dropout_8192x512", "", "", dropout, 8192, 512),
    BOTH_AND_FORWARD("embedding_8000x128", "", "", embedding, 32, 128, 8000, 128),
    BOTH_AND_FORWARD("lstm_256x64x128", "", "", lstm, 256, 64, 128, 128),
    {"grad_norm_4m", "", &grad_norm, FORWARD, {4000000}},
    {"adamw_4m", "adamw_4m", &adamw, FORWARD, {4000000}},
    {"copy", "copy", &copy, FORWARD, {44739240}},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static void build(cleat_graph *graph, const op_row *row) {
    cleat_tensor *y = row->subject->build(graph, row);
    cleat_retain(graph, y);
    if (row->phase == FORWARD || !y) return;
    cleat_tensor *dy = cleat_input(graph, "dy", CLEAT_F32, y->rank, y->shape);
    cleat_backward_from(graph, &y, &dy, 1);
    cleat_retain(graph, cleat_graph_find(graph, "x") ? cleat_gradient(graph, cleat_graph_find(graph, "x")) : NULL);
}

/* Hyperparameters that keep the moments from decaying to denormal numbers, which are slow on CPUs, for any
 * number of timed steps: the gradient is zero from the second step on. */
static cleat_status fill_hyper(const cleat_bench_graph *made, cleat_error *error) {
    const float hyper[HYPER_COUNT] = {
        [HYPER_RATE] = 1e-4f,         [HYPER_BETA1] = 0.9999f, [HYPER_BETA2] = 0.9999f,    [HYPER_EPS] = 1e-8f,
        [HYPER_WEIGHT_DECAY] = 0.01f, [HYPER_MAX_NORM] = 0,    [HYPER_CORRECTION1] = 0.1f, [HYPER_CORRECTION2] = 0.1f};
    const cleat_tensor *tensor = cleat_graph_find(made->graph, "hyper");
    return tensor ? cleat_exec_write_unchecked(made->exec, 0, tensor, hyper, error) : CLEAT_OK;
}

/* Fills with tokens from the whole vocabulary. */
static cleat_status fill_tokens(const cleat_bench_graph *made, const op_row *row, cleat_error *error) {
    const cleat_tensor *tensor = cleat_graph_find(made->graph, "tokens");
    if (!tensor) return CLEAT_OK;
    int64_t count = cleat_tensor_elements(tensor);
    int32_t *tokens = cleat_alloc((size_t)count, sizeof *tokens);
    if (!tokens) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for tokens");
    for (int64_t i = 0; i < count; ++i) tokens[i] = (int32_t)(i * 7919 % row->size[2]);
    cleat_status status = cleat_exec_write_unchecked(made->exec, 0, tensor, tokens, error);
    cleat_free(tokens);
    return status;
}

static void close_row(void *own) {
    cleat_bench_graph_destroy(own);
    cleat_free(own);
}

static cleat_status open_row(const void *spec, cleat_bench_job *job, cleat_error *error) {
    const op_row *row = spec;
    cleat_bench_graph *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a graph");
    job->own = made;
    job->close = close_row;
    cleat_status status = cleat_bench_graph_create(row->name, made, error);
    if (status) return status;
    build(made->graph, row);
    status = cleat_bench_graph_open(made, job, error);
    if (!status) status = fill_hyper(made, error);
    if (!status) status = fill_tokens(made, row, error);
    if (row->phase == DX || row->phase == DW) job->parts[0].first = made->graph->forward_nodes;
    return status;
}

bool cleat_bench_op(size_t i, cleat_bench_entry *entry) {
    static const char *const phases[] = {
        [FORWARD] = "", [BOTH] = ", with its gradient", [DX] = ": the gradient of x", [DW] = ": the gradient of w"};
    if (i >= ROWS) return false;
    const op_row *row = &rows[i];
    *entry = (cleat_bench_entry){.info.kind = CLEAT_BENCH_MICRO, .open = open_row, .spec = row};
    snprintf(entry->info.name, sizeof entry->info.name, "%s", row->name);
    snprintf(entry->info.peer, sizeof entry->info.peer, "%s", row->peer);
    snprintf(entry->info.what, sizeof entry->info.what, "%s%s", row->subject->what, phases[row->phase]);
    return true;
}
