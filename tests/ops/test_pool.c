/* Pooling over the rows of a sample: mean, first and last. */
/* ctest: device */
#include "harness.h"

#include "cleat/ops.h"

#include <string.h>

/* dims: B, L, D, mode, with lengths */
enum { BATCH, LENGTH, WIDTH, MODE, LENGTHS };
enum { MEAN, FIRST, LAST };

/* Typical batch lengths, and one beyond L, which counts as L. */
static int64_t length_of(const op_case *c, int64_t b) {
    const int64_t all = c->dims[LENGTH], some[] = {all, 0, 1, (all + 1) / 2, all + 3};
    return c->dims[LENGTHS] ? some[b % 5] : all;
}

static void build(op_case *c) {
    const int64_t *d = c->dims;
    cleat_tensor *x = op_input(c, "x", c->storage, 3, d, -2, 2);
    cleat_tensor *lengths = d[LENGTHS] ? op_constant(c, "lengths", CLEAT_I32, 1, d, 0, 0) : NULL;
    if (d[MODE] == MEAN)
        op_output(c, cleat_mean_pool(c->graph, x, lengths));
    else
        op_output(c, cleat_select_row(c->graph, x, lengths, d[MODE] == FIRST ? CLEAT_ROW_FIRST : CLEAT_ROW_LAST));
}

static void fill(const op_case *c, int tensor, double *values, int64_t count) {
    for (int64_t b = 0; tensor == 1 && b < count; ++b) values[b] = (double)length_of(c, b);
}

/* Weight of row l of sample b. */
static double weight(const op_case *c, int64_t b, int64_t l) {
    int64_t n = length_of(c, b) < c->dims[LENGTH] ? length_of(c, b) : c->dims[LENGTH];
    if (l >= n) return 0;
    if (c->dims[MODE] == MEAN) return 1 / (double)n;
    return l == (c->dims[MODE] == FIRST ? 0 : n - 1);
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    const int64_t *d = c->dims;
    memset(out[0], 0, (size_t)(d[BATCH] * d[WIDTH]) * sizeof *out[0]);
    for (int64_t i = 0; i < d[BATCH] * d[LENGTH] * d[WIDTH]; ++i) {
        int64_t b = i / d[WIDTH] / d[LENGTH], l = i / d[WIDTH] % d[LENGTH];
        const double w = weight(c, b, l);
        if (w > 0) out[0][b * d[WIDTH] + i % d[WIDTH]] += w * in[0][i];
    }
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    const int64_t *d = c->dims;
    (void)in;
    for (int64_t i = 0; i < d[BATCH] * d[LENGTH] * d[WIDTH]; ++i) {
        int64_t b = i / d[WIDTH] / d[LENGTH], l = i / d[WIDTH] % d[LENGTH];
        din[0][i] += weight(c, b, l) * dout[0][b * d[WIDTH] + i % d[WIDTH]];
    }
}

static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)tensor;
    return (compare_tolerance){.scale = 2, .length = is_gradient ? 1 : (double)c->dims[LENGTH], .f32_units = 3};
}

static const op_row rows[] = {
    {5, 3, 17, MEAN, 1}, {5, 3, 17, FIRST, 1}, {5, 3, 17, LAST, 1},  {1, 1, 1, LAST},     {2, 33, 64, MEAN},
    {2, 33, 64, FIRST},  {2, 33, 64, LAST},    {7, 9, 130, LAST, 1}, {6, 70, 5, MEAN, 1},
};

static const op_test test = {.op = "pool",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .fill = fill,
                             .reference = reference,
                             .gradient = gradient,
                             .tolerance = tolerance,
                             .samples = 4};

static void rejects(void **state) {
    (void)state;
    static const struct {
        int rank;
        cleat_dtype lengths;
        const char *says;
    } misfits[] = {{2, CLEAT_I32, "[B, L, D]"}, {3, CLEAT_F32, "lengths"}};
    for (size_t i = 0; i < sizeof misfits / sizeof *misfits; ++i) {
        cleat_error error = {0};
        cleat_graph *graph = op_graph();
        cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, misfits[i].rank, (int64_t[]){2, 3, 4});
        assert_null(cleat_mean_pool(graph, x, cleat_input(graph, "n", misfits[i].lengths, 1, (int64_t[]){2})));
        assert_int_equal(cleat_graph_status(graph, &error), CLEAT_ERR_SHAPE);
        assert_non_null(strstr(error.text, misfits[i].says));
        op_graph_end(graph);
    }
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(rejects)};
    return op_main(&test, 1, extra, 1);
}
