/* Attention with a cache: two runs of tokens that follow each other, grouped queries, padding, a sliding window. */
/* ctest: device slow oclgrind=0:f32 */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* dims: B, tokens of the first and of the second run, places of padding in each, H, K, D / H, window, C */
enum { BATCH, FIRST, SECOND, PADDING, HEADS, KV_HEADS, HEAD, WINDOW, CAPACITY };

/* Inputs of a run. */
enum { Q, KV, POSITIONS, RUN_IN };

static int64_t places_of(const op_case *c, int run) {
    return c->dims[run ? SECOND : FIRST] + c->dims[PADDING];
}

static int64_t position_of(const op_case *c, int run, int64_t b, int64_t l) {
    const int64_t tokens = c->dims[run ? SECOND : FIRST];
    if (l >= tokens) return l % 2 ? -1 - b : c->dims[CAPACITY] + 3 * b;
    return l + (run ? c->dims[FIRST] : 0);
}

static void build(op_case *c) {
    const int64_t *d = c->dims, row = 2 * d[KV_HEADS] * d[HEAD], cache_shape[] = {d[BATCH], d[CAPACITY], row};
    cleat_tensor *cache = cleat_state(c->graph, "cache", c->storage, 3, cache_shape);
    for (int run = 0; run < 2; ++run) {
        const int64_t places = places_of(c, run), q_shape[] = {d[BATCH], places, d[HEADS] * d[HEAD]},
                      kv_shape[] = {d[BATCH], places, row};
        cleat_tensor *q = op_constant(c, run ? "q2" : "q1", c->storage, 3, q_shape, -2, 2);
        cleat_tensor *kv = op_constant(c, run ? "kv2" : "kv1", c->storage, 3, kv_shape, -2, 2);
        cleat_tensor *positions = op_constant(c, run ? "at2" : "at1", CLEAT_I32, 2, q_shape, 0, 0);
        op_output(c, cleat_cached_attention(c->graph, q, kv, positions, cache, (int)d[HEADS], (int)d[KV_HEADS],
                                            (int)d[WINDOW]));
    }
}

static void fill(const op_case *c, int tensor, double *values, int64_t count) {
    const int run = tensor / RUN_IN;
    const int64_t places = places_of(c, run);
    for (int64_t i = 0; i < count && tensor % RUN_IN == POSITIONS; ++i)
        values[i] = (double)position_of(c, run, i / places, i % places);
}

/* The key of a position; its value is behind those of all heads. */
static const double *key_at(const op_case *c, const double *const *in, int64_t b, int64_t position, int64_t h) {
    const int64_t *d = c->dims;
    const int run = position >= d[FIRST];
    const int64_t l = position - (run ? d[FIRST] : 0);
    return in[run * RUN_IN + KV] + (b * places_of(c, run) + l) * 2 * d[KV_HEADS] * d[HEAD] +
           h / (d[HEADS] / d[KV_HEADS]) * d[HEAD];
}

/* A head of a row of an output. */
static void attend(const op_case *c, const double *const *in, int run, int64_t b, int64_t l, int64_t h, double *out) {
    const int64_t *d = c->dims, position = position_of(c, run, b, l), size = d[HEAD];
    const int64_t first = d[WINDOW] && position >= d[WINDOW] ? position - d[WINDOW] + 1 : 0;
    const double *q = in[run * RUN_IN + Q] + (b * places_of(c, run) + l) * d[HEADS] * size + h * size;
    double *weights = malloc((size_t)(position + 2 > 1 ? position + 2 : 1) * sizeof *weights), top = -INFINITY, sum = 0;
    for (int64_t j = first; l < d[run ? SECOND : FIRST] && j <= position; ++j) {
        const double *key = key_at(c, in, b, j, h);
        weights[j] = 0;
        for (int64_t i = 0; i < size; ++i) weights[j] += q[i] * key[i] / sqrt((double)size);
        top = fmax(top, weights[j]);
    }
    for (int64_t j = first; l < d[run ? SECOND : FIRST] && j <= position; ++j)
        sum += weights[j] = exp(weights[j] - top);
    for (int64_t j = first; l < d[run ? SECOND : FIRST] && j <= position; ++j)
        for (int64_t i = 0; i < size; ++i)
            out[i] += weights[j] / sum * (key_at(c, in, b, j, h) + d[KV_HEADS] * size)[i];
    free(weights);
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    const int64_t *d = c->dims;
    for (int run = 0; run < 2; ++run) {
        const int64_t places = places_of(c, run), width = d[HEADS] * d[HEAD];
        memset(out[run], 0, (size_t)(d[BATCH] * places * width) * sizeof *out[run]);
        for (int64_t row = 0; row < d[BATCH] * places; ++row)
            for (int64_t h = 0; h < d[HEADS]; ++h)
                attend(c, in, run, row / places, row % places, h, out[run] + row * width + h * d[HEAD]);
    }
}

/* As for causal attention (test_causal_attention.c). */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)tensor, (void)is_gradient;
    return (compare_tolerance){.scale = 2, .length = (double)c->dims[HEAD], .f32_units = 2, .storage_units = 1};
}

static const op_row rows[] = {
    {1, 3, 1, 0, 2, 1, 8, 0, 4},        /* the cache is full at the end */
    {2, 5, 1, 1, 6, 2, 16, 0, 11},      /* grouped queries, padding */
    {1, 1, 1, 0, 1, 1, 1, 0, 2},        /* the smallest */
    {3, 17, 4, 3, 3, 3, 37, 0, 40},     /* a head that is no multiple of a vector */
    {1, 300, 1, 0, 3, 1, 24, 0, 700},   /* more keys than work-items of a group */
    {2, 70, 64, 2, 4, 1, 80, 50, 150},  /* a window; many queries */
    {1, 65, 3, 0, 2, 2, 256, 1, 68},    /* the largest head; each token sees itself only */
    {1, 260, 2, 0, 3, 1, 129, 255, 300} /* a window of an odd size, a head above a power of two */
};

static const op_test test = {.op = "cached_attention",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof *rows,
                             .build = build,
                             .fill = fill,
                             .reference = reference,
                             .tolerance = tolerance,
                             .no_backward = true};

int main(void) {
    return op_main(&test, 1, NULL, 0);
}
