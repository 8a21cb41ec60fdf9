/* Selection of marked rows: fewer marks than rows, as many, and more. */
/* ctest: device */
#include "harness.h"

#include "cleat/ops.h"

#include <string.h>

/* dims: B, L, D, rows of each sample, positions for each mark */
enum { BATCH, LENGTH, WIDTH, COUNT, EVERY };

static void build(op_case *c) {
    const int64_t *d = c->dims;
    cleat_tensor *x = op_input(c, "x", c->storage, 3, d, -2, 2);
    cleat_tensor *marks = op_constant(c, "marks", CLEAT_I32, 2, d, 0, 50);
    op_output(c, cleat_select_marked(c->graph, x, marks, d[COUNT], NULL));
}

static void fill(const op_case *c, int tensor, double *values, int64_t count) {
    for (int64_t i = 0; tensor == 1 && i < count; ++i)
        if (i * 7 % 11 % c->dims[EVERY]) values[i] = -1;
}

/* Position of mark number `wanted` of sample b; -1: it has fewer. */
static int64_t position(const op_case *c, const double *marks, int64_t b, int64_t wanted) {
    for (int64_t l = 0; l < c->dims[LENGTH]; ++l)
        if (marks[b * c->dims[LENGTH] + l] >= 0 && wanted-- == 0) return l;
    return -1;
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    const int64_t *d = c->dims;
    for (int64_t b = 0; b < d[BATCH]; ++b)
        for (int64_t m = 0; m < d[COUNT]; ++m) {
            const int64_t l = position(c, in[1], b, m);
            for (int64_t k = 0; k < d[WIDTH]; ++k)
                out[0][(b * d[COUNT] + m) * d[WIDTH] + k] = l < 0 ? 0 : in[0][(b * d[LENGTH] + l) * d[WIDTH] + k];
        }
}

static void gradient(const op_case *c, const double *const *in, const double *const *dout, double *const *din) {
    const int64_t *d = c->dims;
    for (int64_t b = 0; b < d[BATCH]; ++b)
        for (int64_t m = 0; m < d[COUNT]; ++m) {
            const int64_t l = position(c, in[1], b, m);
            for (int64_t k = 0; l >= 0 && k < d[WIDTH]; ++k)
                din[0][(b * d[LENGTH] + l) * d[WIDTH] + k] += dout[0][(b * d[COUNT] + m) * d[WIDTH] + k];
        }
}

/* A copy; the gradient adds one number. */
static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)c, (void)tensor;
    return (compare_tolerance){.scale = is_gradient ? 2 : 0, .length = 1, .f32_units = 1};
}

static const op_row rows[] = {{3, 9, 17, 4, 3},  {1, 1, 1, 1, 1},    {2, 33, 64, 5, 2},
                              {5, 12, 7, 12, 1}, {4, 40, 130, 6, 9}, {2, 128, 96, 20, 5}};

static const op_test test = {.op = "select_marked",
                             .rows = rows,
                             .row_count = sizeof rows / sizeof rows[0],
                             .build = build,
                             .fill = fill,
                             .reference = reference,
                             .gradient = gradient,
                             .tolerance = tolerance,
                             .samples = 4};

/* Two samples of four positions, three rows each. */
static void the_marks_of_the_rows_are_returned(void **state) {
    static const int64_t shape[] = {2, 4, 8};
    static const double marks[] = {-1, 7, -1, 3, 5, 0, 9, 2}, expected[] = {7, 3, -1, 5, 0, 9};
    double found[6], values[64] = {0};
    op_rig rig;
    (void)state;
    cleat_graph *graph = op_graph();
    cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 3, shape), *m = cleat_input(graph, "m", CLEAT_I32, 2, shape),
                 *chosen = NULL;
    cleat_retain(graph, cleat_select_marked(graph, x, m, 3, &chosen));
    cleat_retain(graph, chosen);
    assert_true(op_rig_open(&rig, graph, &op_shape_cpu, NULL, 0));
    op_rig_write(&rig, x, values);
    op_rig_write(&rig, m, marks);
    op_rig_run(&rig, 0, -1);
    op_rig_read(&rig, chosen, found);
    for (int i = 0; i < 6; ++i) assert_int_equal((int)found[i], (int)expected[i]);
    op_rig_close(&rig);
    op_graph_end(graph);
}

static void more_rows_than_positions_are_refused(void **state) {
    static const int64_t shape[] = {2, 3, 4};
    (void)state;
    cleat_graph *graph = op_graph();
    cleat_tensor *x = cleat_input(graph, "x", CLEAT_F32, 3, shape), *m = cleat_input(graph, "m", CLEAT_I32, 2, shape);
    assert_null(cleat_select_marked(graph, x, m, 4, NULL));
    op_graph_refused(graph, CLEAT_ERR_SHAPE, "select_marked", "4 rows of each sample");
}

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(the_marks_of_the_rows_are_returned),
                                       cmocka_unit_test(more_rows_than_positions_are_refused)};
    return op_main(&test, 1, extra, sizeof extra / sizeof extra[0]);
}
