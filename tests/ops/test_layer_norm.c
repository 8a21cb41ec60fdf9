/* Layer and RMS normalisation against a double-precision reference. */
/* ctest: device slow cost=10 oclgrind=1 */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>

static const float eps = 1e-5f;

/* dims: rows, width, offset of x, x is a constant, no beta */
static void build(op_case *c) {
    const int64_t shape[] = {c->dims[0], c->dims[1]}, width[] = {c->dims[1]};
    double offset = (double)c->dims[2];
    cleat_tensor *x = c->dims[3] ? op_constant(c, "x", c->storage, 2, shape, offset - 2, offset + 2)
                                 : op_input(c, "x", c->storage, 2, shape, offset - 2, offset + 2);
    cleat_tensor *gamma = op_param(c, "gamma", 1, width, 0.5, 1.5);
    cleat_tensor *beta = c->dims[4] ? NULL : op_param(c, "beta", 1, width, -1, 1);
    op_output(c, cleat_layer_norm(c->graph, x, gamma, beta, eps));
}

/* The same with a consumer in f32: the kernels include the casts of the result and of the incoming gradient. */
static void build_f32(op_case *c) {
    const int64_t shape[] = {c->dims[0], c->dims[1]}, width[] = {c->dims[1]};
    cleat_tensor *x = op_input(c, "x", c->storage, 2, shape, -2, 2);
    cleat_tensor *gamma = op_param(c, "gamma", 1, width, 0.5, 1.5), *beta = op_param(c, "beta", 1, width, -1, 1);
    op_output(c, cleat_cast(c->graph, cleat_layer_norm(c->graph, x, gamma, beta, eps), CLEAT_F32));
}

static void statistics(const double *x, int64_t width, double *mean, double *rstd) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < width; ++i) sum += x[i];
    *mean = sum / (double)width;
    for (int64_t i = 0; i < width; ++i) squares += (x[i] - *mean) * (x[i] - *mean);
    *rstd = 1 / sqrt(squares / (double)width + (double)eps);
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    int64_t width = c->dims[1];
    for (int64_t row = 0; row < c->dims[0]; ++row) {
        const double *x = in[0] + row * width;
        double mean, rstd;
        statistics(x, width, &mean, &rstd);
        for (int64_t i = 0; i < width; ++i)
            out[0][row * width + i] = (x[i] - mean) * rstd * in[1][i] + (c->dims[4] ? 0 : in[2][i]);
    }
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    int64_t width = c->dims[1];
    for (int64_t row = 0; row < c->dims[0]; ++row) {
        const double *x = in[0] + row * width, *dy = dout[0] + row * width;
        double mean, rstd, sum_g = 0, sum_gx = 0;
        statistics(x, width, &mean, &rstd);
        for (int64_t i = 0; i < width; ++i) {
            double xhat = (x[i] - mean) * rstd;
            sum_g += dy[i] * in[1][i];
            sum_gx += dy[i] * in[1][i] * xhat;
            din[1][i] += dy[i] * xhat;
            if (!c->dims[4]) din[2][i] += dy[i];
        }
        for (int64_t i = 0; din[0] && i < width; ++i) {
            double xhat = (x[i] - mean) * rstd;
            din[0][row * width + i] += rstd * (dy[i] * in[1][i] - (sum_g + xhat * sum_gx) / (double)width);
        }
    }
}

static void build_rms(op_case *c) {
    const int64_t shape[] = {c->dims[0], c->dims[1]}, width[] = {c->dims[1]};
    const double offset = (double)c->dims[2];
    cleat_tensor *x = op_input(c, "x", c->storage, 2, shape, offset - 2, offset + 2);
    op_output(c, cleat_rms_norm(c->graph, x, op_param(c, "gamma", 1, width, 0.5, 1.5), eps));
}

static double rms_rstd(const double *x, int64_t width) {
    double squares = 0;
    for (int64_t i = 0; i < width; ++i) squares += x[i] * x[i];
    return 1 / sqrt(squares / (double)width + (double)eps);
}

static void rms_reference(const op_case *c, const double *const *in, double *const *out) {
    const int64_t width = c->dims[1];
    for (int64_t i = 0; i < c->dims[0] * width; ++i)
        out[0][i] = in[0][i] * rms_rstd(in[0] + i / width * width, width) * in[1][i % width];
}

static void rms_gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    const int64_t width = c->dims[1];
    for (int64_t row = 0; row < c->dims[0]; ++row) {
        const double *x = in[0] + row * width, *dy = dout[0] + row * width, rstd = rms_rstd(x, width);
        double sum = 0;
        for (int64_t i = 0; i < width; ++i) {
            sum += dy[i] * in[1][i] * x[i] * rstd;
            din[1][i] += dy[i] * x[i] * rstd;
        }
        for (int64_t i = 0; i < width; ++i)
            din[0][row * width + i] += rstd * (dy[i] * in[1][i] - x[i] * rstd * sum / (double)width);
    }
}

/* x - mean has an error of u |offset| sqrt(width) / width and is then scaled by rstd (about 1 for x in +-2).
 * With a width of 1 the variance is 0 and only eps remains: rstd = 316, xhat = 0 exactly. dx sums terms of
 * size 1.5 rstd; dgamma and dbeta sum `rows` terms of random sign, of size |xhat| < 2. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    double offset = fabs((double)c->dims[2]), rows = (double)c->dims[0];
    double rstd = c->dims[1] < 4 ? 30 : 1.2;
    if (c->dims[1] == 1) rstd = 317;
    if (!is_gradient) return (compare_tolerance){.scale = 3 * rstd + offset * rstd, .length = 1, .f32_units = 4};
    if (tensor == 0) return (compare_tolerance){.scale = (3 + offset) * rstd * rstd, .length = 1, .f32_units = 6};
    return (compare_tolerance){.scale = 1 + sqrt(rows) + offset * rstd, .length = rows, .f32_units = 6};
}

/* The first row without beta has whole vectors only, since the harness lets PoCL optimize it: of rows with a rest PoCL
 * 3.1 then stores vectors of zeros that their condition excludes (with beta too: CLEAT_TEST_FULL=1, row 1, shape gpu;
 * not with -cl-opt-disable). CPUs have other code. */
static const op_row rows[] = {{1, 1},     {5, 17},         {300, 256, 0},       {9, 256, 30},
                              {33, 1200}, {70, 256, 0, 1}, {300, 256, 3, 0, 1}, {5, 17, 0, 0, 1}};

static const op_row rms_rows[] = {{1, 1}, {5, 17}, {300, 256}, {9, 256, 3}, {33, 1200}, {2, 4096}};

static const op_row f32_rows[] = {{5, 17}, {300, 256}, {33, 1200}};

static const op_test tests[] = {{.op = "layer_norm",
                                 .rows = rows,
                                 .row_count = sizeof rows / sizeof rows[0],
                                 .build = build,
                                 .reference = reference,
                                 .gradient = gradient,
                                 .tolerance = tolerance,
                                 .samples = 5},
                                {.op = "rms_norm",
                                 .rows = rms_rows,
                                 .row_count = sizeof rms_rows / sizeof rms_rows[0],
                                 .build = build_rms,
                                 .reference = rms_reference,
                                 .gradient = rms_gradient,
                                 .tolerance = tolerance,
                                 .samples = 5},
                                {.op = "layer_norm_f32",
                                 .title = "layer_norm, f32 outside",
                                 .rows = f32_rows,
                                 .row_count = sizeof f32_rows / sizeof f32_rows[0],
                                 .build = build_f32,
                                 .reference = reference,
                                 .gradient = gradient,
                                 .tolerance = tolerance,
                                 .samples = 5,
                                 .only = 1u << CLEAT_F16 | 1u << CLEAT_BF16}};

int main(void) {
    return op_main(tests, sizeof tests / sizeof *tests, NULL, 0);
}
