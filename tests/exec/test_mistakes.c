/* Mistakes of a program that uses the public headers: each returns an error with its cause. */
/* ctest: device */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cleat/exec.h"
#include "cleat/op.h"
#include "tiny.h"

enum { N = 8 };

static cleat_device *device;
static const int64_t shape[] = {N};

/* A store with a graph of input x and y = 3 x, without an error so far. */
typedef struct rig {
    cleat_store *store;
    cleat_graph *graph, *other;
    cleat_tensor *x, *y, *other_x;
} rig;

static void open_rig(rig *r) {
    cleat_error error;
    assert_int_equal(cleat_store_create(&r->store, &error), CLEAT_OK);
    assert_int_equal(cleat_graph_create(r->store, "first", &r->graph, &error), CLEAT_OK);
    assert_int_equal(cleat_graph_create(r->store, "second", &r->other, &error), CLEAT_OK);
    r->x = cleat_input(r->graph, "x", CLEAT_F32, 1, shape);
    r->y = tiny_affine(r->graph, r->x, NULL, 3, 0, TINY_FINE);
    r->other_x = cleat_input(r->other, "x", CLEAT_F32, 1, shape);
    assert_int_equal(cleat_graph_status(r->graph, &error), CLEAT_OK);
    assert_int_equal(cleat_graph_status(r->other, &error), CLEAT_OK);
}

static void close_rig(rig *r) {
    cleat_graph_destroy(r->graph);
    cleat_graph_destroy(r->other);
    cleat_store_destroy(r->store);
}

/* Asserts that the call failed with `wanted` and that the message contains `words`. */
static void says(cleat_status status, cleat_status wanted, const cleat_error *error, const char *words) {
    if (status != wanted || !strstr(error->text, words))
        fail_msg("status %d, '%s': expected %d, '%s'", (int)status, error->text, (int)wanted, words);
}

/* Building: the first wrong call sets the graph's error, and a plan of the graph repeats it. */
static void expect_error(rig *r, cleat_status wanted, const char *words) {
    cleat_error error = {0}, planned = {0};
    cleat_device_facts facts = {.max_allocation = 1 << 30, .memory_total = 1 << 30, .alignment = 64};
    cleat_plan *plan = NULL;
    says(cleat_graph_status(r->graph, &error), wanted, &error, words);
    says(cleat_plan_create(&r->graph, 1, &facts, &plan, &planned), wanted, &planned, words);
    assert_null(plan);
    close_rig(r);
}

static void test_names_and_shapes(void **state) {
    const int64_t negative[] = {4, -1}, huge[] = {INT64_MAX / 2, 4}, six[] = {1, 1, 1, 1, 1, 1};
    rig r;
    (void)state;
    open_rig(&r);
    assert_null(cleat_input(r.graph, NULL, CLEAT_F32, 1, shape));
    expect_error(&r, CLEAT_ERR_ARGUMENT, "needs a name and a shape");
    open_rig(&r);
    assert_null(cleat_param(r.graph, "", 1, shape, (cleat_init){CLEAT_INIT_ZERO, 0}));
    expect_error(&r, CLEAT_ERR_ARGUMENT, "needs a name and a shape");
    open_rig(&r);
    assert_null(cleat_input(r.graph, "z", CLEAT_F32, 1, NULL));
    expect_error(&r, CLEAT_ERR_ARGUMENT, "'z'");
    open_rig(&r);
    assert_null(cleat_input(r.graph, "x", CLEAT_F32, 1, shape));
    expect_error(&r, CLEAT_ERR_ARGUMENT, "input 'x' is declared twice");
    open_rig(&r);
    assert_null(cleat_input(r.graph, "z", (cleat_dtype)99, 1, shape));
    expect_error(&r, CLEAT_ERR_ARGUMENT, "type 99");
    open_rig(&r);
    assert_null(cleat_input(r.graph, "z", CLEAT_F32, 2, negative));
    expect_error(&r, CLEAT_ERR_SHAPE, "dimension 1, -1");
    open_rig(&r);
    assert_null(cleat_input(r.graph, "z", CLEAT_F32, 2, huge));
    expect_error(&r, CLEAT_ERR_SHAPE, "'z'");
    open_rig(&r);
    assert_null(cleat_input(r.graph, "z", CLEAT_F32, 6, six));
    expect_error(&r, CLEAT_ERR_SHAPE, "rank 6");
}

static void test_inputs_of_operations(void **state) {
    rig r;
    (void)state;
    open_rig(&r);
    assert_null(tiny_affine(r.graph, NULL, NULL, 1, 0, TINY_FINE));
    expect_error(&r, CLEAT_ERR_ARGUMENT, "input 0 is NULL");
    open_rig(&r);
    assert_null(tiny_affine(r.graph, r.other_x, NULL, 1, 0, TINY_FINE));
    expect_error(&r, CLEAT_ERR_ARGUMENT, "'x', belongs to another graph");
}

static void test_marks(void **state) {
    rig r;
    (void)state;
    open_rig(&r);
    cleat_retain(r.graph, r.other_x);
    expect_error(&r, CLEAT_ERR_ARGUMENT, "cleat_retain: tensor 'x' belongs to another graph");
    open_rig(&r);
    cleat_require_grad(r.graph, r.y);
    expect_error(&r, CLEAT_ERR_ARGUMENT, "is not an input");
    open_rig(&r);
    cleat_require_grad(r.graph, r.x); /* y was computed without it */
    expect_error(&r, CLEAT_ERR_ARGUMENT, "before the first use");
}

static void test_losses(void **state) {
    const int64_t one = 1;
    rig r;
    (void)state;
    open_rig(&r);
    cleat_backward(r.graph, NULL, NULL);
    expect_error(&r, CLEAT_ERR_ARGUMENT, "the loss is NULL");
    open_rig(&r);
    cleat_backward(r.graph, r.y, NULL);
    expect_error(&r, CLEAT_ERR_SHAPE, "is f32 [8], but a loss is one number, f32 [1]");
    open_rig(&r);
    cleat_backward(r.graph, cleat_input(r.graph, "loss", CLEAT_F32, 1, &one), NULL);
    expect_error(&r, CLEAT_ERR_ARGUMENT, "depends on no parameter");
    open_rig(&r);
    cleat_backward(r.graph, r.other_x, NULL);
    expect_error(&r, CLEAT_ERR_ARGUMENT, "belongs to another graph");
}

static void test_plans(void **state) {
    cleat_error error = {0};
    cleat_exec *exec = NULL;
    cleat_graph *none = NULL;
    rig r;
    (void)state;
    open_rig(&r);
    says(cleat_exec_open(NULL, &r.graph, 1, &exec, &error), CLEAT_ERR_ARGUMENT, &error, "the device is NULL");
    says(cleat_exec_open(device, &none, 1, &exec, &error), CLEAT_ERR_ARGUMENT, &error, "graph 0 is NULL");
    says(cleat_exec_open(device, NULL, 0, &exec, &error), CLEAT_ERR_ARGUMENT, &error, "at least one graph");
    assert_null(exec);
    close_rig(&r);
}

/* --- on the device --- */

typedef struct running {
    rig rig;
    cleat_tensor *late;
    cleat_exec *exec;
} running;

static void open_running(running *it) {
    cleat_error error = {0};
    open_rig(&it->rig);
    cleat_retain(it->rig.graph, it->rig.y);
    it->late = tiny_affine(it->rig.graph, it->rig.y, NULL, 2, 0, TINY_FINE);
    tiny_affine(it->rig.other, it->rig.other_x, NULL, 2, 0, TINY_FINE);
    ok(cleat_exec_open(device, (cleat_graph *[]){it->rig.graph, it->rig.other}, 2, &it->exec, &error), &error);
}

static void close_running(running *it) {
    cleat_exec_destroy(it->exec);
    close_rig(&it->rig);
}

static void test_writes(void **state) {
    float values[N] = {0};
    cleat_error error = {0};
    running it;
    (void)state;
    open_running(&it);
    const rig *r = &it.rig;
    says(cleat_exec_write(it.exec, 0, NULL, values, sizeof values, &error), CLEAT_ERR_ARGUMENT, &error,
         "the tensor is NULL");
    says(cleat_exec_write(NULL, 0, r->x, values, sizeof values, &error), CLEAT_ERR_ARGUMENT, &error,
         "the exec is NULL");
    says(cleat_exec_write(it.exec, 0, r->x, NULL, sizeof values, &error), CLEAT_ERR_ARGUMENT, &error, "is NULL");
    says(cleat_exec_write(it.exec, 0, r->x, values, sizeof values - 4, &error), CLEAT_ERR_ARGUMENT, &error,
         "is f32 [8], 32 bytes, but the values have 28");
    says(cleat_exec_write(it.exec, 0, r->y, values, sizeof values, &error), CLEAT_ERR_ARGUMENT, &error,
         "is computed by graph 'first'");
    says(cleat_exec_write(it.exec, 1, r->x, values, sizeof values, &error), CLEAT_ERR_ARGUMENT, &error,
         "belongs to graph 'first', not to 'second'");
    says(cleat_exec_write(it.exec, 2, r->x, values, sizeof values, &error), CLEAT_ERR_ARGUMENT, &error,
         "graph 2 is out of range");
    ok(cleat_exec_write(it.exec, 0, r->x, values, sizeof values, &error), &error);
    close_running(&it);
}

static void test_reads(void **state) {
    float values[N], x[N] = {1, 2, 3};
    cleat_error error = {0};
    running it;
    (void)state;
    open_running(&it);
    const rig *r = &it.rig;
    says(cleat_exec_read(it.exec, 0, r->y, values, sizeof values, &error), CLEAT_ERR_ARGUMENT, &error, "has not run");
    ok(cleat_exec_write(it.exec, 0, r->x, x, sizeof x, &error), &error);
    ok(cleat_exec_run(it.exec, 0, &error), &error);
    ok(cleat_exec_read(it.exec, 0, r->y, values, sizeof values, &error), &error);
    assert_true(values[2] == 9);
    says(cleat_exec_read(it.exec, 0, r->y, values, 2 * sizeof values, &error), CLEAT_ERR_ARGUMENT, &error, "64 bytes");
    says(cleat_exec_read(it.exec, 0, it.late, values, sizeof values, &error), CLEAT_ERR_ARGUMENT, &error,
         "call cleat_retain");
    cleat_retain(r->graph, it.late); /* too late: the plan exists */
    says(cleat_exec_read(it.exec, 0, it.late, values, sizeof values, &error), CLEAT_ERR_ARGUMENT, &error,
         "before the plan is made");
    ok(cleat_exec_run(it.exec, 1, &error), &error);
    says(cleat_exec_read(it.exec, 0, r->y, values, sizeof values, &error), CLEAT_ERR_ARGUMENT, &error,
         "graph 'second' ran after 'first'");
    ok(cleat_exec_run(it.exec, 0, &error), &error);
    ok(cleat_exec_read(it.exec, 0, r->y, values, sizeof values, &error), &error);
    close_running(&it);
}

static void test_changes_after_the_plan(void **state) {
    float values[N] = {0};
    cleat_error error = {0};
    running it;
    (void)state;
    open_running(&it);
    rig *r = &it.rig;
    cleat_tensor *input = cleat_input(r->graph, "new", CLEAT_F32, 1, shape);
    cleat_tensor *param = cleat_param(r->graph, "new", 1, shape, (cleat_init){CLEAT_INIT_ZERO, 0});
    says(cleat_exec_write(it.exec, 0, input, values, sizeof values, &error), CLEAT_ERR_NOT_FOUND, &error,
         "no memory in graph 'first'");
    says(cleat_exec_write(it.exec, 0, param, values, sizeof values, &error), CLEAT_ERR_NOT_FOUND, &error, "'new'");
    ok(cleat_exec_run(it.exec, 0, &error), &error);
    assert_non_null(tiny_affine(r->graph, r->x, NULL, 1, 0, TINY_FINE));
    says(cleat_exec_run(it.exec, 0, &error), CLEAT_ERR_ARGUMENT, &error, "build a graph before its plan");
    close_running(&it);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_shapes),
        cmocka_unit_test(test_inputs_of_operations),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_plans),
        cmocka_unit_test(test_writes),
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_changes_after_the_plan),
    };
    device = tiny_open_device();
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    cleat_device_close(device);
    return failures;
}
