/* Learned position embeddings: rows of a table added to every sample, and the gradient of the table. */
/* ctest: device */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>

/* dims: batch, length, width, rows of the table, first row, whether the table is not a parameter */
static void build(op_case *c) {
    const int64_t *d = c->dims, shape[] = {d[0], d[1], d[2]}, table[] = {d[3], d[2]};
    cleat_tensor *x = op_input(c, "x", c->storage, 3, shape, -1, 1);
    cleat_tensor *rows_of =
        d[5] ? op_input(c, "table", CLEAT_F32, 2, table, -2, 2) : op_param(c, "table", 2, table, -2, 2);
    op_output(c, cleat_position_embedding(c->graph, x, rows_of, d[4]));
}

/* Element of the table that element i of x gets; -1: none. */
static int64_t row_of(const op_case *c, int64_t i) {
    const int64_t sample = c->dims[1] * c->dims[2], at = c->dims[4] * c->dims[2] + i % sample;
    return at < c->dims[3] * c->dims[2] ? at : -1;
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    for (int64_t i = 0; i < c->dims[0] * c->dims[1] * c->dims[2]; ++i)
        out[0][i] = in[0][i] + (row_of(c, i) < 0 ? 0 : in[1][row_of(c, i)]);
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    (void)in;
    for (int64_t i = 0; i < c->dims[0] * c->dims[1] * c->dims[2]; ++i) {
        if (din[0]) din[0][i] += dout[0][i];
        if (row_of(c, i) >= 0) din[1][row_of(c, i)] += dout[0][i];
    }
}

/* One sum of two numbers below 3; the gradient of the table is a sum of B numbers of either sign below 1. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    const double n = (double)c->dims[0];
    if (is_gradient && tensor == 1) return (compare_tolerance){.scale = 1 + sqrt(n), .length = n, .f32_units = 2};
    return (compare_tolerance){.scale = 3, .length = 1, .f32_units = 1};
}

static const op_row rows[] = {{2, 9, 17, 12, 2},  {1, 1, 1, 1},         {3, 5, 64, 5},         {4, 31, 16, 40, 9},
                              {33, 7, 30, 8, 1},  {2, 128, 33, 130, 2}, {5, 197, 96, 197},     {2, 16, 24, 13},
                              {700, 1, 50, 2, 0}, {131, 3, 9, 7, 4},    {3, 11, 17, 11, 0, 1}, {140, 2, 8, 2, 0, 1}};

static const op_test test = {.op = "position_embedding",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .reference = reference,
                             .gradient = gradient,
                             .tolerance = tolerance,
                             .samples = 4};

static cleat_graph *graph_of(int64_t length, int64_t width, int64_t first) {
    cleat_graph *graph = op_graph();
    const int64_t shape[] = {2, length, 8}, table[] = {10, width};
    cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 3, shape);
    cleat_tensor *rows_of = cleat_param(graph, "table", 2, table, (cleat_init){CLEAT_INIT_ZERO, 0});
    assert_null(cleat_position_embedding(graph, x, rows_of, first));
    return graph;
}

static void a_first_row_past_the_table_is_refused(void **state) {
    (void)state;
    op_graph_refused(graph_of(4, 8, 10), CLEAT_ERR_SHAPE, "position_embedding", "row 10 of the table");
    op_graph_refused(graph_of(4, 8, -1), CLEAT_ERR_SHAPE, "position_embedding", "row -1");
}

static void another_width_is_refused(void **state) {
    (void)state;
    op_graph_refused(graph_of(4, 6, 0), CLEAT_ERR_SHAPE, "position_embedding", "it must be f32 [P, 8]");
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(a_first_row_past_the_table_is_refused),
                                       cmocka_unit_test(another_width_is_refused)};
    return op_main(&test, 1, extra, sizeof extra / sizeof extra[0]);
}
