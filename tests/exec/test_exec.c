/* Plans bound to a device: allocation, execution, and error messages. */
/* ctest: device quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/memory.h"
#include "exec/exec.h"
#include "kept_programs.h"
#include "tiny.h"

enum { N = 1000, M = 10 };

static cleat_device *device;

/* Two graphs on one store: "a" is y = 3 x + bias; "b" is total += 2 x. */
typedef struct rig {
    cleat_store *store;
    cleat_graph *graphs[2];
    cleat_tensor *x[2], *bias, *y, *total, *constant;
    cleat_running_stats running;
    cleat_plan *plan;
} rig;

static void rig_open_with(rig *r, tiny_fault fault) {
    cleat_error error;
    const int64_t n = N, m = M;
    memset(r, 0, sizeof *r);
    assert_int_equal(cleat_store_create(&r->store, &error), CLEAT_OK);
    for (int i = 0; i < 2; ++i)
        assert_int_equal(cleat_graph_create(r->store, i ? "b" : "a", &r->graphs[i], &error), CLEAT_OK);
    for (int i = 0; i < 2; ++i) r->x[i] = cleat_input(r->graphs[i], "x", CLEAT_F32, 1, &n);
    r->bias = cleat_param(r->graphs[0], "bias", 1, &m, (cleat_init){CLEAT_INIT_ZERO, 0});
    r->y = tiny_affine(r->graphs[0], r->x[0], r->bias, 3, 0, fault);
    cleat_retain(r->graphs[0], r->y);
    r->constant = cleat_buffer(r->graphs[0], "constant", 1, &(int64_t){5}, -0.25f);
    r->total = cleat_state(r->graphs[1], "total", CLEAT_F32, 1, &n);
    r->running = cleat_running_statistics(r->graphs[1], "running", M);
    tiny_accumulate(r->graphs[1], tiny_affine(r->graphs[1], r->x[1], NULL, 2, 0, TINY_FINE), r->total);
    if (cleat_plan_create(r->graphs, 2, cleat_device_get_facts(device), &r->plan, &error)) fail_msg("%s", error.text);
}

static void rig_open(rig *r) {
    rig_open_with(r, TINY_FINE);
}

static void rig_close(rig *r) {
    cleat_plan_destroy(r->plan);
    for (int i = 0; i < 2; ++i) cleat_graph_destroy(r->graphs[i]);
    cleat_store_destroy(r->store);
}

static cleat_exec *create(const rig *r) {
    cleat_exec *exec = NULL;
    cleat_error error;
    if (cleat_exec_create(device, r->plan, &exec, &error)) fail_msg("%s", error.text);
    return exec;
}

static void fill(float *values, int n, float start) {
    for (int i = 0; i < n; ++i) values[i] = start + (float)i;
}

/* --- allocation --- */

static void test_planned_is_allocated(void **state) {
    rig r;
    (void)state;
    rig_open(&r);
    assert_int_equal(cleat_device_allocated(device), 0);
    cleat_exec *exec = create(&r);
    assert_true(cleat_plan_bytes(r.plan) > 0);
    assert_int_equal(cleat_device_allocated(device), cleat_plan_bytes(r.plan));
    cleat_exec_destroy(exec);
    assert_int_equal(cleat_device_allocated(device), 0);
    rig_close(&r);
}

static void test_persistent_tensors_start_at_zero(void **state) {
    float values[N];
    cleat_error error;
    rig r;
    (void)state;
    rig_open(&r);
    cleat_exec *exec = create(&r);
    fill(values, N, 1);
    ok(cleat_exec_read_unchecked(exec, 1, r.total, values, &error), &error);
    for (int i = 0; i < N; ++i) assert_true(values[i] == 0);
    fill(values, M, 1);
    ok(cleat_exec_read_unchecked(exec, 0, r.bias, values, &error), &error);
    for (int i = 0; i < M; ++i) assert_true(values[i] == 0);
    cleat_exec_destroy(exec);
    rig_close(&r);
}

static void test_buffers_start_as_declared(void **state) {
    float values[2 * M];
    cleat_error error;
    rig r;
    (void)state;
    rig_open(&r);
    cleat_exec *exec = create(&r);
    ok(cleat_exec_read_unchecked(exec, 1, r.constant, values, &error), &error);
    for (int i = 0; i < 5; ++i) assert_true(values[i] == -0.25f);
    ok(cleat_exec_read_unchecked(exec, 0, r.running.mean, values, &error), &error);
    for (int i = 0; i < M; ++i) assert_true(values[i] == 0.0f);
    ok(cleat_exec_read_unchecked(exec, 0, r.running.var, values, &error), &error);
    for (int i = 0; i < M; ++i) assert_true(values[i] == 1.0f);
    cleat_exec_destroy(exec);
    rig_close(&r);
}

/* --- execution --- */

static void test_write_run_read(void **state) {
    float x[N], y[N], bias[M];
    cleat_error error;
    rig r;
    (void)state;
    rig_open(&r);
    cleat_exec *exec = create(&r);
    fill(x, N, -7);
    fill(bias, M, 100);
    ok(cleat_exec_write_unchecked(exec, 0, r.x[0], x, &error), &error);
    /* persistent: accessible through any graph */
    ok(cleat_exec_write_unchecked(exec, 1, r.bias, bias, &error), &error);
    ok(cleat_exec_run(exec, 0, &error), &error);
    ok(cleat_exec_read_unchecked(exec, 0, r.y, y, &error), &error);
    for (int i = 0; i < N; ++i) assert_true(y[i] == 3 * x[i] + bias[i % M]);
    ok(cleat_exec_finish(exec, &error), &error);
    cleat_exec_destroy(exec);
    rig_close(&r);
}

static void test_runs_accumulate(void **state) {
    float x[N], total[N];
    cleat_error error;
    rig r;
    (void)state;
    rig_open(&r);
    cleat_exec *exec = create(&r);
    fill(x, N, 5);
    ok(cleat_exec_write_unchecked(exec, 1, r.x[1], x, &error), &error);
    for (int i = 0; i < 4; ++i) ok(cleat_exec_run(exec, 1, &error), &error);
    ok(cleat_exec_read_unchecked(exec, 0, r.total, total, &error), &error);
    for (int i = 0; i < N; ++i) assert_true(total[i] == 8 * x[i]);
    cleat_exec_destroy(exec);
    rig_close(&r);
}

static void test_some_nodes(void **state) {
    float x[N], total[N];
    cleat_error error;
    rig r;
    (void)state;
    rig_open(&r);
    cleat_exec *exec = create(&r);
    fill(x, N, 5);
    ok(cleat_exec_write_unchecked(exec, 1, r.x[1], x, &error), &error);
    ok(cleat_exec_run_nodes(exec, 1, 0, 1, &error), &error);
    ok(cleat_exec_read_unchecked(exec, 1, r.total, total, &error), &error);
    for (int i = 0; i < N; ++i) assert_true(total[i] == 0);
    ok(cleat_exec_run_nodes(exec, 1, 1, 2, &error), &error);
    ok(cleat_exec_read_unchecked(exec, 1, r.total, total, &error), &error);
    for (int i = 0; i < N; ++i) assert_true(total[i] == 2 * x[i]);
    assert_int_equal(cleat_exec_run_nodes(exec, 1, 1, 3, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_exec_run_nodes(exec, 1, 2, 1, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_exec_run(exec, 2, &error), CLEAT_ERR_ARGUMENT);
    cleat_exec_destroy(exec);
    rig_close(&r);
}

static void test_tensor_of_another_graph(void **state) {
    float values[N];
    cleat_error error;
    rig r;
    (void)state;
    rig_open(&r);
    cleat_exec *exec = create(&r);
    assert_int_equal(cleat_exec_read_unchecked(exec, 1, r.y, values, &error), CLEAT_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, r.y->name));
    assert_int_equal(cleat_exec_write_unchecked(exec, 7, r.bias, values, &error), CLEAT_ERR_ARGUMENT);
    cleat_exec_destroy(exec);
    rig_close(&r);
}

/* --- failures --- */

static void expect_run_fails(tiny_fault fault, cleat_status status, const char *word, const char *other) {
    cleat_error error;
    rig r;
    rig_open_with(&r, fault);
    cleat_exec *exec = create(&r);
    assert_int_equal(cleat_exec_run(exec, 0, &error), status);
    if (!strstr(error.text, word)) fail_msg("'%s' is not in: %s", word, error.text);
    if (!strstr(error.text, other)) fail_msg("'%s' is not in: %s", other, error.text);
    ok(cleat_exec_run(exec, 1, &error), &error); /* the other graph is unaffected */
    ok(cleat_exec_finish(exec, &error), &error);
    cleat_exec_destroy(exec);
    assert_int_equal(cleat_device_allocated(device), 0);
    rig_close(&r);
}

static void test_build_failures(void **state) {
    (void)state;
    expect_run_fails(TINY_MISSING_FILE, CLEAT_ERR_NOT_FOUND, "tiny_affine", "no_such_file.cl");
    expect_run_fails(TINY_BROKEN_SOURCE, CLEAT_ERR_BUILD, "tiny_affine", "this_name_is_not_declared");
}

/* A caller can wait until all programs are built; a run then waits for no program. */
static void test_built_before_a_run(void **state) {
    cleat_error error;
    rig r;
    (void)state;
    rig_open(&r);
    cleat_exec *exec = create(&r);
    ok(cleat_exec_build(exec, &error), &error);
    cleat_build_stats before = cleat_exec_build_stats(exec);
    assert_true(before.programs > 0 && before.waited_seconds > 0);
    assert_int_equal(before.built + before.loaded, before.programs);
    ok(cleat_exec_run(exec, 0, &error), &error);
    ok(cleat_exec_finish(exec, &error), &error);
    cleat_build_stats after = cleat_exec_build_stats(exec);
    assert_int_equal(after.built, before.built);
    cleat_exec_destroy(exec);
    rig_close(&r);
    rig_open_with(&r, TINY_BROKEN_SOURCE);
    exec = create(&r);
    assert_int_equal(cleat_exec_build(exec, &error), CLEAT_ERR_BUILD);
    assert_non_null(strstr(error.text, "this_name_is_not_declared"));
    cleat_exec_destroy(exec);
    assert_int_equal(cleat_device_allocated(device), 0);
    rig_close(&r);
}

static void test_kernels_that_fail_are_named(void **state) {
    (void)state;
    expect_run_fails(TINY_MISSING_KERNEL, CLEAT_ERR_DEVICE, "tiny_nothing", "CL_INVALID_KERNEL_NAME");
    expect_run_fails(TINY_FEW_ARGUMENTS, CLEAT_ERR_ARGUMENT, "tiny_affine", "10 arguments");
    if (cleat_device_get_facts(device)->vendor == CLEAT_VENDOR_POCL)
        expect_run_fails(TINY_SWAPPED_ARGUMENTS, CLEAT_ERR_ARGUMENT, "tiny_affine",
                         "argument 8 is 'n', but the launch names it 'n_bias'");
    expect_run_fails(TINY_HUGE_GROUP, CLEAT_ERR_DEVICE, "tiny_affine", "CL_INVALID_WORK_");
}

/* A kernel failure on the device appears in the event status of its run; a user event stands in for it.
 * tests/virtual_card/test_lost.sh tests the name of the kernel. */
static void fail_last_run(cleat_exec *exec, size_t graph) {
    cl_int code = CL_SUCCESS;
    if (exec->graphs[graph].ended) clReleaseEvent(exec->graphs[graph].ended);
    exec->graphs[graph].ended = clCreateUserEvent(device->context, &code);
    assert_int_equal(clSetUserEventStatus(exec->graphs[graph].ended, CL_OUT_OF_RESOURCES), CL_SUCCESS);
}

static void test_failure_during_a_run_is_named_once(void **state) {
    cleat_error error;
    rig r;
    (void)state;
    rig_open(&r);
    cleat_exec *exec = create(&r);
    ok(cleat_exec_run(exec, 1, &error), &error);
    ok(cleat_exec_finish(exec, &error), &error);
    fail_last_run(exec, 1);
    ok(cleat_exec_run(exec, 1, &error), &error);
    assert_int_equal(cleat_exec_finish(exec, &error), CLEAT_ERR_DEVICE_MEMORY);
    assert_non_null(strstr(error.text, "a kernel of graph 'b' (CLEAT_LAUNCH_BLOCKING=1 names it)"));
    assert_non_null(strstr(error.text, "CL_OUT_OF_RESOURCES"));
    assert_int_equal(error.cl_code, CL_OUT_OF_RESOURCES);
    ok(cleat_exec_finish(exec, &error), &error);
    fail_last_run(exec, 1);
    /* if a read fails as well, the failed run is reported first */
    assert_int_not_equal(cleat_exec_read_unchecked(exec, 1, r.total, NULL, &error), CLEAT_OK);
    assert_non_null(strstr(error.text, "a kernel of graph 'b' (CLEAT_LAUNCH_BLOCKING=1 names it)"));
    assert_int_not_equal(cleat_exec_read_unchecked(exec, 1, r.total, NULL, &error), CLEAT_OK);
    assert_non_null(strstr(error.text, "reading tensor 'total': CL_INVALID_VALUE"));
    float total[N];
    fail_last_run(exec, 1);
    assert_int_equal(cleat_exec_read_unchecked(exec, 1, r.total, total, &error),
                     CLEAT_ERR_DEVICE_MEMORY); /* a successful read reports the failure of the run */
    assert_non_null(strstr(error.text, "a kernel of graph 'b' (CLEAT_LAUNCH_BLOCKING=1 names it)"));
    ok(cleat_exec_read_unchecked(exec, 1, r.total, total, &error), &error);
    cleat_exec_destroy(exec);
    rig_close(&r);
}

static void test_no_device_memory(void **state) {
    cleat_exec *exec = NULL;
    cleat_error error;
    rig r;
    long n = 1;
    (void)state;
    rig_open(&r);
    for (;; ++n) {
        device->fail_buffer = n;
        if (cleat_exec_create(device, r.plan, &exec, &error) == CLEAT_OK) break;
        assert_int_equal(error.status, CLEAT_ERR_DEVICE_MEMORY);
        assert_null(exec);
        assert_int_equal(cleat_device_allocated(device), 0);
    }
    device->fail_buffer = 0;
    assert_true(n > 4); /* parameters, states, three input slots, arena */
    cleat_exec_destroy(exec);
    rig_close(&r);
}

static void test_no_host_memory(void **state) {
    cleat_exec *exec = NULL;
    cleat_staging *staging = NULL;
    cleat_error error;
    rig r;
    (void)state;
    rig_open(&r);
    for (long n = 1;; ++n) {
        cleat_fail_allocation(n);
        cleat_status status = cleat_exec_create(device, r.plan, &exec, &error);
        if (!status) {
            status = cleat_exec_build(exec, &error);
            if (!status) break;
            cleat_exec_destroy(exec);
            exec = NULL;
        }
        assert_int_equal(status, CLEAT_ERR_MEMORY);
        assert_null(exec);
        assert_int_equal(cleat_device_allocated(device), 0);
    }
    cleat_fail_allocation(1);
    assert_int_equal(cleat_staging_create(exec, 64, true, &staging, &error), CLEAT_ERR_MEMORY);
    cleat_fail_allocation(0);
    cleat_exec_destroy(exec);
    rig_close(&r);
}

static void test_marks_become_complete_in_order(void **state) {
    enum { MARKS = 300 }; /* more than a device records */
    cleat_error error;
    rig r;
    (void)state;
    rig_open(&r);
    cleat_exec *exec = create(&r);
    const int64_t start = cleat_device_marked(device);
    for (int64_t i = 1, before = start; i <= MARKS; ++i) {
        ok(cleat_exec_run(exec, 1, &error), &error);
        cleat_device_mark(device, start + i);
        int64_t now = cleat_device_marked(device);
        assert_true(now >= before && now <= start + i);
        before = now;
    }
    ok(cleat_exec_finish(exec, &error), &error);
    assert_int_equal(cleat_device_marked(device), start + MARKS);
    assert_true(cleat_device_is_idle(device));
    cleat_exec_destroy(exec);
    rig_close(&r);
}

int main(void) {
    kept_programs_keep_names();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planned_is_allocated),
        cmocka_unit_test(test_persistent_tensors_start_at_zero),
        cmocka_unit_test(test_buffers_start_as_declared),
        cmocka_unit_test(test_write_run_read),
        cmocka_unit_test(test_runs_accumulate),
        cmocka_unit_test(test_some_nodes),
        cmocka_unit_test(test_marks_become_complete_in_order),
        cmocka_unit_test(test_tensor_of_another_graph),
        cmocka_unit_test(test_build_failures),
        cmocka_unit_test(test_built_before_a_run),
        cmocka_unit_test(test_kernels_that_fail_are_named),
        cmocka_unit_test(test_failure_during_a_run_is_named_once),
        cmocka_unit_test(test_no_device_memory),
        cmocka_unit_test(test_no_host_memory),
    };
    device = tiny_open_device();
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    cleat_device_close(device);
    return failures;
}
