/* Multi-head cross-attention from one sequence to another. */
/* ctest: device slow oclgrind=0:f32 */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* dims: B, L, S, H, D / H, required gradients */
enum { BATCH, QUERIES, KEYS, HEADS, HEAD, WANTS };

/* Required gradients: both, queries only, keys and values only. */
enum { BOTH, ONLY_Q, ONLY_KV };

static cleat_tensor *operand(op_case *c, const char *name, int64_t rows, int64_t width, bool wants_grad) {
    const int64_t shape[] = {c->dims[BATCH], rows, width};
    return wants_grad ? op_input(c, name, c->storage, 3, shape, -2, 2)
                      : op_constant(c, name, c->storage, 3, shape, -2, 2);
}

static void build(op_case *c) {
    const int64_t width = c->dims[HEADS] * c->dims[HEAD];
    cleat_tensor *q = operand(c, "q", c->dims[QUERIES], width, c->dims[WANTS] != ONLY_KV);
    cleat_tensor *kv = operand(c, "kv", c->dims[KEYS], 2 * width, c->dims[WANTS] != ONLY_Q);
    op_output(c, cleat_cross_attention(c->graph, q, kv, (int)c->dims[HEADS]));
}

/* One head of one sample: offsets of its first rows. Rows of queries and outputs are `width` elements apart,
 * rows of keys and values twice that. */
typedef struct head {
    int64_t width, size; /* D, D / H */
    int64_t q, k, v;     /* offsets in elements into q (and y), kv, kv */
} head;

static head head_at(const op_case *c, int64_t b, int64_t h) {
    int64_t size = c->dims[HEAD], width = c->dims[HEADS] * size, first = b * c->dims[KEYS] * 2 * width + h * size;
    return (head){
        .width = width, .size = size, .q = b * c->dims[QUERIES] * width + h * size, .k = first, .v = first + width};
}

static double dot(const double *a, const double *b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

static void add_scaled(double *to, const double *from, double scale, int64_t n) {
    for (int64_t i = 0; i < n; ++i) to[i] += scale * from[i];
}

/* weight [S] = softmax over the keys for one query */
static void softmax(const head *a, const double *query, const double *kv, int64_t keys, double *weight) {
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < keys; ++j) {
        weight[j] = dot(query, kv + a->k + j * 2 * a->width, a->size) / sqrt((double)a->size);
        top = fmax(top, weight[j]);
    }
    for (int64_t j = 0; j < keys; ++j) sum += weight[j] = exp(weight[j] - top);
    for (int64_t j = 0; j < keys; ++j) weight[j] /= sum;
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    const int64_t queries = c->dims[QUERIES], keys = c->dims[KEYS];
    double *weight = malloc((size_t)keys * sizeof *weight);
    memset(out[0], 0, (size_t)(c->dims[BATCH] * queries * c->dims[HEADS] * c->dims[HEAD]) * sizeof *out[0]);
    for (int64_t b = 0; b < c->dims[BATCH]; ++b)
        for (int64_t h = 0; h < c->dims[HEADS]; ++h) {
            head a = head_at(c, b, h);
            for (int64_t i = 0; i < queries; ++i) {
                softmax(&a, in[0] + a.q + i * a.width, in[1], keys, weight);
                for (int64_t j = 0; j < keys; ++j)
                    add_scaled(out[0] + a.q + i * a.width, in[1] + a.v + j * 2 * a.width, weight[j], a.size);
            }
        }
    free(weight);
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    const int64_t queries = c->dims[QUERIES], keys = c->dims[KEYS];
    double *weight = malloc((size_t)keys * sizeof *weight), *dweight = malloc((size_t)keys * sizeof *dweight);
    for (int64_t b = 0; b < c->dims[BATCH]; ++b)
        for (int64_t h = 0; h < c->dims[HEADS]; ++h) {
            head a = head_at(c, b, h);
            for (int64_t i = 0; i < queries; ++i) {
                const int64_t at = a.q + i * a.width;
                double mean = 0;
                softmax(&a, in[0] + at, in[1], keys, weight);
                for (int64_t j = 0; j < keys; ++j)
                    mean += weight[j] * (dweight[j] = dot(dout[0] + at, in[1] + a.v + j * 2 * a.width, a.size));
                for (int64_t j = 0; j < keys; ++j) {
                    double dscore = weight[j] * (dweight[j] - mean) / sqrt((double)a.size);
                    const int64_t key = a.k + j * 2 * a.width, value = a.v + j * 2 * a.width;
                    if (din[0]) add_scaled(din[0] + at, in[1] + key, dscore, a.size);
                    if (din[1]) add_scaled(din[1] + key, in[0] + at, dscore, a.size);
                    if (din[1]) add_scaled(din[1] + value, dout[0] + at, weight[j], a.size);
                }
            }
        }
    free(weight);
    free(dweight);
}

/* Outputs are means of values below 2. A score has D / H terms and an error of some f32 roundings, which is
 * the relative error of its weight. The gradient of a key is a sum over L queries, each with a weight of
 * about 1 / S. Backward computes dy * y from the rounded y; matrix units use rounded weights. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    double queries_a_key = fmax(1, (double)c->dims[QUERIES] / (double)c->dims[KEYS]);
    return (compare_tolerance){.scale = !is_gradient  ? 2
                                        : tensor == 0 ? 4
                                                      : 4 * sqrt(queries_a_key),
                               .length = (double)c->dims[HEAD],
                               .f32_units = is_gradient ? 4 : 2,
                               .storage_units = is_gradient ? 2 : 1};
}

/* Every head size is a separate compilation: one of them runs in all storage types, the others in f32. A
 * hundred or more queries with few keys are split into several parts, each with separate sums for a key. */
static const op_row rows[] = {{1, 3, 1, 1, 32}, {1, 130, 4, 2, 32}, {1, 17, 130, 5, 32}};
static const op_row rows_f32[] = {
    {1, 9, 4, 5, 8}, {1, 301, 4, 1, 64}, {1, 140, 4, 2, 33}, {2, 70, 17, 1, 32, ONLY_Q}, {2, 140, 17, 1, 32, ONLY_KV}};
static const op_row rows_half[] = {{2, 70, 17, 1, 32, ONLY_Q}, {2, 140, 17, 1, 32, ONLY_KV}};

#define TEST(which, name, types)                                                                                       \
    {                                                                                                                  \
        .op = "attention", .title = name, .rows = which, .row_count = sizeof which / sizeof which[0], .build = build,  \
        .reference = reference, .gradient = gradient, .tolerance = tolerance, .samples = 4, .only = types              \
    }

static const op_test tests[] = {
    TEST(rows, "cross-attention", 0),
    TEST(rows_f32, "cross-attention, other head sizes", 1u << CLEAT_F32),
    TEST(rows_half, "cross-attention, one gradient", 1u << CLEAT_F16 | 1u << CLEAT_BF16),
};

/* --- unsupported shapes ---------------------------------------------------------------------------------------- */

typedef struct bad_call {
    int64_t q[3], kv[3];
    int q_rank, kv_rank, heads;
    cleat_dtype q_dtype, kv_dtype;
    const char *says;
} bad_call;

static void test_inputs_that_do_not_fit(void **state) {
    (void)state;
    static const bad_call calls[] = {
        {{2, 3, 24}, {2, 5, 48}, 3, 3, 5, CLEAT_F32, CLEAT_F32, "multiple of 5 heads"},
        {{2, 3, 24}, {2, 5, 48}, 3, 3, 0, CLEAT_F32, CLEAT_F32, "0 heads"},
        {{2, 3, 24}, {2, 5, 48}, 2, 3, 1, CLEAT_F32, CLEAT_F32, "[B, L, D]"},
        {{2, 3, 24}, {2, 5, 48}, 3, 3, 1, CLEAT_I32, CLEAT_I32, "f32, f16 or bf16"},
        {{2, 3, 129}, {2, 5, 258}, 3, 3, 1, CLEAT_F32, CLEAT_F32, "129 elements"},
        {{2, 3, 24}, {2, 48, 5}, 3, 2, 1, CLEAT_F32, CLEAT_F32, "f32 [2, S, 48]"},
        {{2, 3, 24}, {2, 5, 24}, 3, 3, 1, CLEAT_F32, CLEAT_F32, "f32 [2, S, 48]"},
        {{2, 3, 24}, {1, 5, 48}, 3, 3, 1, CLEAT_F32, CLEAT_F32, "f32 [2, S, 48]"},
        {{2, 3, 24}, {2, 5, 48}, 3, 3, 1, CLEAT_F32, CLEAT_F16, "f32 [2, S, 48]"},
        {{1 << 20, 3, 8}, {1 << 20, 4096, 16}, 3, 3, 1, CLEAT_F32, CLEAT_F32, "more than 2^30 rows"},
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; ++i) {
        const bad_call *bad = &calls[i];
        cleat_graph *graph = op_graph();
        cleat_tensor *q = cleat_input(graph, "q", bad->q_dtype, bad->q_rank, bad->q);
        cleat_tensor *kv = cleat_input(graph, "kv", bad->kv_dtype, bad->kv_rank, bad->kv);
        assert_int_equal(cleat_graph_status(graph, NULL), CLEAT_OK);
        assert_null(cleat_cross_attention(graph, q, kv, bad->heads));
        op_graph_refused(graph, CLEAT_ERR_SHAPE, "attention", bad->says);
    }
}

/* Statistics have the size of the queries; no node exists for a gradient that is
 * not required. */
static void test_gradients_nobody_wants(void **state) {
    (void)state;
    cleat_graph *graph = op_graph();
    cleat_tensor *q = cleat_input(graph, "q", CLEAT_F32, 3, (int64_t[]){2, 3, 8});
    cleat_tensor *kv = cleat_input(graph, "kv", CLEAT_F32, 3, (int64_t[]){2, 5, 16});
    cleat_tensor *y = cleat_cross_attention(graph, q, kv, 2);
    assert_non_null(y);
    const int64_t lse[] = {2, 2, 3};
    assert_memory_equal(y->producer->out[1]->shape, lse, sizeof lse);
    cleat_tensor *dy = cleat_input(graph, "dy", CLEAT_F32, 3, (int64_t[]){2, 3, 8});
    cleat_backward_from(graph, &y, &dy, 1);
    assert_int_equal(cleat_graph_status(graph, NULL), CLEAT_OK);
    assert_int_equal(graph->node_count, 1);
    op_graph_end(graph);
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(test_inputs_that_do_not_fit),
                                       cmocka_unit_test(test_gradients_nobody_wants)};
    return op_main(tests, sizeof tests / sizeof tests[0], extra, 2);
}
