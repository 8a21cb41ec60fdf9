/* A learned token in front of sequences, against a double-precision reference. */
/* ctest: device */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>

#include <string.h>

/* dims: batch, length, width, x is a constant */
static void build(op_case *c) {
    const int64_t shape[] = {c->dims[0], c->dims[1], c->dims[2]};
    cleat_tensor *x =
        c->dims[3] ? op_constant(c, "x", c->storage, 3, shape, -2, 2) : op_input(c, "x", c->storage, 3, shape, -2, 2);
    op_output(c, cleat_prepend_token(c->graph, x, op_param(c, "token", 1, &shape[2], -2, 2)));
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    const int64_t row = c->dims[2], sample = c->dims[1] * row;
    for (int64_t b = 0; b < c->dims[0]; ++b) {
        double *to = out[0] + b * (sample + row);
        memcpy(to, in[1], (size_t)row * sizeof *to);
        memcpy(to + row, in[0] + b * sample, (size_t)sample * sizeof *to);
    }
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    const int64_t row = c->dims[2], sample = c->dims[1] * row;
    (void)in;
    for (int64_t b = 0; b < c->dims[0]; ++b) {
        const double *from = dout[0] + b * (sample + row);
        for (int64_t i = 0; i < row; ++i) din[1][i] += from[i];
        for (int64_t i = 0; din[0] && i < sample; ++i) din[0][b * sample + i] += from[row + i];
    }
}

/* Copies are exact up to the rounding of the token; the gradient of the token sums `batch` terms of random
 * sign below 1. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    const double n = is_gradient && tensor == 1 ? (double)c->dims[0] : 1;
    return (compare_tolerance){.scale = 1 + sqrt(n), .length = n, .f32_units = 2};
}

static const op_row rows[] = {{1, 1, 1}, {3, 4, 17}, {2, 16, 48}, {65, 3, 31}, {5, 49, 64, 1}};

static const op_test test = {.op = "prepend_token",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .reference = reference,
                             .gradient = gradient,
                             .tolerance = tolerance,
                             .samples = 8};

static void wrong_shapes_are_refused(void **state) {
    (void)state;
    const int64_t matrix[] = {3, 4}, sequences[] = {2, 3, 4}, width[] = {5};
    cleat_graph *graph = op_graph();
    cleat_tensor *token = cleat_input(graph, "token", CLEAT_F32, 1, width);
    cleat_prepend_token(graph, cleat_input(graph, "x", CLEAT_F32, 2, matrix), token);
    op_graph_refused(graph, CLEAT_ERR_SHAPE, "prepend_token", "[B, L, D]");
    graph = op_graph();
    token = cleat_input(graph, "token", CLEAT_F32, 1, width);
    cleat_prepend_token(graph, cleat_input(graph, "x", CLEAT_F32, 3, sequences), token);
    op_graph_refused(graph, CLEAT_ERR_SHAPE, "prepend_token", "the token");
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(wrong_shapes_are_refused)};
    return op_main(&test, 1, extra, 1);
}
