/* Causal attention: grouped queries, packed sequences, padding, a sliding window. */
/* ctest: device slow oclgrind=0:f32 */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* dims: B, L, H, K, D / H, window, kind of starts, scale in thousandths, 1: queries in a tensor of their own */
enum { BATCH, LENGTH, HEADS, KV_HEADS, HEAD, WINDOW, STARTS, SCALE, SPLIT };

/* Kind of starts: no tensor; packed sequences of different lengths; the same with padding at the end of the row;
 * any number for each query: negative, decreasing, and padding between others. */
enum { NONE, PACKED, PADDED, ODD };

static int64_t start_of(const op_case *c, int64_t b, int64_t l) {
    const int64_t length = c->dims[LENGTH], packed = l / (length / 3 + 1 + b) * (length / 3 + 1 + b);
    switch (c->dims[STARTS]) {
    case PACKED:
        return packed;
    case PADDED:
        return l < length - length / 4 - b ? packed : length + 5;
    case ODD:
        return l % 7 == 3 ? l + 1 : (l * 37 + b * 11) % (l + 4) - 3;
    default:
        return 0;
    }
}

/* Elements of a row of keys and values, and of the queries if they are in the same tensor. */
static int64_t row_width(const op_case *c) {
    return ((c->dims[SPLIT] ? 0 : c->dims[HEADS]) + 2 * c->dims[KV_HEADS]) * c->dims[HEAD];
}

static void build(op_case *c) {
    const int64_t *d = c->dims, shape[] = {d[BATCH], d[LENGTH], row_width(c)},
                  q_shape[] = {d[BATCH], d[LENGTH], d[HEADS] * d[HEAD]};
    cleat_tensor *q = d[SPLIT] ? op_input(c, "q", c->storage, 3, q_shape, -2, 2) : NULL, *starts = NULL;
    cleat_tensor *kv = op_input(c, d[SPLIT] ? "kv" : "qkv", c->storage, 3, shape, -2, 2);
    if (d[STARTS] != NONE) starts = op_constant(c, "starts", CLEAT_I32, 2, shape, 0, 0);
    op_output(c, cleat_causal_attention(c->graph, q ? q : kv, q ? kv : NULL, starts, (int)d[HEADS], (int)d[KV_HEADS],
                                        (int)d[WINDOW], (float)d[SCALE] / 1000));
}

static void fill(const op_case *c, int tensor, double *values, int64_t count) {
    const int64_t length = c->dims[LENGTH];
    for (int64_t i = 0; i < count && tensor == c->dims[SPLIT] + 1; ++i)
        values[i] = (double)start_of(c, i / length, i % length);
}

/* A query: offsets in elements of it and of the first key that it sees, with the number of keys. */
typedef struct query {
    int64_t q, k, v, y, keys, size, row;
    int kv; /* the input with the keys; queries are in input 0 */
    double scale;
} query;

static query query_at(const op_case *c, int64_t b, int64_t h, int64_t l) {
    const int64_t *d = c->dims, size = d[HEAD], row = row_width(c), before = d[SPLIT] ? 0 : d[HEADS],
                  kv = before + h / (d[HEADS] / d[KV_HEADS]);
    int64_t first = start_of(c, b, l);
    if (d[WINDOW] > 0 && first < l - d[WINDOW] + 1) first = l - d[WINDOW] + 1;
    if (first < 0) first = 0;
    return (query){.q = (b * d[LENGTH] + l) * (d[SPLIT] ? d[HEADS] * size : row) + h * size,
                   .kv = d[SPLIT] ? 1 : 0,
                   .k = (b * d[LENGTH] + first) * row + kv * size,
                   .v = (b * d[LENGTH] + first) * row + (d[KV_HEADS] + kv) * size,
                   .y = ((b * d[LENGTH] + l) * d[HEADS] + h) * size,
                   .keys = first <= l ? l + 1 - first : 0,
                   .size = size,
                   .row = row,
                   .scale = d[SCALE] ? (double)((float)d[SCALE] / 1000) : 1 / sqrt((double)size)};
}

static double dot(const double *a, const double *b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

static void add_scaled(double *to, const double *from, double scale, int64_t n) {
    for (int64_t i = 0; i < n; ++i) to[i] += scale * from[i];
}

/* weight [keys] = softmax over the keys that the query sees */
static void softmax(const query *a, const double *const *in, double *weight) {
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < a->keys; ++j) {
        weight[j] = a->scale * dot(in[0] + a->q, in[a->kv] + a->k + j * a->row, a->size);
        top = fmax(top, weight[j]);
    }
    for (int64_t j = 0; j < a->keys; ++j) sum += weight[j] = exp(weight[j] - top);
    for (int64_t j = 0; j < a->keys; ++j) weight[j] /= sum;
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    const int64_t *d = c->dims, queries = d[BATCH] * d[HEADS] * d[LENGTH];
    double *weight = malloc((size_t)d[LENGTH] * sizeof *weight);
    memset(out[0], 0, (size_t)(queries * d[HEAD]) * sizeof *out[0]);
    for (int64_t at = 0; at < queries; ++at) {
        const query a = query_at(c, at / d[LENGTH] / d[HEADS], at / d[LENGTH] % d[HEADS], at % d[LENGTH]);
        softmax(&a, in, weight);
        for (int64_t j = 0; j < a.keys; ++j) add_scaled(out[0] + a.y, in[a.kv] + a.v + j * a.row, weight[j], a.size);
    }
    free(weight);
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    const int64_t *d = c->dims, queries = d[BATCH] * d[HEADS] * d[LENGTH];
    double *weight = malloc((size_t)d[LENGTH] * sizeof *weight), *dweight = malloc((size_t)d[LENGTH] * sizeof *dweight);
    for (int64_t at = 0; at < queries; ++at) {
        const query a = query_at(c, at / d[LENGTH] / d[HEADS], at / d[LENGTH] % d[HEADS], at % d[LENGTH]);
        const double *dy = dout[0] + a.y;
        double mean = 0;
        softmax(&a, in, weight);
        for (int64_t j = 0; j < a.keys; ++j)
            mean += weight[j] * (dweight[j] = dot(dy, in[a.kv] + a.v + j * a.row, a.size));
        for (int64_t j = 0; j < a.keys; ++j) {
            const double dscore = weight[j] * (dweight[j] - mean) * a.scale;
            add_scaled(din[0] + a.q, in[a.kv] + a.k + j * a.row, dscore, a.size);
            add_scaled(din[a.kv] + a.k + j * a.row, in[0] + a.q, dscore, a.size);
            add_scaled(din[a.kv] + a.v + j * a.row, dy, weight[j], a.size);
        }
    }
    free(weight);
    free(dweight);
}

/* As for attention (test_attention.c), but the weights of one key do not add up to about 1: those of the first
 * key are at least 1, 1/2, 1/3, ..., in each head of queries that shares it. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)tensor;
    const double sum = (1 + log((double)c->dims[LENGTH])) * (double)c->dims[HEADS] / (double)c->dims[KV_HEADS];
    return (compare_tolerance){.scale = is_gradient ? 4 * sqrt(sum) : 2,
                               .length = (double)c->dims[HEAD],
                               .f32_units = is_gradient ? 4 : 2,
                               .storage_units = is_gradient ? 2 : 1};
}

/* Later keys are longer, up to FAR times: the largest scores are those of keys that a query does not see. */
enum { FAR = 50 };

static void fill_far(const op_case *c, int tensor, double *values, int64_t count) {
    const int64_t row = row_width(c), first = c->dims[HEADS] * c->dims[HEAD],
                  end = first + c->dims[KV_HEADS] * c->dims[HEAD];
    fill(c, tensor, values, count);
    for (int64_t i = 0; i < count && tensor == 0; ++i)
        if (i % row >= first && i % row < end)
            values[i] *= 1 + (FAR - 1.0) * (double)(i / row % c->dims[LENGTH]) / (double)c->dims[LENGTH];
}

static compare_tolerance tolerance_far(const op_case *c, int tensor, bool is_gradient) {
    compare_tolerance t = tolerance(c, tensor, is_gradient);
    t.scale *= is_gradient ? FAR * FAR : FAR;
    return t;
}

/* Head size, heads that share a key, and window are separate compilations. */
static const op_row rows[] = {{1, 7, 1, 1, 32, 7},
                              {2, 33, 4, 2, 32, 0, PACKED, 250},
                              {3, 65, 4, 2, 32, 5, PADDED, 0, 1},
                              {2, 70, 6, 1, 32, 0, ODD},
                              {1, 330, 1, 1, 32, 100, PACKED}};
static const op_row rows_f32[] = {
    {1, 1, 1, 1, 80},     {2, 33, 6, 1, 8, 5, ODD, 0, 1}, {1, 130, 4, 1, 64, 0, PADDED},
    {2, 37, 1, 1, 80, 1}, {1, 70, 2, 2, 128, 33, PACKED}, {1, 70, 2, 1, 256, 0, PADDED, 0, 1}};
static const op_row rows_f16[] = {{1, 130, 4, 1, 64, 0, PACKED}, {2, 37, 4, 2, 80, 7, PADDED, 0, 1}};
static const op_row rows_bf16[] = {{1, 70, 4, 2, 128, 20, ODD}, {2, 130, 6, 6, 8, 0, PACKED}};
static const op_row rows_far[] = {{1, 20, 1, 1, 16}, {2, 201, 2, 1, 32, 0, PACKED}, {2, 201, 1, 1, 32, 40}};

#define TEST(which, name, types, fills, allows)                                                                        \
    {                                                                                                                  \
        .op = "causal_attention", .title = name, .rows = which, .row_count = sizeof which / sizeof which[0],           \
        .build = build, .fill = fills, .reference = reference, .gradient = gradient, .tolerance = allows,              \
        .samples = 4, .only = types                                                                                    \
    }

static const op_test tests[] = {
    TEST(rows, "causal attention", 0, fill, tolerance),
    TEST(rows_f32, "causal attention, other head sizes", 1u << CLEAT_F32, fill, tolerance),
    TEST(rows_f16, "causal attention, other head sizes, f16", 1u << CLEAT_F16, fill, tolerance),
    TEST(rows_bf16, "causal attention, other head sizes, bf16", 1u << CLEAT_BF16, fill, tolerance),
    TEST(rows_far, "causal attention, rising scores", 1u << CLEAT_F32, fill_far, tolerance_far),
};

/* --- arguments that do not fit --------------------------------------------------------------------------------- */

typedef struct bad_call {
    int64_t shape[3], starts[2];
    int rank, heads, kv_heads, window;
    float scale;
    cleat_dtype dtype, of_starts;
    cleat_status status;
    const char *says;
} bad_call;

static void test_inputs_that_do_not_fit(void **state) {
    (void)state;
    static const bad_call calls[] = {
        {{2, 3, 64}, {2, 3}, 3, 4, 0, 0, 0, CLEAT_F32, CLEAT_I32, CLEAT_ERR_ARGUMENT, "0 heads of keys"},
        {{2, 3, 64}, {2, 3}, 3, 4, 3, 0, 0, CLEAT_F32, CLEAT_I32, CLEAT_ERR_SHAPE, "4 heads of queries and 3 of keys"},
        {{2, 3, 64}, {2, 3}, 3, 0, 2, 0, 0, CLEAT_F32, CLEAT_I32, CLEAT_ERR_SHAPE, "0 heads of queries"},
        {{2, 3, 60}, {2, 3}, 3, 4, 2, 0, 0, CLEAT_F32, CLEAT_I32, CLEAT_ERR_SHAPE, "[B, L, 8 D/H]"},
        {{2, 3, 64}, {2, 3}, 2, 4, 2, 0, 0, CLEAT_F32, CLEAT_I32, CLEAT_ERR_SHAPE, "[B, L, 8 D/H]"},
        {{2, 3, 64}, {2, 3}, 3, 4, 2, 0, 0, CLEAT_I32, CLEAT_I32, CLEAT_ERR_SHAPE, "f32, f16 or bf16"},
        {{2, 3, 771}, {2, 3}, 3, 1, 1, 0, 0, CLEAT_F32, CLEAT_I32, CLEAT_ERR_SHAPE, "257 elements"},
        {{2, 3, 64}, {2, 3}, 3, 4, 2, -1, 0, CLEAT_F32, CLEAT_I32, CLEAT_ERR_SHAPE, "window is -1"},
        {{2, 3, 64}, {2, 3}, 3, 4, 2, 0, -1, CLEAT_F32, CLEAT_I32, CLEAT_ERR_SHAPE, "scale -1"},
        {{2, 3, 64}, {2, 3}, 3, 4, 2, 0, NAN, CLEAT_F32, CLEAT_I32, CLEAT_ERR_SHAPE, "nan"},
        {{2, 3, 64}, {2, 4}, 3, 4, 2, 0, 0, CLEAT_F32, CLEAT_I32, CLEAT_ERR_SHAPE, "starts"},
        {{2, 3, 64}, {2, 3}, 3, 4, 2, 0, 0, CLEAT_F32, CLEAT_F32, CLEAT_ERR_SHAPE, "starts"},
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; ++i) {
        const bad_call *bad = &calls[i];
        cleat_graph *graph = op_graph();
        cleat_tensor *qkv = cleat_input(graph, "qkv", bad->dtype, bad->rank, bad->shape);
        cleat_tensor *starts = cleat_input(graph, "starts", bad->of_starts, 2, bad->starts);
        assert_int_equal(cleat_graph_status(graph, NULL), CLEAT_OK);
        assert_null(
            cleat_causal_attention(graph, qkv, NULL, starts, bad->heads, bad->kv_heads, bad->window, bad->scale));
        op_graph_refused(graph, bad->status, "causal_attention", bad->says);
    }
}

/* Half of the pairs, or a window's share of them. */
static void test_cost_counts_the_keys_that_are_seen(void **state) {
    (void)state;
    enum { LONG = 1000, WIDTH = 96 };
    cleat_graph *graph = op_graph();
    cleat_tensor *qkv = cleat_input(graph, "qkv", CLEAT_F32, 3, (int64_t[]){1, LONG, WIDTH});
    const int windows[] = {0, 100, 5000};
    double flops[3], all;
    for (int i = 0; i < 3; ++i) {
        const cleat_node *node = cleat_causal_attention(graph, qkv, NULL, NULL, 1, 1, windows[i], 0)->producer;
        flops[i] = node->op->cost(node).flops;
    }
    const cleat_node *node = cleat_attention(graph, qkv, NULL, 1)->producer;
    all = node->op->cost(node).flops;
    assert_float_equal(flops[0] / all, 0.5 + 0.5 / LONG, 1e-6);
    assert_float_equal(flops[1] / all, (100 * 101 / 2 + 900 * 100) / 1e6, 1e-6);
    assert_float_equal(flops[2], flops[0], 0);
    op_graph_end(graph);
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(test_inputs_that_do_not_fit),
                                       cmocka_unit_test(test_cost_counts_the_keys_that_are_seen)};
    return op_main(tests, sizeof tests / sizeof tests[0], extra, 2);
}
