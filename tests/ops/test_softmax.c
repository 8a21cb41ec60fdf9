/* Softmax of rows. */
/* ctest: device */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>
#include <stdlib.h>

/* dims: rows, width, offset of x, largest |x - offset| */
static void build(op_case *c) {
    const int64_t shape[] = {c->dims[0], c->dims[1]};
    double offset = (double)c->dims[2], size = (double)c->dims[3];
    op_output(c, cleat_softmax(c->graph, op_input(c, "x", c->storage, 2, shape, offset - size, offset + size)));
}

static void softmax(const double *x, int64_t width, double *y) {
    double top = x[0], sum = 0;
    for (int64_t i = 0; i < width; ++i) top = fmax(top, x[i]);
    for (int64_t i = 0; i < width; ++i) sum += y[i] = exp(x[i] - top);
    for (int64_t i = 0; i < width; ++i) y[i] /= sum;
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    int64_t width = c->dims[1];
    for (int64_t row = 0; row < c->dims[0]; ++row) softmax(in[0] + row * width, width, out[0] + row * width);
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    int64_t width = c->dims[1];
    double *y = calloc((size_t)width, sizeof *y);
    for (int64_t row = 0; row < c->dims[0]; ++row) {
        const double *dy = dout[0] + row * width;
        double sum = 0;
        softmax(in[0] + row * width, width, y);
        for (int64_t i = 0; i < width; ++i) sum += y[i] * dy[i];
        for (int64_t i = 0; i < width; ++i) din[0][row * width + i] += y[i] * (dy[i] - sum);
    }
    free(y);
}

/* `most`: the maximum y of a row. e^d / sum has a relative error of (4 + |d|) units, and |d| e^d <= 1/e. The
 * gradient reads y rounded to storage, both in a product with |dy - sum| <= 2 and in the sum; with an accum
 * the result is of size 1. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)tensor;
    double width = (double)c->dims[1], size = (double)c->dims[3];
    double most = exp(2 * size) / (width - 1 + exp(2 * size)), scale = 3 * most + (c->chained ? 1 : 0);
    if (!is_gradient) return (compare_tolerance){.scale = most, .length = 1, .f32_units = 6};
    return (compare_tolerance){.scale = scale, .length = 1, .f32_units = 6, .storage_units = 3 * most / scale};
}

static const op_row rows[] = {{5, 17, 0, 3},   {1, 1, 0, 2},      {300, 2, 0, 4},  {33, 16, -50, 3},
                              {70, 256, 0, 2}, {9, 1000, 30, 60}, {2, 20011, 0, 2}};

static const op_test test = {.op = "softmax",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .reference = reference,
                             .gradient = gradient,
                             .tolerance = tolerance,
                             .samples = 4};

enum { WIDTH = 37, ROWS = 5 };

/* Masked elements (-infinity) give exactly 0. A NaN, +infinity, or only -infinity makes that row NaN, and no
 * other. */
static void test_not_finite(void **state) {
    (void)state;
    cleat_graph *graph = op_graph();
    cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 2, (int64_t[]){ROWS, WIDTH}), *y = cleat_softmax(graph, x);
    cleat_retain(graph, y);
    double in[ROWS * WIDTH], out[ROWS * WIDTH];
    for (int i = 0; i < ROWS * WIDTH; ++i)
        in[i] = i >= 2 * WIDTH && i < 3 * WIDTH ? -INFINITY : i % WIDTH == 3 ? 0x1p127 : 1;
    for (int i = 5; i < WIDTH; ++i) in[i] = -INFINITY;
    in[3] = 2;
    in[WIDTH + 20] = NAN;
    in[3 * WIDTH + 36] = INFINITY;
    const op_shape *shapes[] = {&op_shape_cpu, &op_shape_gpu};
    for (int s = 0; s < 2; ++s) {
        op_rig rig;
        assert_true(op_rig_open(&rig, graph, shapes[s], NULL, 0));
        op_rig_write(&rig, x, in);
        op_rig_run(&rig, 0, -1);
        op_rig_read(&rig, y, out);
        for (int i = 0; i < WIDTH; ++i) {
            double wanted = i < 5 ? exp(in[i] - 2) / (1 + 4 * exp(-1.0)) : 0;
            assert_true(i < 5 ? fabs(out[i] - wanted) < 1e-6 : out[i] == 0);
            assert_true(isnan(out[WIDTH + i]) && isnan(out[2 * WIDTH + i]) && isnan(out[3 * WIDTH + i]));
            assert_true(out[4 * WIDTH + i] == (i == 3 ? 1 : 0));
        }
        op_rig_close(&rig);
    }
    op_graph_end(graph);
}

static void test_refused(void **state) {
    (void)state;
    cleat_error error = {0};
    cleat_graph *graph = op_graph();
    cleat_tensor *widest = cleat_input(graph, "widest", CLEAT_F32, 2, (int64_t[]){1, 65536});
    assert_non_null(cleat_softmax(graph, widest));
    cleat_tensor *wider = cleat_input(graph, "wider", CLEAT_F32, 2, (int64_t[]){1, 65537});
    assert_null(cleat_softmax(graph, wider));
    assert_int_equal(cleat_graph_status(graph, &error), CLEAT_ERR_SHAPE);
    op_graph_end(graph);
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(test_not_finite), cmocka_unit_test(test_refused)};
    return op_main(&test, 1, extra, 2);
}
