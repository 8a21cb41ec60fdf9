/* Differences and products of two tensors (sums: test_add.c). */
/* ctest: device quick */
#include "harness.h"

#include "cleat/ops.h"

typedef cleat_tensor *(*operation)(cleat_graph *graph, cleat_tensor *a, cleat_tensor *b);

/* dims: rows, width, both operands are one tensor */
static void build_with(op_case *c, operation op) {
    const int64_t shape[] = {c->dims[0], c->dims[1]};
    cleat_tensor *a = op_input(c, "a", c->storage, 2, shape, -2, 2);
    cleat_tensor *b = c->dims[2] ? a : op_input(c, "b", c->storage, 2, shape, -2, 2);
    op_output(c, op(c->graph, a, b));
}

static int second(const op_case *c) {
    return c->dims[2] ? 0 : 1;
}

static const op_row rows[] = {{2, 9}, {1, 1}, {1, 15}, {7, 331}, {64, 1024}, {3, 50, 1}};

/* --- a - b --- */

static void build_difference(op_case *c) {
    build_with(c, cleat_subtract);
}

static void difference(const op_case *c, const double *const *in, double *const *out) {
    for (int64_t i = 0; i < c->dims[0] * c->dims[1]; ++i) out[0][i] = in[0][i] - in[second(c)][i];
}

static void difference_gradient(const op_case *c, const double *const *in, const double *const *dout,
                                double *const *din) {
    (void)in;
    for (int64_t i = 0; i < c->dims[0] * c->dims[1]; ++i) {
        din[0][i] += dout[0][i];
        din[second(c)][i] -= dout[0][i];
    }
}

/* As in add: one rounding of the result; a gradient of up to three terms below 1, each sum stored. */
static compare_tolerance difference_tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)c, (void)tensor;
    return (compare_tolerance){.scale = 4, .length = 1, .f32_units = 1, .storage_units = is_gradient ? 1 : 0};
}

/* --- a b --- */

static void build_product(op_case *c) {
    build_with(c, cleat_multiply);
}

static void product(const op_case *c, const double *const *in, double *const *out) {
    for (int64_t i = 0; i < c->dims[0] * c->dims[1]; ++i) out[0][i] = in[0][i] * in[second(c)][i];
}

static void product_gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    for (int64_t i = 0; i < c->dims[0] * c->dims[1]; ++i) {
        din[0][i] += dout[0][i] * in[second(c)][i];
        din[second(c)][i] += dout[0][i] * in[0][i];
    }
}

/* The product is rounded once. A gradient is up to two products below 2 and an accum below 1; every sum is stored. */
static compare_tolerance product_tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)c, (void)tensor;
    return (compare_tolerance){.scale = is_gradient ? 5 : 0, .length = 1, .f32_units = 1, .storage_units = is_gradient};
}

#define TEST(text, function)                                                                                           \
    {                                                                                                                  \
        .op = text, .rows = rows, .row_count = sizeof rows / sizeof rows[0], .build = build_##function,                \
        .reference = function, .gradient = function##_gradient, .tolerance = function##_tolerance, .samples = 4        \
    }

static void operands_must_fit(void **state) {
    (void)state;
    static const operation operations[] = {cleat_subtract, cleat_multiply};
    static const char *const names[] = {"subtract", "multiply"};
    for (int i = 0; i < 2; ++i) {
        cleat_graph *graph = op_graph();
        cleat_tensor *a = cleat_input(graph, "a", CLEAT_F32, 1, (int64_t[]){3});
        cleat_tensor *b = cleat_input(graph, "b", CLEAT_F32, 1, (int64_t[]){4});
        assert_null(operations[i](graph, a, b));
        op_graph_refused(graph, CLEAT_ERR_SHAPE, names[i], "f32 [3] and f32 [4]");
    }
}

/* A product with a constant needs no gradient node for the constant. */
static void a_constant_gets_no_gradient(void **state) {
    (void)state;
    cleat_graph *graph = op_graph();
    cleat_tensor *a = cleat_input(graph, "a", CLEAT_F32, 1, (int64_t[]){3});
    cleat_tensor *b = cleat_constant(graph, "b", 1, (int64_t[]){3}, 2);
    cleat_tensor *dy = cleat_input(graph, "dy", CLEAT_F32, 1, (int64_t[]){3});
    cleat_require_grad(graph, a);
    cleat_tensor *y = cleat_multiply(graph, a, b);
    cleat_backward_from(graph, &y, &dy, 1);
    assert_int_equal(cleat_graph_nodes(graph), 2);
    op_graph_end(graph);
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(operands_must_fit),
                                       cmocka_unit_test(a_constant_gets_no_gradient)};
    const op_test tests[] = {TEST("subtract", difference), TEST("multiply", product)};
    return op_main(tests, 2, extra, 2);
}
