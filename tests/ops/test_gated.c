/* Gated products against a double-precision reference. */
/* ctest: device oclgrind=1 */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>

enum { ROWS, WIDTH, GATE }; /* the dims of a row */

static void build(op_case *c) {
    const int64_t shape[] = {c->dims[ROWS], 2 * c->dims[WIDTH]};
    op_output(c, cleat_gated(c->graph, op_input(c, "x", c->storage, 2, shape, -4, 4), (cleat_gate)c->dims[GATE]));
}

static double share(const op_case *c, double x) {
    if (c->dims[GATE] == CLEAT_GATE_SILU) return 1 / (1 + exp(-x));
    return c->dims[GATE] == CLEAT_GATE_GELU ? 0.5 * (1 + erf(x / sqrt(2)))
                                            : 0.5 * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

/* f(x) = x share(x); the slope by a central difference, whose error is below 1e-9. */
static double slope(const op_case *c, double x) {
    const double h = 1e-5;
    return ((x + h) * share(c, x + h) - (x - h) * share(c, x - h)) / (2 * h);
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    const int64_t width = c->dims[WIDTH];
    for (int64_t i = 0; i < c->dims[ROWS] * width; ++i) {
        const double *x = in[0] + i / width * 2 * width + i % width;
        out[0][i] = x[0] * share(c, x[0]) * x[width];
    }
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    const int64_t width = c->dims[WIDTH];
    for (int64_t i = 0; i < c->dims[ROWS] * width; ++i) {
        const int64_t at = i / width * 2 * width + i % width;
        const double gate = in[0][at], up = in[0][at + width];
        din[0][at] += dout[0][i] * up * slope(c, gate);
        din[0][at + width] += dout[0][i] * gate * share(c, gate);
    }
}

/* Products of two values below 4. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)c, (void)tensor;
    return (compare_tolerance){.scale = is_gradient ? 6 : 16, .length = 1, .f32_units = 6};
}

static const op_row rows[] = {{1, 1, 0}, {3, 17, 0}, {5, 1200, 1}, {33, 64, 1}, {3, 17, 2}, {2, 1536, 2}};

static const op_test test = {.op = "gated",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .reference = reference,
                             .gradient = gradient,
                             .tolerance = tolerance,
                             .samples = 4};

static void odd_widths_are_refused(void **state) {
    (void)state;
    cleat_graph *graph = op_graph();
    cleat_gated(graph, cleat_input(graph, "x", CLEAT_F32, 2, (int64_t[]){3, 5}), CLEAT_GATE_SILU);
    op_graph_refused(graph, CLEAT_ERR_SHAPE, "gated", "[..., 2 D]");
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(odd_widths_are_refused)};
    return op_main(&test, 1, extra, 1);
}
