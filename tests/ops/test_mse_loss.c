/* Mean squared error of rows. */
/* ctest: device */
#include "harness.h"

#include "cleat/ops.h"

/* dims: rows, width, offset of x and target */
static void build(op_case *c) {
    const int64_t shape[] = {c->dims[0], c->dims[1]};
    double offset = (double)c->dims[2];
    cleat_tensor *x = op_input(c, "x", c->storage, 2, shape, offset - 2, offset + 2);
    cleat_tensor *target = op_constant(c, "target", CLEAT_F32, 2, shape, offset - 2, offset + 2);
    op_output(c, cleat_mse_loss(c->graph, x, target, op_constant(c, "scale", CLEAT_F32, 1, shape, 0, 1)));
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    int64_t width = c->dims[1];
    out[0][0] = 0;
    for (int64_t i = 0; i < c->dims[0] * width; ++i) {
        double d = in[0][i] - in[1][i];
        out[0][0] += in[2][i / width] * d * d / (double)width;
    }
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    int64_t width = c->dims[1];
    for (int64_t i = 0; i < c->dims[0] * width; ++i)
        din[0][i] += dout[0][0] * in[2][i / width] * 2 * (in[0][i] - in[1][i]) / (double)width;
}

/* |x - target| is below 4 and has one rounding; the loss of a row is below 16; the terms of the sum over rows
 * have one sign and a mean of about 1. An accum is of size 1. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)tensor;
    double rows = (double)c->dims[0], width = (double)c->dims[1];
    if (is_gradient) return (compare_tolerance){.scale = 8 / width + 1, .length = 1, .f32_units = 4};
    return (compare_tolerance){.scale = 16 + rows, .length = rows, .f32_units = 4};
}

static const op_row rows[] = {{5, 17}, {1, 1}, {3000, 3}, {33, 16, 100}, {7, 1000}, {2, 20011}};

static const op_test test = {.op = "mse_loss",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .reference = reference,
                             .gradient = gradient,
                             .tolerance = tolerance,
                             .samples = 4};

int main(void) {
    return op_main(&test, 1, NULL, 0);
}
