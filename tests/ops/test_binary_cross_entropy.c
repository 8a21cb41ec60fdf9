/* Binary cross entropy of logits. */
/* ctest: device */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>

/* dims: rows, width, largest |logit|, positive weight in tenths */
enum { LOGITS, TARGET, SAMPLE_WEIGHT };

static double positive_of(const op_case *c) {
    return (double)((float)c->dims[3] / 10);
}

static void build(op_case *c) {
    const int64_t shape[] = {c->dims[0], c->dims[1]};
    const double reach = (double)c->dims[2];
    cleat_tensor *x = op_input(c, "x", c->storage, 2, shape, -reach, reach);
    cleat_tensor *target = op_constant(c, "target", CLEAT_F32, 2, shape, 0, 1);
    cleat_tensor *sample_weight = op_constant(c, "scale", CLEAT_F32, 1, shape, 0, 1);
    op_output(c, cleat_binary_cross_entropy(c->graph, x, target, sample_weight, (float)c->dims[3] / 10));
}

/* Targets are 0, 1, in between, or unknown. */
static void fill(const op_case *c, int tensor, double *values, int64_t count) {
    (void)c;
    if (tensor != TARGET) return;
    for (int64_t i = 0; i < count; ++i) {
        if (i % 7 != 2) values[i] = (double)(i % 2);
        if (i % 11 == 5) values[i] = i % 2 ? -1 : 1.5;
        if (i % 23 == 9) values[i] = NAN;
    }
}

static double softplus(double x) {
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static bool is_known(double target) {
    return target >= 0 && target <= 1;
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    const int64_t width = c->dims[1];
    out[0][0] = 0;
    for (int64_t i = 0; i < c->dims[0] * width; ++i) {
        const double x = in[LOGITS][i], t = in[TARGET][i];
        if (!is_known(t)) continue;
        const double loss = (1 - t) * softplus(x) + positive_of(c) * t * softplus(-x);
        out[0][0] += in[SAMPLE_WEIGHT][i / width] * loss / (double)width;
    }
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    const int64_t width = c->dims[1];
    for (int64_t i = 0; i < c->dims[0] * width; ++i) {
        const double x = in[LOGITS][i], t = in[TARGET][i];
        if (!is_known(t)) continue;
        const double slope = (1 - t) / (1 + exp(-x)) - positive_of(c) * t / (1 + exp(x));
        din[LOGITS][i] += dout[0][0] * in[SAMPLE_WEIGHT][i / width] * slope / (double)width;
    }
}

/* The loss of an element is below weight * (|x| + 1), with an error of a few units of that; the terms of the
 * sum over rows have one sign and a mean below a quarter of that. A gradient is below weight / width, an
 * accum below 1. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)tensor;
    const double rows = (double)c->dims[0], width = (double)c->dims[1], weight = fmax(1, positive_of(c));
    if (is_gradient) return (compare_tolerance){.scale = weight / width + 1, .length = 1, .f32_units = 6};
    const double most = weight * ((double)c->dims[2] + 1);
    return (compare_tolerance){.scale = most * (1 + rows / 8), .length = rows, .f32_units = 4};
}

static const op_row rows[] = {{5, 17, 4, 10},  {1, 1, 2, 10},    {3000, 3, 3, 25},
                              {33, 16, 30, 5}, {7, 1000, 5, 10}, {2, 20011, 5, 30}};

static const op_test test = {.op = "binary_cross_entropy",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .fill = fill,
                             .reference = reference,
                             .gradient = gradient,
                             .tolerance = tolerance,
                             .samples = 4};

enum { N = 10 };

/* Logits of any size and unknown targets: the loss and the gradient are finite wherever PyTorch's are. */
static void extremes(void **state) {
    (void)state;
    static const op_shape *const shapes[] = {&op_shape_cpu, &op_shape_gpu};
    const double x[N] = {-1e30, 1e30, -200, 200, 0, -0.0, NAN, INFINITY, -INFINITY, 1e30};
    const double t[N] = {0, 1, 1, 0, 0, 1, -1, 2, NAN, 0}, weight = N, seed = 1;
    const double slopes[N] = {0, 0, -1, 1, 0.5, -0.5, 0, 0, 0, 1};
    for (size_t s = 0; s < 2; ++s) {
        double loss, dx[N];
        op_rig rig;
        cleat_graph *graph = op_graph();
        cleat_tensor *logits = cleat_input(graph, "x", CLEAT_F32, 2, (int64_t[]){1, N});
        cleat_tensor *target = cleat_input(graph, "target", CLEAT_F32, 2, (int64_t[]){1, N});
        cleat_tensor *scale = cleat_input(graph, "scale", CLEAT_F32, 1, (int64_t[]){1});
        cleat_tensor *start = cleat_input(graph, "seed", CLEAT_F32, 1, (int64_t[]){1});
        cleat_require_grad(graph, logits);
        cleat_tensor *y = cleat_binary_cross_entropy(graph, logits, target, scale, 1);
        cleat_retain(graph, y);
        cleat_backward(graph, y, start);
        cleat_retain(graph, cleat_gradient(graph, logits));
        assert_true(op_rig_open(&rig, graph, shapes[s], NULL, 0));
        op_rig_write(&rig, logits, x);
        op_rig_write(&rig, target, t);
        op_rig_write(&rig, scale, &weight);
        op_rig_write(&rig, start, &seed);
        op_rig_run(&rig, 0, -1);
        op_rig_read(&rig, y, &loss);
        op_rig_read(&rig, cleat_gradient(graph, logits), dx);
        assert_true(fabs(loss / 1e30 - 1) < 1e-6);
        for (int i = 0; i < N; ++i)
            if (!(fabs(dx[i] - slopes[i]) <= 1e-6)) fail_msg("gradient %d: %g, not %g", i, dx[i], slopes[i]);
        op_rig_close(&rig);
        op_graph_end(graph);
    }
}

static void refuse(cleat_dtype dtype, int64_t width, int64_t weights, float positive_weight, const char *says) {
    cleat_graph *graph = op_graph();
    cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 2, (int64_t[]){4, 3});
    assert_null(cleat_binary_cross_entropy(graph, x, cleat_input(graph, "target", dtype, 2, (int64_t[]){4, width}),
                                           cleat_input(graph, "scale", CLEAT_F32, 1, &weights), positive_weight));
    op_graph_refused(graph, CLEAT_ERR_SHAPE, "binary_cross_entropy", says);
}

static void misuse_is_refused(void **state) {
    (void)state;
    refuse(CLEAT_I32, 3, 4, 1, "target is i32 [4, 3], it must be f32 [4, 3]");
    refuse(CLEAT_F32, 2, 4, 1, "target is f32 [4, 2]");
    refuse(CLEAT_F32, 3, 3, 1, "one element for each of 4 rows");
    refuse(CLEAT_F32, 3, 4, 0, "weight of positive targets is 0");
    refuse(CLEAT_F32, 3, 4, NAN, "above 0 and finite");
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(extremes), cmocka_unit_test(misuse_is_refused)};
    return op_main(&test, 1, extra, 2);
}
