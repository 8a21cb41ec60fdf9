/* The finite check: the tensor that it names and its counts, in every storage type and both device shapes. */
/* ctest: device */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cleat/ops.h"
#include "core/kernel_shape.h"
#include "core/memory.h"
#include "device/device.h"
#include "exec/copy.h"
#include "exec/finite_check.h"
#include "platform/files.h"

static cleat_device *device;

static void ok(cleat_status status, const cleat_error *error) {
    if (status) fail_msg("%s", error->text);
}

/* y = x as `storage`, z = relu(y) + relu(y): y and the tensors after it have that type. weight and z give
 * `sum` in f32. Only the positive part of `hidden` has an effect. */
typedef struct rig {
    int64_t n;
    float *values; /* [n] values of x */
    cleat_store *store;
    cleat_graph *graph;
    cleat_tensor *x, *y, *weight, *sum, *hidden;
    cleat_plan *plan;
    cleat_exec *exec;
    cleat_finite_check *check;
    cleat_anomaly anomaly;
} rig;

static void rig_open(rig *r, int64_t n, cleat_dtype storage, bool cpu) {
    cleat_error error = {0};
    cleat_device_facts facts = *cleat_device_get_facts(device);
    cleat_kernel_shape(&facts, cpu);
    *r = (rig){.n = n, .values = cleat_alloc((size_t)n, sizeof(float))};
    ok(cleat_store_create(&r->store, &error), &error);
    ok(cleat_graph_create(r->store, "watched", &r->graph, &error), &error);
    r->x = cleat_input(r->graph, "x", CLEAT_F32, 1, &n);
    r->weight = cleat_param(r->graph, "weight", 1, &n, (cleat_init){CLEAT_INIT_ZERO, 0});
    r->y = storage == CLEAT_F32 ? cleat_add(r->graph, r->x, r->x) : cleat_cast(r->graph, r->x, storage);
    cleat_tensor *z = cleat_relu(r->graph, r->y);
    z = cleat_add(r->graph, z, z);
    r->sum = cleat_add(r->graph, storage == CLEAT_F32 ? z : cleat_cast(r->graph, z, CLEAT_F32), r->weight);
    cleat_retain(r->graph, r->sum);
    r->hidden = cleat_input(r->graph, "hidden", CLEAT_F32, 1, &n);
    cleat_retain(r->graph, cleat_relu(r->graph, r->hidden));
    ok(cleat_graph_status(r->graph, &error), &error);
    ok(cleat_plan_create(&r->graph, 1, &facts, &r->plan, &error), &error);
    ok(cleat_exec_create(device, r->plan, &r->exec, &error), &error);
    ok(cleat_finite_check_create(r->exec, &r->check, &error), &error);
    float *zeros = cleat_alloc((size_t)n, sizeof *zeros);
    ok(cleat_exec_write_unchecked(r->exec, 0, r->hidden, zeros, &error), &error);
    cleat_free(zeros);
    for (int64_t i = 0; i < n; ++i) r->values[i] = (float)(i * 7919 % 2039) / 64.0f - 15.0f;
}

static void rig_close(rig *r) {
    cleat_finite_check_destroy(r->check);
    assert_int_equal(cleat_device_allocated(device), cleat_plan_bytes(r->plan));
    cleat_exec_destroy(r->exec);
    assert_int_equal(cleat_device_allocated(device), 0);
    cleat_plan_destroy(r->plan);
    cleat_graph_destroy(r->graph);
    cleat_store_destroy(r->store);
    cleat_free(r->values);
}

static void run(rig *r) {
    cleat_error error = {0};
    ok(cleat_exec_write_unchecked(r->exec, 0, r->x, r->values, &error), &error);
    ok(cleat_finite_check_run(r->check, 0, 0, cleat_graph_nodes(r->graph), &r->anomaly, &error), &error);
}

/* Asserts that the scan of x is correct. */
static void assert_is_scan_of_x(const rig *r, const cleat_scan *scan) {
    cleat_scan want = {.elements = r->n, .first = -1};
    for (int64_t i = 0; i < r->n; ++i)
        if (isfinite(r->values[i])) {
            want.largest = fmaxf(want.largest, fabsf(r->values[i]));
        } else {
            if (want.bad++ == 0) want.first = i;
        }
    assert_int_equal(scan->elements, want.elements);
    assert_int_equal(scan->bad, want.bad);
    assert_true(scan->largest == want.largest);
    if (want.bad == 0) return;
    assert_int_equal(scan->first, want.first);
    assert_memory_equal(&scan->value, &r->values[want.first], sizeof scan->value);
}

static void assert_names_x(rig *r) {
    run(r);
    assert_ptr_equal(r->anomaly.source, r->x);
    assert_ptr_equal(r->anomaly.tensor, r->y);
    assert_ptr_equal(r->anomaly.node, r->y->producer);
    assert_is_scan_of_x(r, &r->anomaly.source_scan);
    assert_is_scan_of_x(r, &r->anomaly.read[0]);
    assert_int_equal(r->anomaly.scan.bad, r->anomaly.source_scan.bad);
    assert_int_equal(r->anomaly.scan.first, r->anomaly.source_scan.first);
}

/* A single bad value at either end or in between, then many. */
static void counts_are_right(int64_t n, cleat_dtype storage, bool cpu) {
    rig r;
    rig_open(&r, n, storage, cpu);
    run(&r);
    assert_null(r.anomaly.tensor);
    const int64_t places[] = {0, n / 2, n - 1};
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3; ++i) {
        float before = r.values[places[i]];
        r.values[places[i]] = bad[i];
        assert_names_x(&r);
        r.values[places[i]] = before;
    }
    for (int64_t i = n / 3; i < n; i += 3) r.values[i] = bad[i % 3];
    assert_names_x(&r);
    rig_close(&r);
}

static void every_type_shape_and_size(void **state) {
    static const int64_t sizes[] = {1, 5, 16, 33, 1000, 70001};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
        for (int type = CLEAT_F32; type <= CLEAT_BF16; ++type)
            for (int cpu = 0; cpu < 2; ++cpu) counts_are_right(sizes[i], (cleat_dtype)type, cpu);
}

/* 70000 is finite in f32 but not in f16, and twice 3e38 is not finite in f32. */
static void overflow_is_the_op_that_did_it(void **state) {
    rig r;
    (void)state;
    for (int cpu = 0; cpu < 2; ++cpu)
        for (int type = CLEAT_F32; type <= CLEAT_BF16; ++type) {
            rig_open(&r, 100, (cleat_dtype)type, cpu);
            r.values[42] = type == CLEAT_F16 ? -70000.0f : -3e38f;
            r.values[43] = 3000.0f;
            run(&r);
            if (type == CLEAT_BF16) { /* bf16 holds it; its double is z, and relu(-3e38) is 0 */
                assert_null(r.anomaly.tensor);
            } else {
                assert_ptr_equal(r.anomaly.tensor, r.y);
                assert_null(r.anomaly.source);
                assert_int_equal(r.anomaly.read[0].bad, 0);
                assert_true(r.anomaly.read[0].largest == fabsf(r.values[42]));
                assert_int_equal(r.anomaly.scan.bad, 1);
                assert_int_equal(r.anomaly.scan.first, 42);
                assert_true(r.anomaly.scan.value == -INFINITY);
                assert_true(r.anomaly.scan.largest == (type == CLEAT_F32 ? 6000.0f : 3000.0f));
            }
            rig_close(&r);
        }
}

/* The bad tensor belongs to a later node: the check names that tensor, not the first node. */
static void first_bad_tensor_is_named(void **state) {
    rig r;
    (void)state;
    rig_open(&r, 100, CLEAT_BF16, true);
    r.values[7] = 3e38f;
    run(&r);
    assert_non_null(r.anomaly.node);
    assert_string_equal(r.anomaly.node->op->name, "add");
    assert_int_equal(r.anomaly.node->index, 2);
    assert_int_equal(r.anomaly.scan.first, 7);
    rig_close(&r);
}

static void parameter_is_found_before_a_node_runs(void **state) {
    rig r;
    cleat_error error = {0};
    float weight[50] = {0}, sum[50];
    (void)state;
    rig_open(&r, 50, CLEAT_F16, true);
    run(&r);
    assert_null(r.anomaly.tensor);
    weight[49] = INFINITY;
    ok(cleat_exec_write_unchecked(r.exec, 0, r.weight, weight, &error), &error);
    r.values[0] = NAN;
    run(&r);
    assert_ptr_equal(r.anomaly.tensor, r.weight);
    assert_null(r.anomaly.node);
    assert_int_equal(r.anomaly.scan.first, 49);
    ok(cleat_exec_read_unchecked(r.exec, 0, r.sum, sum, &error), &error); /* of the previous run */
    for (int i = 0; i < 50; ++i) assert_true(isfinite(sum[i]));
    rig_close(&r);
}

/* Minus infinity before a relu is harmless, plus infinity is not. */
static void input_is_found_where_it_does_harm(void **state) {
    rig r;
    cleat_error error = {0};
    float hidden[50] = {0};
    (void)state;
    rig_open(&r, 50, CLEAT_F16, true);
    hidden[3] = -INFINITY;
    ok(cleat_exec_write_unchecked(r.exec, 0, r.hidden, hidden, &error), &error);
    run(&r);
    assert_null(r.anomaly.tensor);
    hidden[3] = INFINITY;
    ok(cleat_exec_write_unchecked(r.exec, 0, r.hidden, hidden, &error), &error);
    run(&r);
    assert_ptr_equal(r.anomaly.source, r.hidden);
    assert_int_equal(r.anomaly.source_scan.first, 3);
    rig_close(&r);
}

static void failures_leave_nothing_behind(void **state) {
    rig r;
    cleat_error error = {0};
    cleat_finite_check *check = NULL;
    (void)state;
    rig_open(&r, 10, CLEAT_F32, true);
    int64_t before = cleat_device_allocated(device);
    device->fail_buffer = 1;
    assert_int_equal(cleat_finite_check_create(r.exec, &check, &error), CLEAT_ERR_DEVICE_MEMORY);
    assert_null(check);
    assert_int_equal(cleat_device_allocated(device), before);
    device->fail_launch = 2;
    ok(cleat_exec_write_unchecked(r.exec, 0, r.x, r.values, &error), &error);
    assert_int_equal(cleat_finite_check_run(r.check, 0, 0, cleat_graph_nodes(r.graph), &r.anomaly, &error),
                     CLEAT_ERR_DEVICE_MEMORY);
    assert_non_null(strstr(error.text, "relu"));
    device->fail_launch = 0;
    run(&r);
    assert_null(r.anomaly.tensor);
    rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_shape_and_size),         cmocka_unit_test(overflow_is_the_op_that_did_it),
        cmocka_unit_test(first_bad_tensor_is_named),         cmocka_unit_test(parameter_is_found_before_a_node_runs),
        cmocka_unit_test(input_is_found_where_it_does_harm), cmocka_unit_test(failures_leave_nothing_behind),
    };
    const char *selector = getenv("CLEAT_TEST_DEVICE");
    cleat_error error = {0};
    cleat_status status = cleat_device_open(selector ? selector : "auto", &device, &error);
    if (status) {
        fprintf(stderr, "%s\n", error.text);
        return status == CLEAT_ERR_NO_DEVICE ? 77 : 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cleat_device_close(device);
    return failed;
}
