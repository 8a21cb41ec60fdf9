/* y = a + b. */
/* ctest: device quick oclgrind=4 */
#include "harness.h"

#include "cleat/ops.h"

#include <string.h>

static void build(op_case *c) {
    const int64_t shape[] = {c->dims[0], c->dims[1]};
    cleat_tensor *a = op_input(c, "a", c->storage, 2, shape, -2, 2);
    cleat_tensor *b = c->dims[2] ? a : op_input(c, "b", c->storage, 2, shape, -2, 2);
    op_output(c, cleat_add(c->graph, a, b));
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    const double *a = in[0], *b = c->dims[2] ? in[0] : in[1];
    for (int64_t i = 0; i < c->dims[0] * c->dims[1]; ++i) out[0][i] = a[i] + b[i];
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    (void)in;
    for (int64_t i = 0; i < c->dims[0] * c->dims[1]; ++i) {
        din[0][i] += dout[0][i];
        din[c->dims[2] ? 0 : 1][i] += dout[0][i];
    }
}

/* The sum of two numbers below 2 in magnitude has one rounding. The gradient sums up to three numbers below
 * 1, and each sum is rounded to storage. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)c, (void)tensor;
    return (compare_tolerance){.scale = 4, .length = 1, .f32_units = 1, .storage_units = is_gradient ? 1 : 0};
}

/* rows, width, a + a */
static const op_row rows[] = {{1, 1}, {1, 15}, {2, 8}, {1, 17}, {7, 331}, {64, 1024}, {3, 50, 1}};

static const op_test test = {.op = "add",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .reference = reference,
                             .gradient = gradient,
                             .tolerance = tolerance,
                             .samples = 4};

static void test_shapes_that_do_not_fit(void **state) {
    (void)state;
    cleat_error error = {0};
    cleat_graph *graph = op_graph();
    cleat_tensor *a = cleat_input(graph, "a", CLEAT_F32, 1, (int64_t[]){3});
    cleat_tensor *b = cleat_input(graph, "b", CLEAT_F32, 1, (int64_t[]){4});
    assert_int_equal(cleat_graph_status(graph, &error), CLEAT_OK);
    assert_null(cleat_add(graph, a, b));
    assert_int_equal(cleat_graph_status(graph, &error), CLEAT_ERR_SHAPE);
    assert_non_null(strstr(error.text, "f32 [4]"));
    op_graph_end(graph);
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(test_shapes_that_do_not_fit)};
    return op_main(&test, 1, extra, 1);
}
