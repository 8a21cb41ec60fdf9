/* Layer scale against a double-precision reference. */
/* ctest: device */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>

/* dims: rows, width, has a residual, x is a constant */
static void build(op_case *c) {
    const int64_t shape[] = {c->dims[0], c->dims[1]};
    cleat_tensor *x =
        c->dims[3] ? op_constant(c, "x", c->storage, 2, shape, -2, 2) : op_input(c, "x", c->storage, 2, shape, -2, 2);
    cleat_tensor *residual = c->dims[2] ? op_input(c, "residual", c->storage, 2, shape, -2, 2) : NULL;
    op_output(c, cleat_layer_scale(c->graph, x, op_param(c, "scale", 1, &shape[1], -1, 1), residual));
}

/* in = {x, scale} or {x, residual, scale}, in order of declaration */
static int scale_of(const op_case *c) {
    return c->dims[2] ? 2 : 1;
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    const int64_t width = c->dims[1];
    for (int64_t i = 0; i < c->dims[0] * width; ++i)
        out[0][i] = (c->dims[2] ? in[1][i] : 0) + in[scale_of(c)][i % width] * in[0][i];
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    const int64_t width = c->dims[1];
    const int scale = scale_of(c);
    for (int64_t i = 0; i < c->dims[0] * width; ++i) {
        if (din[0]) din[0][i] += in[scale][i % width] * dout[0][i];
        if (c->dims[2]) din[1][i] += dout[0][i];
        din[scale][i % width] += in[0][i] * dout[0][i];
    }
}

/* |scale x| < 2 and |residual| < 2; the gradient of the scale sums `rows` products of random sign below 2. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    const double rows = (double)c->dims[0];
    if (is_gradient && tensor == scale_of(c))
        return (compare_tolerance){.scale = 2 * sqrt(rows), .length = rows, .f32_units = 2};
    return (compare_tolerance){.scale = 4, .length = 1, .f32_units = 2};
}

static const op_row rows[] = {{5, 17, 1}, {1, 1}, {300, 96, 1}, {2049, 24, 0}, {33, 1200, 1}, {70, 64, 1, 1}};

static const op_test test = {.op = "layer_scale",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .reference = reference,
                             .gradient = gradient,
                             .tolerance = tolerance,
                             .samples = 8};

static void wrong_shapes_are_refused(void **state) {
    (void)state;
    const int64_t shape[] = {3, 4}, other[] = {4, 3};
    cleat_graph *graph = op_graph();
    cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 2, shape);
    cleat_layer_scale(graph, x, cleat_input(graph, "scale", CLEAT_F32, 1, shape), NULL);
    op_graph_refused(graph, CLEAT_ERR_SHAPE, "layer_scale", "scale");
    graph = op_graph();
    x = cleat_input(graph, "x", CLEAT_F32, 2, shape);
    cleat_layer_scale(graph, x, cleat_input(graph, "scale", CLEAT_F32, 1, &shape[1]),
                      cleat_input(graph, "residual", CLEAT_F32, 2, other));
    op_graph_refused(graph, CLEAT_ERR_SHAPE, "layer_scale", "residual");
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(wrong_shapes_are_refused)};
    return op_main(&test, 1, extra, 1);
}
