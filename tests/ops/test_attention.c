/* Multi-head self-attention with masked rows; local attention. */
/* ctest: device slow cost=47 oclgrind=0:f32 */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* dims: B, L, H, D / H, kind of lengths, window (0: none) */
enum { BATCH, LENGTH, HEADS, HEAD, LENGTHS, WINDOW };

/* Kind of lengths: no length tensor; a different length in every slot, 0, 1 and L among them; the same with
 * NaN in all masked rows, which must not be read. */
enum { NONE, MIXED, MIXED_NAN };

static int64_t length_of(const op_case *c, int64_t b) {
    const int64_t all = c->dims[LENGTH], some[] = {all, 0, 1, (all + 1) / 2, all - 1};
    return c->dims[LENGTHS] == NONE ? all : some[b % 5];
}

static void build(op_case *c) {
    const int64_t batch = c->dims[BATCH], width = c->dims[HEADS] * c->dims[HEAD];
    const int64_t shape[] = {batch, c->dims[LENGTH], 3 * width};
    cleat_tensor *qkv = op_input(c, "qkv", c->storage, 3, shape, -2, 2), *lengths = NULL;
    if (c->dims[LENGTHS] != NONE) lengths = op_constant(c, "lengths", CLEAT_I32, 1, &batch, 0, 0);
    const int heads = (int)c->dims[HEADS], window = (int)c->dims[WINDOW];
    op_output(c, window ? cleat_local_attention(c->graph, qkv, lengths, heads, window)
                        : cleat_attention(c->graph, qkv, lengths, heads));
}

static void fill(const op_case *c, int tensor, double *values, int64_t count) {
    if (tensor == 1)
        for (int64_t b = 0; b < count; ++b) values[b] = (double)length_of(c, b);
    if (tensor != 0 || c->dims[LENGTHS] != MIXED_NAN) return;
    int64_t row = 3 * c->dims[HEADS] * c->dims[HEAD], slot = c->dims[LENGTH] * row;
    for (int64_t b = 0; b < c->dims[BATCH]; ++b)
        for (int64_t i = length_of(c, b) * row; i < slot; ++i) values[b * slot + i] = NAN;
}

/* One head of one slot: offsets of its first row and the distance between rows. */
typedef struct head {
    int64_t rows, row, size; /* rows present; elements between rows of qkv; D / H */
    int64_t reach;           /* keys to each side that a query sees */
    const double *q, *k, *v;
    int64_t q_at, y_at; /* offsets in elements into qkv and y; rows of y are row / 3 apart */
} head;

static head head_at(const op_case *c, const double *qkv, int64_t b, int64_t h) {
    int64_t size = c->dims[HEAD], width = c->dims[HEADS] * size, first = b * c->dims[LENGTH];
    int64_t at = first * 3 * width + h * size;
    return (head){.rows = length_of(c, b),
                  .row = 3 * width,
                  .size = size,
                  .reach = c->dims[WINDOW] ? c->dims[WINDOW] / 2 : c->dims[LENGTH],
                  .q = qkv + at,
                  .k = qkv + at + width,
                  .v = qkv + at + 2 * width,
                  .q_at = at,
                  .y_at = first * width + h * size};
}

static double dot(const double *a, const double *b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

/* weight [rows] = softmax over the keys of query i */
static void softmax(const head *a, int64_t i, double *weight) {
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < a->rows; ++j) {
        const double score = dot(a->q + i * a->row, a->k + j * a->row, a->size) / sqrt((double)a->size);
        weight[j] = llabs(i - j) <= a->reach ? score : -INFINITY;
        top = fmax(top, weight[j]);
    }
    for (int64_t j = 0; j < a->rows; ++j) sum += weight[j] = exp(weight[j] - top);
    for (int64_t j = 0; j < a->rows; ++j) weight[j] /= sum;
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    int64_t width = c->dims[HEADS] * c->dims[HEAD];
    double *weight = malloc((size_t)c->dims[LENGTH] * sizeof *weight);
    memset(out[0], 0, (size_t)(c->dims[BATCH] * c->dims[LENGTH] * width) * sizeof *out[0]);
    for (int64_t b = 0; b < c->dims[BATCH]; ++b)
        for (int64_t h = 0; h < c->dims[HEADS]; ++h) {
            head a = head_at(c, in[0], b, h);
            for (int64_t i = 0; i < a.rows; ++i) {
                softmax(&a, i, weight);
                for (int64_t j = 0; j < a.rows; ++j)
                    for (int64_t d = 0; d < a.size; ++d)
                        out[0][a.y_at + i * width + d] += weight[j] * a.v[j * a.row + d];
            }
        }
    free(weight);
}

static void add_scaled(double *to, const double *from, double scale, int64_t n) {
    for (int64_t i = 0; i < n; ++i) to[i] += scale * from[i];
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    int64_t width = c->dims[HEADS] * c->dims[HEAD];
    double *weight = malloc((size_t)c->dims[LENGTH] * sizeof *weight);
    double *dweight = malloc((size_t)c->dims[LENGTH] * sizeof *dweight);
    for (int64_t b = 0; b < c->dims[BATCH]; ++b)
        for (int64_t h = 0; h < c->dims[HEADS]; ++h) {
            head a = head_at(c, in[0], b, h);
            double *dq = din[0] + a.q_at, *dk = dq + width, *dv = dk + width;
            for (int64_t i = 0; i < a.rows; ++i) {
                const double *dy = dout[0] + a.y_at + i * width;
                double mean = 0;
                softmax(&a, i, weight);
                for (int64_t j = 0; j < a.rows; ++j)
                    mean += weight[j] * (dweight[j] = dot(dy, a.v + j * a.row, a.size));
                for (int64_t j = 0; j < a.rows; ++j) {
                    double dscore = weight[j] * (dweight[j] - mean) / sqrt((double)a.size);
                    add_scaled(dq + i * a.row, a.k + j * a.row, dscore, a.size);
                    add_scaled(dk + j * a.row, a.q + i * a.row, dscore, a.size);
                    add_scaled(dv + j * a.row, dy, weight[j], a.size);
                }
            }
        }
    free(weight);
    free(dweight);
}

/* Outputs are means of values below 2; gradients are sums of terms of similar size over at most L rows, few
 * of which have a large weight. A score has D / H terms and an error of some f32 roundings, which becomes the
 * relative error of its weight. Backward computes dy * y from the rounded y; matrix units use rounded
 * weights. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)tensor;
    return (compare_tolerance){.scale = is_gradient ? 4 : 2,
                               .length = (double)c->dims[HEAD],
                               .f32_units = is_gradient ? 4 : 2,
                               .storage_units = is_gradient ? 2 : 1};
}

/* Later keys are longer, up to FAR times: scores reach hundreds, and exp of the largest exceeds the exponent
 * range of f32. The error of a weight is then the error of its score, whose terms are about FAR; the terms of
 * dq are also FAR times larger. */
enum { FAR = 50 };

static void fill_far(const op_case *c, int tensor, double *values, int64_t count) {
    int64_t width = c->dims[HEADS] * c->dims[HEAD], length = c->dims[LENGTH];
    if (tensor == 1) fill(c, tensor, values, count);
    if (tensor != 0) return;
    for (int64_t i = 0; i < count; ++i)
        if (i % (3 * width) / width == 1)
            values[i] *= 1 + (FAR - 1.0) * (double)(i / (3 * width) % length) / (double)length;
}

static compare_tolerance tolerance_far(const op_case *c, int tensor, bool is_gradient) {
    compare_tolerance t = tolerance(c, tensor, is_gradient);
    t.scale *= is_gradient ? FAR * FAR : FAR;
    return t;
}

/* Queries and keys near the largest f16 number: scores reach 1e10, whose rounding unit is a thousand. The
 * weights of the keys are then undetermined, but every output is still a mean of values. */
enum { HUGE_VALUES = 32000 };

static void fill_huge(const op_case *c, int tensor, double *values, int64_t count) {
    int64_t width = c->dims[HEADS] * c->dims[HEAD];
    if (tensor == 1) fill(c, tensor, values, count);
    for (int64_t i = 0; i < count && tensor == 0; ++i)
        if (i % (3 * width) / width < 2) values[i] *= HUGE_VALUES;
}

static compare_tolerance tolerance_huge(const op_case *c, int tensor, bool is_gradient) {
    (void)c, (void)tensor, (void)is_gradient;
    const double range = 4, roundoff = ldexp(1, -24);
    return (compare_tolerance){.scale = range / roundoff, .length = 1, .f32_units = 1};
}

/* Every head size is a separate compilation. Two head sizes run in all storage types; the others run in f32,
 * or in a half type if matrix units split heads differently. */
static const op_row rows[] = {{1, 1, 1, 32},   {2, 2, 8, 32, MIXED},      {5, 63, 1, 32, MIXED_NAN},
                              {1, 64, 4, 32},  {5, 65, 2, 32, MIXED_NAN}, {3, 130, 2, 32, MIXED},
                              {1, 330, 1, 32}, {5, 17, 4, 17, MIXED_NAN}};
static const op_row rows_f32[] = {{2, 17, 2, 80, MIXED},
                                  {5, 67, 2, 64, MIXED_NAN},
                                  {3, 40, 1, 128, MIXED_NAN},
                                  {5, 75, 3, 16, MIXED_NAN},
                                  {4, 101, 2, 33, MIXED_NAN}};
static const op_row rows_f16[] = {{2, 40, 2, 8, MIXED}, {5, 67, 2, 64, MIXED_NAN}, {3, 40, 1, 128, MIXED_NAN}};
static const op_row rows_bf16[] = {{5, 33, 2, 24, MIXED_NAN}, {3, 40, 1, 128, MIXED_NAN}, {3, 37, 1, 88, MIXED_NAN}};
/* the first row is small enough for Oclgrind */
static const op_row rows_far[] = {{1, 20, 1, 16}, {2, 201, 2, 32}, {4, 90, 2, 16, MIXED}};
/* Windows that are even, odd, as narrow as they may be, and so wide that they hide nothing. */
static const op_row rows_local[] = {
    {5, 17, 1, 32, MIXED_NAN, 2}, {2, 150, 4, 32, NONE, 33}, {1, 330, 1, 32, NONE, 128}, {5, 65, 2, 32, MIXED_NAN, 20}};
static const op_row rows_local_f32[] = {
    {5, 101, 2, 64, MIXED_NAN, 64}, {2, 90, 3, 17, MIXED, 8}, {2, 70, 1, 128, NONE, 40}, {2, 33, 2, 16, MIXED, 64}};
static const op_row rows_local_far[] = {{1, 20, 1, 16, NONE, 6}, {2, 201, 2, 32, MIXED, 50}};

#define TEST(which, name, types, fills, allows) TEST_OF("attention", which, name, types, fills, allows)
#define TEST_OF(name_of_op, which, name, types, fills, allows)                                                         \
    {                                                                                                                  \
        .op = name_of_op, .title = name, .rows = which, .row_count = sizeof which / sizeof which[0], .build = build,   \
        .fill = fills, .reference = reference, .gradient = gradient, .tolerance = allows, .samples = 4, .only = types  \
    }

static const op_test tests[] = {
    TEST(rows, "attention", 0, fill, tolerance),
    TEST(rows_f32, "attention, other head sizes", 1u << CLEAT_F32, fill, tolerance),
    TEST(rows_f16, "attention, other head sizes, f16", 1u << CLEAT_F16, fill, tolerance),
    TEST(rows_bf16, "attention, other head sizes, bf16", 1u << CLEAT_BF16, fill, tolerance),
    TEST(rows_far, "attention, rising scores", 1u << CLEAT_F32, fill_far, tolerance_far),
    TEST_OF("local_attention", rows_local, "local attention", 0, fill, tolerance),
    TEST_OF("local_attention", rows_local_f32, "local attention, other head sizes", 1u << CLEAT_F32, fill, tolerance),
    TEST_OF("local_attention", rows_local_far, "local attention, rising scores", 1u << CLEAT_F32, fill_far,
            tolerance_far),
    {.op = "attention",
     .title = "attention, scores beyond a float's digits",
     .rows = rows_far,
     .row_count = sizeof rows_far / sizeof rows_far[0],
     .build = build,
     .fill = fill_huge,
     .reference = reference,
     .tolerance = tolerance_huge,
     .no_backward = true,
     .only = 1u << CLEAT_F32 | 1u << CLEAT_F16},
};

/* --- unsupported shapes ---------------------------------------------------------------------------------------- */

typedef struct bad_call {
    int64_t shape[3];
    int rank, heads;
    cleat_dtype dtype, lengths;
    int64_t slots;
    const char *says;
} bad_call;

static void test_inputs_that_do_not_fit(void **state) {
    (void)state;
    static const bad_call calls[] = {
        {{2, 3, 24}, 3, 5, CLEAT_F32, CLEAT_I32, 2, "5 heads"},
        {{2, 3, 24}, 3, 0, CLEAT_F32, CLEAT_I32, 2, "0 heads"},
        {{2, 3, 24}, 2, 1, CLEAT_F32, CLEAT_I32, 2, "[B, L, 3D]"},
        {{2, 3, 24}, 3, 1, CLEAT_I32, CLEAT_I32, 2, "f32, f16 or bf16"},
        {{2, 3, 387}, 3, 1, CLEAT_F32, CLEAT_I32, 2, "129 elements"},
        {{2, 3, 24}, 3, 1, CLEAT_F32, CLEAT_F32, 2, "lengths"},
        {{2, 3, 24}, 3, 1, CLEAT_F32, CLEAT_I32, 3, "lengths"},
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; ++i) {
        const bad_call *bad = &calls[i];
        cleat_graph *graph = op_graph();
        cleat_tensor *qkv = cleat_input(graph, "qkv", bad->dtype, bad->rank, bad->shape);
        cleat_tensor *lengths = cleat_input(graph, "lengths", bad->lengths, 1, &bad->slots);
        assert_int_equal(cleat_graph_status(graph, NULL), CLEAT_OK);
        assert_null(cleat_attention(graph, qkv, lengths, bad->heads));
        op_graph_refused(graph, CLEAT_ERR_SHAPE, "attention", bad->says);
    }
}

/* The pairs of a band, without the corners of the square that it is in; a window that hides nothing is attention. */
static void test_cost_counts_the_keys_in_the_window(void **state) {
    (void)state;
    enum { LONG = 1000, WIDTH = 96 };
    cleat_graph *graph = op_graph();
    cleat_tensor *qkv = cleat_input(graph, "qkv", CLEAT_F32, 3, (int64_t[]){1, LONG, WIDTH});
    const cleat_node *all = cleat_attention(graph, qkv, NULL, 1)->producer;
    const cleat_node *narrow = cleat_local_attention(graph, qkv, NULL, 1, 128)->producer;
    const cleat_node *wide = cleat_local_attention(graph, qkv, NULL, 1, 2 * LONG)->producer;
    double pairs = 0;
    for (int i = 0; i < LONG; ++i)
        for (int j = 0; j < LONG; ++j) pairs += abs(i - j) <= 64;
    assert_float_equal(narrow->op->cost(narrow).flops / all->op->cost(all).flops, pairs / LONG / LONG, 1e-9);
    assert_float_equal(wide->op->cost(wide).flops, all->op->cost(all).flops, 0);
    assert_null(cleat_local_attention(graph, qkv, NULL, 1, 1));
    op_graph_refused(graph, CLEAT_ERR_ARGUMENT, "local_attention", "window is 1");
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(test_inputs_that_do_not_fit),
                                       cmocka_unit_test(test_cost_counts_the_keys_in_the_window)};
    return op_main(tests, sizeof tests / sizeof tests[0], extra, 2);
}
