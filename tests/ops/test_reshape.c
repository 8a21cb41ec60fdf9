/* A reshape between additions: values and gradients pass unchanged, including gradients that arrive from two
 * consumers. */
/* ctest: device */
#include "harness.h"

#include "cleat/ops.h"

#include <string.h>

/* y = reshape(a + b) + c, z = a + b: the sum is read under both shapes. */
static void build(op_case *c) {
    const int64_t before[] = {c->dims[0], c->dims[1]}, after[] = {c->dims[1], c->dims[0]};
    cleat_tensor *a = op_input(c, "a", c->storage, 2, before, -2, 2);
    cleat_tensor *b = op_input(c, "b", c->storage, 2, before, -2, 2);
    cleat_tensor *d = op_input(c, "d", c->storage, 2, after, -2, 2);
    cleat_tensor *sum = cleat_add(c->graph, a, b);
    op_output(c, cleat_add(c->graph, cleat_reshape(c->graph, sum, 2, after), d));
    op_output(c, cleat_add(c->graph, sum, sum));
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    for (int64_t i = 0; i < c->dims[0] * c->dims[1]; ++i) {
        double sum = in[0][i] + in[1][i];
        out[0][i] = sum + in[2][i];
        out[1][i] = sum + sum;
    }
}

static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)c, (void)tensor;
    return (compare_tolerance){.scale = 8, .length = 1, .f32_units = 2, .storage_units = is_gradient ? 2 : 1};
}

static const op_row rows[] = {{1, 1}, {3, 5}, {2, 17}, {7, 331}};

static const op_test test = {.op = "add", /* selects the variants; a reshape has none */
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .reference = reference,
                             .tolerance = tolerance,
                             .samples = 4};

static void test_other_numbers_of_elements_are_refused(void **state) {
    (void)state;
    cleat_graph *graph = op_graph();
    cleat_tensor *a = cleat_input(graph, "a", CLEAT_F32, 2, (int64_t[]){3, 4});
    assert_non_null(cleat_reshape(graph, a, 1, (int64_t[]){12}));
    assert_null(cleat_reshape(graph, a, 2, (int64_t[]){3, 5}));
    op_graph_refused(graph, CLEAT_ERR_SHAPE, "reshape", "f32 [3, 4]");
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(test_other_numbers_of_elements_are_refused)};
    return op_main(&test, 1, extra, 1);
}
