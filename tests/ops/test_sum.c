/* Sums of scalars, and accumulation of a scalar metric. */
/* ctest: device quick */
#include "harness.h"

#include "cleat/ops.h"

#include <math.h>

#include <stdio.h>

/* dims: number of terms, the first one twice */
static void build(op_case *c) {
    cleat_tensor *terms[8] = {NULL};
    for (int i = 0; i < c->dims[0]; ++i) {
        char name[16];
        snprintf(name, sizeof name, "term%d", i);
        terms[i] = op_input(c, name, CLEAT_F32, 1, (int64_t[]){1}, -3, 3);
    }
    if (c->dims[1]) terms[c->dims[0]] = terms[0];
    op_output(c, cleat_sum(c->graph, terms, (int)(c->dims[0] + c->dims[1])));
}

static void reference(const op_case *c, const double *const *in, double *const *out) {
    out[0][0] = c->dims[1] ? in[0][0] : 0;
    for (int i = 0; i < c->dims[0]; ++i) out[0][0] += in[i][0];
}

static compare_tolerance tolerance(const op_case *c, int tensor, bool is_gradient) {
    (void)tensor, (void)is_gradient;
    return (compare_tolerance){.scale = 3 * sqrt((double)c->dims[0]), .length = (double)c->dims[0], .f32_units = 2};
}

static const op_row rows[] = {{1}, {2}, {8}, {3, 1}};

/* The terms of a loss: their sum, its gradients, and both in the state. */
static void build_metrics(op_case *c) {
    cleat_tensor *terms[10] = {NULL}, *state = cleat_state(c->graph, "figures", CLEAT_F32, 1, (int64_t[]){12});
    int indices[10];
    for (int i = 0; i < c->dims[0]; ++i) {
        char name[16];
        snprintf(name, sizeof name, "term%d", i);
        terms[i] = op_input(c, name, CLEAT_F32, 1, (int64_t[]){1}, -3, 3);
        indices[i] = i;
    }
    op_output(c, cleat_sum_metrics(c->graph, terms, indices, (int)c->dims[0], 11, state));
}

static const op_row metric_rows[] = {{1}, {2}, {10}};

static void test_total(void **state) {
    (void)state;
    cleat_error error = {0};
    cleat_graph *graph = op_graph();
    cleat_tensor *a = cleat_input(graph, "a", CLEAT_F32, 1, (int64_t[]){1});
    cleat_tensor *b = cleat_input(graph, "b", CLEAT_F32, 1, (int64_t[]){1});
    cleat_tensor *metrics = cleat_state(graph, "figures", CLEAT_F32, 1, (int64_t[]){4});
    cleat_tensor *total = cleat_sum_metrics(graph, (cleat_tensor *[]){a, b}, (int[]){2, 0}, 2, 3, metrics);
    cleat_retain(graph, total);
    op_rig rig;
    assert_true(op_rig_open(&rig, graph, &op_shape_gpu, NULL, 0));
    double first = 1.5, second = -4, got[4];
    op_rig_write(&rig, a, &first);
    op_rig_write(&rig, b, &second);
    op_rig_run(&rig, 0, -1);
    op_rig_run(&rig, 0, -1);
    op_rig_read(&rig, metrics, got);
    assert_true(got[0] == -8 && got[1] == 0 && got[2] == 3 && got[3] == -5);
    op_rig_read(&rig, total, got);
    assert_true(got[0] == -2.5);
    op_rig_close(&rig);
    cleat_sum_metrics(graph, &a, (int[]){0}, 1, 4, metrics);
    assert_int_equal(cleat_graph_status(graph, &error), CLEAT_ERR_SHAPE);
    op_graph_end(graph);
}

static void test_record(void **state) {
    (void)state;
    cleat_error error = {0};
    cleat_graph *graph = op_graph();
    cleat_tensor *a = cleat_input(graph, "a", CLEAT_F32, 1, (int64_t[]){1});
    cleat_tensor *metrics = cleat_state(graph, "figures", CLEAT_F32, 1, (int64_t[]){3});
    cleat_accumulate_metric(graph, a, metrics, 1);
    cleat_accumulate_metric(graph, cleat_sum(graph, (cleat_tensor *[]){a, a}, 2), metrics, 2);
    op_rig rig;
    assert_true(op_rig_open(&rig, graph, &op_shape_gpu, NULL, 0));
    double scalar = 1.5, got[3];
    op_rig_write(&rig, a, &scalar);
    op_rig_run(&rig, 0, -1);
    op_rig_run(&rig, 0, -1);
    op_rig_read(&rig, metrics, got);
    assert_true(got[0] == 0 && got[1] == 3 && got[2] == 6);
    op_rig_close(&rig);
    cleat_accumulate_metric(graph, a, metrics, 3);
    assert_int_equal(cleat_graph_status(graph, &error), CLEAT_ERR_SHAPE);
    op_graph_end(graph);
}

static const op_test tests[] = {{.op = "sum",
                                 .rows = rows,
                                 .row_count = sizeof rows / sizeof rows[0],
                                 .build = build,
                                 .reference = reference,
                                 .tolerance = tolerance,
                                 .only = 1u << CLEAT_F32},
                                {.op = "sum_metrics",
                                 .rows = metric_rows,
                                 .row_count = sizeof metric_rows / sizeof metric_rows[0],
                                 .build = build_metrics,
                                 .reference = reference,
                                 .tolerance = tolerance,
                                 .only = 1u << CLEAT_F32}};

int main(void) {
    const struct CMUnitTest extra[] = {cmocka_unit_test(test_record), cmocka_unit_test(test_total)};
    return op_main(tests, sizeof tests / sizeof *tests, extra, sizeof extra / sizeof *extra);
}
