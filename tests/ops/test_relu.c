/* Rectified linear unit. */
/* ctest: device */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>

/* dims: rows, width */
static void build(op_case *c) {
    const int64_t shape[] = {c->dims[0], c->dims[1]};
    op_output(c, cleat_relu(c->graph, op_input(c, "x", c->storage, 2, shape, -2, 2)));
}

/* Keeps values away from 0: finite differences must not cross the corner. */
static void fill(const op_case *c, int tensor, double *values, int64_t count) {
    (void)c, (void)tensor;
    for (int64_t i = 0; i < count; ++i)
        if (fabs(values[i]) < 0.02) values[i] = values[i] < 0 ? -0.02 : 0.02;
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    for (int64_t i = 0; i < c->dims[0] * c->dims[1]; ++i) out[0][i] = in[0][i] <= 0 ? 0 : in[0][i];
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    for (int64_t i = 0; i < c->dims[0] * c->dims[1]; ++i) din[0][i] += in[0][i] > 0 ? dout[0][i] : 0;
}

/* Exact, except for the sum with the accum. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)c, (void)tensor;
    return (compare_tolerance){.scale = is_gradient ? 2 : 0, .length = 1, .f32_units = is_gradient ? 1 : 0};
}

static const op_row rows[] = {{3, 17}, {1, 1}, {1, 15}, {5, 1000}, {40, 400}};

static const op_test test = {.op = "relu",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .fill = fill,
                             .reference = reference,
                             .gradient = gradient,
                             .tolerance = tolerance,
                             .samples = 6};

/* At 0 the gradient is 0, NaN passes, and an infinite gradient does not leak through an inactive element. */
static void test_corners(void **state) {
    (void)state;
    enum { N = 21 };
    const double x_of[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, 1e-30, -1e-30},
                 y_of[] = {NAN, INFINITY, 0, 0, 0, 1e-30, 0};
    cleat_graph *graph = op_graph();
    cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 1, (int64_t[]){N});
    cleat_tensor *dy = cleat_input(graph, "dy", CLEAT_F32, 1, (int64_t[]){N});
    cleat_require_grad(graph, x);
    cleat_tensor *y = cleat_relu(graph, x);
    cleat_retain(graph, y);
    cleat_backward_from(graph, &y, &dy, 1);
    cleat_tensor *dx = cleat_gradient(graph, x);
    cleat_retain(graph, dx);
    double in[N], arriving[N], out[N], leaving[N];
    for (int i = 0; i < N; ++i) {
        in[i] = x_of[i % 7];
        arriving[i] = i < 14 ? INFINITY : 2;
    }
    const op_shape *shapes[] = {&op_shape_cpu, &op_shape_gpu};
    for (int s = 0; s < 2; ++s) {
        op_rig rig;
        assert_true(op_rig_open(&rig, graph, shapes[s], NULL, 0));
        op_rig_write(&rig, x, in);
        op_rig_write(&rig, dy, arriving);
        op_rig_run(&rig, 0, -1);
        op_rig_read(&rig, y, out);
        op_rig_read(&rig, dx, leaving);
        for (int i = 0; i < N; ++i) {
            double wanted = compare_round(CLEAT_F32, y_of[i % 7]);
            assert_true(isnan(wanted) ? isnan(out[i]) : out[i] == wanted);
            assert_true(leaving[i] == (wanted <= 0 ? 0 : arriving[i]));
        }
        op_rig_close(&rig);
    }
    op_graph_end(graph);
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(test_corners)};
    return op_main(&test, 1, extra, 1);
}
