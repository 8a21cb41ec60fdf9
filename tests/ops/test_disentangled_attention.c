/* Disentangled attention: buckets, masked rows, either position tensor alone. */
/* ctest: device slow cost=69 oclgrind=0:f32@23 */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* dims: B, L, H, D / H, buckets, max_relative_positions, kind of lengths, omitted position tensors */
enum { BATCH, LENGTH, HEADS, HEAD, BUCKETS, POSITIONS, LENGTHS, WITHOUT };

/* Kind of lengths: no length tensor; a different length in every slot, 0, 1 and L among them; the same with
 * NaN in all masked rows, which must not be read. */
enum { NONE, MIXED, MIXED_NAN };

/* Larger than the L of every row. */
enum { MAX_LENGTH = 1024 };

/* Bits of WITHOUT. */
enum { KEYS = 1, QUERIES = 2 };

/* Indices of inputs; -1: omitted. */
static int pos_keys_of(const op_case *c) {
    return c->dims[WITHOUT] & KEYS ? -1 : 1;
}
static int pos_queries_of(const op_case *c) {
    return c->dims[WITHOUT] & QUERIES ? -1 : pos_keys_of(c) < 0 ? 1 : 2;
}
static int lengths_of(const op_case *c) {
    return c->dims[LENGTHS] == NONE ? -1 : c->dims[WITHOUT] ? 2 : 3;
}

static int64_t length_of(const op_case *c, int64_t b) {
    const int64_t all = c->dims[LENGTH], some[] = {all, 0, 1, (all + 1) / 2, all - 1};
    return c->dims[LENGTHS] == NONE ? all : some[b % 5];
}

static int64_t span_of(const op_case *c) {
    return c->dims[BUCKETS] ? c->dims[BUCKETS] : c->dims[POSITIONS];
}

static void build(op_case *c) {
    const int64_t batch = c->dims[BATCH], width = c->dims[HEADS] * c->dims[HEAD];
    const int64_t shape[] = {batch, c->dims[LENGTH], 3 * width}, positions[] = {2 * span_of(c), width};
    cleat_tensor *qkv = op_input(c, "qkv", c->storage, 3, shape, -2, 2), *lengths = NULL, *keys = NULL, *queries = NULL;
    if (pos_keys_of(c) >= 0) keys = op_input(c, "pos_keys", c->storage, 2, positions, -2, 2);
    if (pos_queries_of(c) >= 0) queries = op_input(c, "pos_queries", c->storage, 2, positions, -2, 2);
    if (c->dims[LENGTHS] != NONE) lengths = op_constant(c, "lengths", CLEAT_I32, 1, &batch, 0, 0);
    const cleat_disentangled_spec spec = {.heads = (int)c->dims[HEADS],
                                          .buckets = (int)c->dims[BUCKETS],
                                          .max_relative_positions = (int)c->dims[POSITIONS]};
    op_output(c, cleat_disentangled_attention(c->graph, qkv, keys, queries, lengths, &spec));
}

static void fill(const op_case *c, int tensor, double *values, int64_t count) {
    if (tensor == lengths_of(c))
        for (int64_t b = 0; b < count; ++b) values[b] = (double)length_of(c, b);
    if (tensor != 0 || c->dims[LENGTHS] != MIXED_NAN) return;
    const int64_t row = 3 * c->dims[HEADS] * c->dims[HEAD], slot = c->dims[LENGTH] * row;
    for (int64_t b = 0; b < c->dims[BATCH]; ++b)
        for (int64_t i = length_of(c, b) * row; i < slot; ++i) values[b * slot + i] = NAN;
}

/* Bucket of a long distance, as defined by He et al.: the first one whose end, mid * ((max - 1) / mid)^(n /
 * (mid - 1)), is at or beyond it. */
static int64_t far_bucket(const op_case *c, int64_t distance) {
    const int64_t span = span_of(c), mid = c->dims[BUCKETS] / 2;
    const double growth = (double)(c->dims[POSITIONS] - 1) / (double)mid;
    int64_t n = 1;
    while (n < 2 * span && mid > 1 &&
           (double)distance > (double)mid * pow(growth, (double)n / (double)(mid - 1)) + 1e-9)
        ++n;
    return mid > 1 ? mid + n : mid;
}

/* The same, cached in a table because the reference asks for each pair of rows repeatedly. */
static int64_t known_far_bucket(const op_case *c, int64_t distance) {
    static int64_t table[MAX_LENGTH], buckets, positions; /* 0: not known yet */
    assert_true(distance < MAX_LENGTH);
    if (buckets != c->dims[BUCKETS] || positions != c->dims[POSITIONS]) memset(table, 0, sizeof table);
    buckets = c->dims[BUCKETS];
    positions = c->dims[POSITIONS];
    if (!table[distance]) table[distance] = far_bucket(c, distance);
    return table[distance];
}

/* Row of the position tensors for query i and key j: the distance itself if it is short, otherwise its
 * bucket. */
static int64_t row_of(const op_case *c, int64_t i, int64_t j) {
    const int64_t span = span_of(c), mid = c->dims[BUCKETS] / 2, distance = i - j;
    int64_t bucket = llabs(distance);
    if (c->dims[BUCKETS] && bucket > mid) bucket = known_far_bucket(c, bucket);
    const int64_t row = (distance < 0 ? -bucket : bucket) + span;
    return row < 0 ? 0 : row > 2 * span - 1 ? 2 * span - 1 : row;
}

/* One head of one slot. Rows of position tensors are width apart. NULL: omitted. */
typedef struct head {
    int64_t rows, row, size, width; /* rows present; elements between rows of qkv; D / H; D */
    double scale;
    const double *q, *k, *v, *pos_keys, *pos_queries;
    int64_t q_at, y_at; /* offsets in elements into qkv and y */
} head;

static head head_at(const op_case *c, const double *const *in, int64_t b, int64_t h) {
    const int64_t size = c->dims[HEAD], width = c->dims[HEADS] * size, first = b * c->dims[LENGTH];
    const int64_t at = first * 3 * width + h * size;
    const int keys = pos_keys_of(c), queries = pos_queries_of(c);
    return (head){.rows = length_of(c, b),
                  .row = 3 * width,
                  .size = size,
                  .width = width,
                  .scale = 1 / sqrt((double)size * (1 + (keys >= 0) + (queries >= 0))),
                  .q = in[0] + at,
                  .k = in[0] + at + width,
                  .v = in[0] + at + 2 * width,
                  .pos_keys = keys >= 0 ? in[keys] + h * size : NULL,
                  .pos_queries = queries >= 0 ? in[queries] + h * size : NULL,
                  .q_at = at,
                  .y_at = first * width + h * size};
}

static double dot(const double *a, const double *b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

/* weight [rows] = softmax over the keys of query i */
static void softmax(const op_case *c, const head *a, int64_t i, double *weight) {
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < a->rows; ++j) {
        const double *q = a->q + i * a->row, *k = a->k + j * a->row;
        const int64_t at = row_of(c, i, j) * a->width;
        weight[j] = dot(q, k, a->size);
        if (a->pos_keys) weight[j] += dot(q, a->pos_keys + at, a->size);
        if (a->pos_queries) weight[j] += dot(k, a->pos_queries + at, a->size);
        weight[j] *= a->scale;
        top = fmax(top, weight[j]);
    }
    for (int64_t j = 0; j < a->rows; ++j) sum += weight[j] = exp(weight[j] - top);
    for (int64_t j = 0; j < a->rows; ++j) weight[j] /= sum;
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    const int64_t width = c->dims[HEADS] * c->dims[HEAD];
    double *weight = malloc((size_t)c->dims[LENGTH] * sizeof *weight);
    memset(out[0], 0, (size_t)(c->dims[BATCH] * c->dims[LENGTH] * width) * sizeof *out[0]);
    for (int64_t b = 0; b < c->dims[BATCH]; ++b)
        for (int64_t h = 0; h < c->dims[HEADS]; ++h) {
            const head a = head_at(c, in, b, h);
            for (int64_t i = 0; i < a.rows; ++i) {
                softmax(c, &a, i, weight);
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

/* Adds the gradients of one query. */
static void add_query(const op_case *c, const head *a, int64_t h, int64_t i, const double *dy, double *weight,
                      double *dweight, double *const *din) {
    double *dq = din[0] + a->q_at + i * a->row, *dk = din[0] + a->q_at + a->width, *dv = dk + a->width, mean = 0;
    const double *q = a->q + i * a->row;
    softmax(c, a, i, weight);
    for (int64_t j = 0; j < a->rows; ++j) mean += weight[j] * (dweight[j] = dot(dy, a->v + j * a->row, a->size));
    for (int64_t j = 0; j < a->rows; ++j) {
        const double dscore = weight[j] * (dweight[j] - mean) * a->scale, *k = a->k + j * a->row;
        const int64_t at = row_of(c, i, j) * a->width, to = at + h * a->size;
        add_scaled(dq, k, dscore, a->size);
        add_scaled(dk + j * a->row, q, dscore, a->size);
        add_scaled(dv + j * a->row, dy, weight[j], a->size);
        if (a->pos_keys) {
            add_scaled(dq, a->pos_keys + at, dscore, a->size);
            add_scaled(din[pos_keys_of(c)] + to, q, dscore, a->size);
        }
        if (a->pos_queries) {
            add_scaled(dk + j * a->row, a->pos_queries + at, dscore, a->size);
            add_scaled(din[pos_queries_of(c)] + to, k, dscore, a->size);
        }
    }
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    double *weight = malloc((size_t)c->dims[LENGTH] * sizeof *weight);
    double *dweight = malloc((size_t)c->dims[LENGTH] * sizeof *dweight);
    for (int64_t b = 0; b < c->dims[BATCH]; ++b)
        for (int64_t h = 0; h < c->dims[HEADS]; ++h) {
            const head a = head_at(c, in, b, h);
            for (int64_t i = 0; i < a.rows; ++i)
                add_query(c, &a, h, i, dout[0] + a.y_at + i * a.width, weight, dweight, din);
        }
    free(weight);
    free(dweight);
}

/* Outputs are means of values below 2; gradients of qkv are sums of terms of similar size, few of which have
 * a large weight. A score has three sums of D / H terms. Backward computes dy * y from the rounded y. The
 * gradient of a row of a position tensor sums over the pairs of its bucket: up to two diagonals of each slot,
 * or, in the buckets at the ends, all pairs; a query has one unit of weight for all its keys. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    const bool position = is_gradient && tensor > 0;
    const double pairs = (double)(c->dims[BATCH] * c->dims[LENGTH]);
    return (compare_tolerance){.scale = position      ? 4 * sqrt(pairs)
                                        : is_gradient ? 4
                                                      : 2,
                               .length = 3 * (double)c->dims[HEAD],
                               .f32_units = is_gradient ? 4 : 2,
                               .storage_units = is_gradient ? 2 : 1};
}

/* Later keys are longer, up to FAR times: scores reach hundreds, and exp of the largest exceeds the exponent
 * range of f32. The error of a weight is then the error of its score, whose terms are about FAR; the terms of
 * dq are also FAR times larger. */
enum { FAR = 50 };

static void fill_far(const op_case *c, int tensor, double *values, int64_t count) {
    const int64_t width = c->dims[HEADS] * c->dims[HEAD], length = c->dims[LENGTH];
    if (tensor != 0) {
        fill(c, tensor, values, count);
        return;
    }
    for (int64_t i = 0; i < count; ++i)
        if (i % (3 * width) / width == 1)
            values[i] *= 1 + (FAR - 1.0) * (double)(i / (3 * width) % length) / (double)length;
}

static compare_tolerance tolerance_far(const op_case *c, int tensor, bool is_gradient) {
    compare_tolerance t = tolerance(c, tensor, is_gradient);
    t.scale *= is_gradient ? FAR * FAR : FAR;
    return t;
}

/* Every head size is a separate compilation. */
static const op_row rows[] = {{1, 1, 1, 32, 8, 64},
                              {2, 2, 4, 32, 8, 64, MIXED},
                              {5, 31, 2, 32, 8, 64, MIXED_NAN},
                              {2, 64, 2, 32, 16, 40},
                              {5, 67, 2, 32, 6, 20, MIXED_NAN},
                              {5, 33, 1, 32, 0, 50, MIXED},
                              {2, 45, 2, 32, 0, 20, NONE},
                              {3, 130, 1, 32, 64, 128, MIXED},
                              {5, 35, 2, 32, 8, 30, MIXED_NAN, KEYS},
                              {5, 38, 2, 32, 8, 30, MIXED_NAN, QUERIES}};
static const op_row rows_f32[] = {{2, 17, 2, 8, 8, 64, MIXED},     {2, 40, 2, 64, 256, 512, MIXED_NAN},
                                  {2, 67, 1, 64, 32, 60, MIXED},   {3, 40, 1, 128, 8, 64, MIXED_NAN},
                                  {5, 35, 3, 17, 3, 9, MIXED},     {1, 300, 1, 8, 64, 128, NONE},
                                  {3, 41, 2, 40, 2, 12, MIXED_NAN}};
static const op_row rows_half[] = {{5, 67, 1, 64, 32, 60, MIXED_NAN}, {3, 40, 1, 128, 8, 64, MIXED_NAN}};
/* the first row is small enough for Oclgrind */
static const op_row rows_far[] = {{1, 20, 1, 16, 8, 30}, {1, 201, 1, 32, 16, 100}, {4, 90, 2, 16, 16, 100, MIXED}};

#define TEST(which, name, types, fills, allows)                                                                        \
    {                                                                                                                  \
        .op = "disentangled_attention", .title = name, .rows = which, .row_count = sizeof which / sizeof which[0],     \
        .build = build, .fill = fills, .reference = reference, .gradient = gradient, .tolerance = allows,              \
        .samples = 4, .only = types                                                                                    \
    }

static const op_test tests[] = {
    TEST(rows, "disentangled attention", 0, fill, tolerance),
    TEST(rows_f32, "disentangled attention, other head sizes", 1u << CLEAT_F32, fill, tolerance),
    TEST(rows_half, "disentangled attention, other head sizes, halves", 1u << CLEAT_F16 | 1u << CLEAT_BF16, fill,
         tolerance),
    TEST(rows_far, "disentangled attention, rising scores", 1u << CLEAT_F32, fill_far, tolerance_far),
};

/* --- unsupported shapes ---------------------------------------------------------------------------------------- */

typedef struct bad_call {
    int64_t width, positions;
    cleat_disentangled_spec spec;
    const char *says;
} bad_call;

static void test_inputs_that_do_not_fit(void **state) {
    (void)state;
    static const bad_call calls[] = {
        {8, 16, {.heads = 5, .buckets = 8, .max_relative_positions = 64}, "5 heads"},
        {8, 15, {.heads = 1, .buckets = 8, .max_relative_positions = 64}, "pos_keys"},
        {8, 16, {.heads = 1, .buckets = 0, .max_relative_positions = 64}, "pos_keys"},
        {8, 16, {.heads = 1, .buckets = 8, .max_relative_positions = 0}, "max_relative_positions is 0"},
        {8, 16, {.heads = 1, .buckets = 8, .max_relative_positions = 5}, "8 buckets for 5 relative positions"},
        {8, 2, {.heads = 1, .buckets = 1, .max_relative_positions = 64}, "1 buckets"},
        {129, 16, {.heads = 1, .buckets = 8, .max_relative_positions = 64}, "129 elements"},
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; ++i) {
        const bad_call *bad = &calls[i];
        cleat_graph *graph = op_graph();
        cleat_tensor *qkv = cleat_input(graph, "qkv", CLEAT_F32, 3, (int64_t[]){2, 3, 3 * bad->width});
        cleat_tensor *keys = cleat_input(graph, "keys", CLEAT_F32, 2, (int64_t[]){bad->positions, bad->width});
        assert_int_equal(cleat_graph_status(graph, NULL), CLEAT_OK);
        assert_null(cleat_disentangled_attention(graph, qkv, keys, NULL, NULL, &bad->spec));
        op_graph_refused(graph, CLEAT_ERR_SHAPE, "disentangled_attention", bad->says);
    }
    cleat_graph *graph = op_graph();
    cleat_tensor *qkv = cleat_input(graph, "qkv", CLEAT_F32, 3, (int64_t[]){2, 3, 24});
    const cleat_disentangled_spec spec = {.heads = 1, .buckets = 8, .max_relative_positions = 64};
    assert_null(cleat_disentangled_attention(graph, qkv, NULL, NULL, NULL, &spec));
    op_graph_refused(graph, CLEAT_ERR_SHAPE, "disentangled_attention", "use cleat_attention");
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(test_inputs_that_do_not_fit)};
    return op_main(tests, sizeof tests / sizeof tests[0], extra, 1);
}
