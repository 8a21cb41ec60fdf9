/* The recorder: every command is recorded once, in order, with times that fit the host's; results do not change. */
/* ctest: device quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/clock.h"
#include "device/recorder.h"
#include "exec/exec.h"
#include "tiny.h"

enum { N = 4096, M = 24, SLOW = 20, BATCHES = 5 };

static cleat_device *device;

/* total += 2 x, in three kernels; and a product by CLBlast. */
typedef struct rig {
    cleat_store *store;
    cleat_graph *graph;
    cleat_tensor *x, *total;
    cleat_exec *exec;
    cleat_staging *staging;
} rig;

static int open_rig(void **state) {
    static rig r;
    cleat_error error;
    const int64_t elements = N, matrix[] = {M, M};
    memset(&r, 0, sizeof r);
    ok(cleat_store_create(&r.store, &error), &error);
    ok(cleat_graph_create(r.store, "g", &r.graph, &error), &error);
    r.x = cleat_input(r.graph, "x", CLEAT_F32, 1, &elements);
    cleat_tensor *a = cleat_input(r.graph, "a", CLEAT_F32, 2, matrix);
    r.total = cleat_state(r.graph, "total", CLEAT_F32, 1, &elements);
    tiny_accumulate(r.graph, tiny_affine(r.graph, r.x, NULL, 2, SLOW, TINY_FINE), r.total);
    cleat_retain(r.graph, tiny_product(r.graph, a, a, true));
    ok(cleat_exec_open(device, &r.graph, 1, &r.exec, &error), &error);
    ok(cleat_staging_create(r.exec, cleat_exec_input_bytes(r.exec, 0), true, &r.staging, &error), &error);
    *state = &r;
    return 0;
}

static int close_rig(void **state) {
    rig *r = *state;
    cleat_staging_destroy(r->staging);
    cleat_exec_destroy(r->exec);
    cleat_graph_destroy(r->graph);
    cleat_store_destroy(r->store);
    return cleat_device_allocated(device) == 0 && !device->recorder ? 0 : -1;
}

static void run_batch(rig *r, float value) {
    cleat_error error;
    ok(cleat_staging_wait(r->staging, &error), &error);
    char *data = cleat_staging_data(r->staging);
    memset(data, 0, (size_t)cleat_exec_input_bytes(r->exec, 0));
    float *x = (float *)(void *)(data + cleat_exec_input_offset(r->exec, 0, r->x));
    for (int i = 0; i < N; ++i) x[i] = value;
    ok(cleat_exec_upload(r->exec, 0, r->staging, &error), &error);
    ok(cleat_exec_run(r->exec, 0, &error), &error);
}

static void expect_total(rig *r, float expected) {
    static float total[N];
    cleat_error error;
    ok(cleat_exec_read_unchecked(r->exec, 0, r->total, total, &error), &error);
    for (int i = 0; i < N; ++i)
        if (!(total[i] == expected)) fail_msg("total[%d] is %g, not %g", i, (double)total[i], (double)expected);
}

static void write_total(rig *r, float value) {
    static float total[N];
    cleat_error error;
    for (int i = 0; i < N; ++i) total[i] = value;
    ok(cleat_exec_write_unchecked(r->exec, 0, r->total, total, &error), &error);
}

/* --- tests --- */

static void expect_kind(const cleat_command *command, cleat_command_kind kind) {
    if (command->kind != kind) fail_msg("a command of kind %d, not %d", (int)command->kind, (int)kind);
}

/* Runs before, during and after recording: the sum shows that no run was lost or repeated. */
static void test_all_commands_once(void **state) {
    rig *r = *state;
    cleat_error error;
    cleat_recorder recorder = {0};
    static const cleat_command_kind kinds[] = {CLEAT_COMMAND_UPLOAD, CLEAT_COMMAND_COPY,   CLEAT_COMMAND_KERNEL,
                                               CLEAT_COMMAND_KERNEL, CLEAT_COMMAND_KERNEL, CLEAT_COMMAND_SGEMM};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    run_batch(r, 1);
    ok(cleat_recorder_start(device, &recorder, &error), &error);
    for (int b = 0; b < BATCHES; ++b) {
        cleat_recorder_set_batch(device, b);
        run_batch(r, 1);
    }
    expect_total(r, 2 * (BATCHES + 1));
    write_total(r, 100);
    ok(cleat_recorder_stop(device, &error), &error);
    run_batch(r, 1);
    expect_total(r, 102);
    cleat_recorder_read(&recorder);
    assert_int_equal(recorder.count, BATCHES * KINDS + 2);
    assert_int_equal(recorder.unknown, 0);
    assert_int_equal(recorder.lost, 0);
    for (size_t i = 0; i < BATCHES * KINDS; ++i) {
        expect_kind(&recorder.commands[i], kinds[i % KINDS]);
        assert_int_equal(recorder.commands[i].batch, i % KINDS ? -1 : (int64_t)(i / KINDS));
    }
    const cleat_launch *launch = recorder.commands[2].subject;
    assert_string_equal(launch->node->op->name, "tiny_affine");
    expect_kind(&recorder.commands[recorder.count - 2], CLEAT_COMMAND_READ);
    expect_kind(&recorder.commands[recorder.count - 1], CLEAT_COMMAND_WRITE);
    assert_int_equal(recorder.commands[recorder.count - 2].bytes, N * 4);
    cleat_recorder_clear(&recorder);
}

/* Commands of the compute queue do not overlap, and each ends between its enqueueing and the end of the
 * host's wait. */
static void test_times(void **state) {
    rig *r = *state;
    cleat_error error;
    cleat_recorder recorder = {0};
    cleat_clock_pair first, last;
    ok(cleat_recorder_start(device, &recorder, &error), &error);
    ok(cleat_clock_compare(device, &first, &error), &error);
    for (int b = 0; b < BATCHES; ++b) run_batch(r, 1);
    ok(cleat_exec_finish(r->exec, &error), &error);
    double done = cleat_seconds();
    ok(cleat_clock_compare(device, &last, &error), &error);
    ok(cleat_recorder_stop(device, &error), &error);
    cleat_recorder_read(&recorder);
    const double doubt = first.error + last.error + 1e-9 * (double)cleat_clock_resolution(device);
    assert_true(first.error > 0 && first.error < 1 && last.device > first.device);
    assert_int_equal(recorder.unknown, 0);
    uint64_t ended = 0;
    for (size_t i = 0; i < recorder.count; ++i) {
        const cleat_command *command = &recorder.commands[i];
        double end = first.host + 1e-9 * ((double)command->ended - (double)first.device);
        assert_true(command->called <= command->returned);
        if (!(end + doubt >= command->called && end - doubt <= done))
            fail_msg("command %zu ends at %.6f, was enqueued at %.6f, and all were done at %.6f", i, end,
                     command->called, done);
        if (command->kind == CLEAT_COMMAND_UPLOAD) continue;
        assert_true(command->started >= ended);
        assert_true(command->ended >= command->started);
        ended = command->ended;
    }
    cleat_recorder_clear(&recorder);
}

/* Without a recorder the queues record no times. */
static void test_queues_are_restored(void **state) {
    (void)state;
    cleat_error error;
    cleat_recorder recorder = {0};
    cl_command_queue_properties properties = 0;
    ok(cleat_recorder_start(device, &recorder, &error), &error);
    clGetCommandQueueInfo(device->transfer, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL);
    assert_true(properties & CL_QUEUE_PROFILING_ENABLE);
    ok(cleat_recorder_stop(device, &error), &error);
    clGetCommandQueueInfo(device->compute, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL);
    assert_false(properties & CL_QUEUE_PROFILING_ENABLE);
    clGetCommandQueueInfo(device->transfer, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL);
    assert_false(properties & CL_QUEUE_PROFILING_ENABLE);
}

/* A reused recorder begins empty. A device without such queues keeps its own. */
static void test_again_and_refused(void **state) {
    rig *r = *state;
    cleat_error error;
    cleat_recorder recorder = {0};
    ok(cleat_recorder_start(device, &recorder, &error), &error);
    run_batch(r, 1);
    ok(cleat_recorder_stop(device, &error), &error);
    assert_true(recorder.count > 0);
    ok(cleat_recorder_start(device, &recorder, &error), &error);
    ok(cleat_recorder_stop(device, &error), &error);
    assert_int_equal(recorder.count, 0);
    device->fail_timed_queue = true;
    assert_int_equal(cleat_recorder_start(device, &recorder, &error), CLEAT_ERR_DEVICE);
    device->fail_timed_queue = false;
    assert_false(cleat_is_recorded(device));
    run_batch(r, 1);
    expect_total(r, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_all_commands_once, open_rig, close_rig),
                                       cmocka_unit_test_setup_teardown(test_times, open_rig, close_rig),
                                       cmocka_unit_test_setup_teardown(test_queues_are_restored, open_rig, close_rig),
                                       cmocka_unit_test_setup_teardown(test_again_and_refused, open_rig, close_rig)};
    device = tiny_open_device();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cleat_device_close(device);
    return failed;
}
