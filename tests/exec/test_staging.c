/* Uploads through staging buffers: contents, order, and refusals. */
/* ctest: device quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "exec/exec.h"
#include "platform/threads.h"
#include "tiny.h"

enum { MOST = 20000, GRAPHS = 3, BATCHES = 30, SLOW = 20 };

static cleat_device *device;
static int n = MOST; /* elements of an input */

/* Graphs that share a total. Each adds its factor times its input, slowly enough for transfers to overtake
 * it. */
typedef struct rig {
    cleat_store *store;
    cleat_graph *graphs[GRAPHS];
    cleat_tensor *head[GRAPHS], *x[GRAPHS], *total;
    cleat_plan *plan;
    cleat_exec *exec;
} rig;

static int open_rig(void **state) {
    static rig r;
    cleat_error error;
    const int64_t elements = n, one = 1;
    memset(&r, 0, sizeof r);
    ok(cleat_store_create(&r.store, &error), &error);
    for (int i = 0; i < GRAPHS; ++i) {
        char name[] = {'g', (char)('0' + i), 0};
        ok(cleat_graph_create(r.store, name, &r.graphs[i], &error), &error);
        r.head[i] = cleat_input(r.graphs[i], "head", CLEAT_I32, 1, &one);
        r.x[i] = cleat_input(r.graphs[i], "x", CLEAT_F32, 1, &elements);
        r.total = cleat_state(r.graphs[i], "total", CLEAT_F32, 1, &elements);
        tiny_accumulate(r.graphs[i], tiny_affine(r.graphs[i], r.x[i], NULL, (float)(i + 1), SLOW, TINY_FINE), r.total);
    }
    ok(cleat_plan_create(r.graphs, GRAPHS, cleat_device_get_facts(device), &r.plan, &error), &error);
    ok(cleat_exec_create(device, r.plan, &r.exec, &error), &error);
    *state = &r;
    return 0;
}

static int close_rig(void **state) {
    rig *r = *state;
    cleat_exec_destroy(r->exec);
    cleat_plan_destroy(r->plan);
    for (int i = 0; i < GRAPHS; ++i) cleat_graph_destroy(r->graphs[i]);
    cleat_store_destroy(r->store);
    return cleat_device_allocated(device) == 0 ? 0 : -1;
}

static cleat_staging *new_staging(rig *r) {
    cleat_staging *staging = NULL;
    cleat_error error;
    ok(cleat_staging_create(r->exec, cleat_exec_input_bytes(r->exec, 0), true, &staging, &error), &error);
    return staging;
}

/* Every element of batch b is b + 1, so the sum reveals a mixture of two batches. */
static void fill_batch(const rig *r, int graph, cleat_staging *staging, int batch) {
    float *x =
        (float *)((char *)cleat_staging_data(staging) + cleat_exec_input_offset(r->exec, (size_t)graph, r->x[graph]));
    for (int i = 0; i < n; ++i) x[i] = (float)(batch + 1);
}

static void expect_total(rig *r, float expected) {
    static float total[MOST];
    cleat_error error;
    ok(cleat_exec_read_unchecked(r->exec, 0, r->total, total, &error), &error);
    for (int i = 0; i < n; ++i)
        if (!(total[i] == expected)) fail_msg("total[%d] is %g, not %g", i, total[i], expected);
    ok(cleat_exec_finish(r->exec, &error), &error);
}

/* --- order --- */

static void test_one_upload_one_run(void **state) {
    rig *r = *state;
    cleat_error error;
    cleat_staging *staging = new_staging(r);
    fill_batch(r, 0, staging, 6);
    ok(cleat_exec_upload(r->exec, 0, staging, &error), &error);
    ok(cleat_exec_run(r->exec, 0, &error), &error);
    expect_total(r, 7);
    ok(cleat_exec_run(r->exec, 0, &error), &error); /* the inputs persist */
    expect_total(r, 14);
    cleat_staging_destroy(staging);
}

static void test_batches_do_not_mix(void **state) {
    rig *r = *state;
    cleat_error error;
    cleat_staging *staging[2] = {new_staging(r), new_staging(r)};
    float expected = 0;
    for (int b = 0; b < BATCHES; ++b) {
        int graph = b % GRAPHS;
        cleat_staging *now = staging[b % 2];
        ok(cleat_staging_wait(now, &error), &error);
        fill_batch(r, graph, now, b);
        ok(cleat_exec_upload(r->exec, (size_t)graph, now, &error), &error);
        ok(cleat_exec_run(r->exec, (size_t)graph, &error), &error);
        expected += (float)((graph + 1) * (b + 1));
    }
    expect_total(r, expected);
    for (int i = 0; i < 2; ++i) cleat_staging_destroy(staging[i]);
}

/* The next batch is transferred, for the same or another graph, before the run of the current one is
 * enqueued. */
static void test_upload_ahead(void **state) {
    rig *r = *state;
    cleat_error error;
    cleat_staging *staging[2] = {new_staging(r), new_staging(r)};
    float expected = 0;
    fill_batch(r, 0, staging[0], 0);
    ok(cleat_exec_upload(r->exec, 0, staging[0], &error), &error);
    for (int b = 0; b < BATCHES; ++b) {
        int graph = b % GRAPHS, next = (b + 1) % GRAPHS;
        cleat_staging *ahead = staging[(b + 1) % 2];
        ok(cleat_staging_wait(ahead, &error), &error);
        fill_batch(r, next, ahead, b + 1);
        ok(cleat_exec_upload(r->exec, (size_t)next, ahead, &error), &error);
        ok(cleat_exec_run(r->exec, (size_t)graph, &error), &error);
        expected += (float)((graph + 1) * (b + 1));
    }
    expect_total(r, expected);
    for (int i = 0; i < 2; ++i) cleat_staging_destroy(staging[i]);
}

/* A gate in the transfer queue blocks the transfer; the run, enqueued meanwhile, must not start before it. */
static void test_run_waits_for_its_upload(void **state) {
    rig *r = *state;
    cleat_error error;
    cl_int code = CL_SUCCESS;
    /* its clFlush waits for the gate */
    if (cleat_device_get_facts(device)->vendor == CLEAT_VENDOR_OCLGRIND) skip();
    cleat_staging *staging = new_staging(r);
    cl_event gate = clCreateUserEvent(device->context, &code);
    assert_int_equal(clEnqueueBarrierWithWaitList(device->transfer, 1, &gate, NULL), CL_SUCCESS);
    fill_batch(r, 0, staging, 6);
    ok(cleat_exec_upload(r->exec, 0, staging, &error), &error);
    ok(cleat_exec_run(r->exec, 0, &error), &error);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    assert_int_equal(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    expect_total(r, 7);
    clReleaseEvent(gate);
    cleat_staging_destroy(staging);
}

/* --- refusals --- */

static void test_second_upload_is_refused(void **state) {
    rig *r = *state;
    cleat_error error;
    cleat_staging *staging = new_staging(r);
    ok(cleat_exec_upload(r->exec, 0, staging, &error), &error);
    assert_int_equal(cleat_exec_upload(r->exec, 0, staging, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "g0"));
    ok(cleat_exec_upload(r->exec, 1, staging, &error), &error);
    /* both slots are pending */
    assert_int_equal(cleat_exec_upload(r->exec, 2, staging, &error), CLEAT_ERR_ARGUMENT);
    ok(cleat_exec_run(r->exec, 1, &error), &error);
    ok(cleat_exec_upload(r->exec, 2, staging, &error), &error);
    cleat_staging_destroy(staging);
}

static void test_small_staging_is_refused(void **state) {
    rig *r = *state;
    cleat_error error;
    cleat_staging *staging = NULL;
    assert_int_equal(cleat_staging_create(r->exec, 0, true, &staging, &error), CLEAT_ERR_ARGUMENT);
    ok(cleat_staging_create(r->exec, 4, false, &staging, &error), &error);
    assert_int_equal(cleat_exec_upload(r->exec, 0, staging, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_exec_upload(r->exec, GRAPHS, staging, &error), CLEAT_ERR_ARGUMENT);
    cleat_staging_destroy(staging);
}

static void test_layout_of_inputs(void **state) {
    rig *r = *state;
    int64_t head = cleat_exec_input_offset(r->exec, 0, r->head[0]), x = cleat_exec_input_offset(r->exec, 0, r->x[0]);
    assert_int_equal(head, 0);
    assert_int_equal(cleat_exec_input_offset(r->exec, 1, r->x[0]), -1);
    assert_int_equal(cleat_exec_input_offset(r->exec, GRAPHS, r->x[0]), -1);
    assert_int_equal(cleat_exec_input_offset(r->exec, 0, r->total), -1);
    assert_true(x >= 4 && x % cleat_device_get_facts(device)->alignment == 0);
    assert_true(cleat_exec_input_bytes(r->exec, 0) >= x + (int64_t)n * 4);
}

/* --- threads --- */

/* A loader fills buffers that the trainer uploads; each passes a buffer to the other through its `full` flag. */
typedef struct belt {
    rig *r;
    cleat_staging *staging[2];
    atomic_int full[2];
} belt;

static void *load(void *user) {
    belt *b = user;
    for (int batch = 0; batch < BATCHES; ++batch) {
        int i = batch % 2;
        while (atomic_load(&b->full[i])) sched_yield();
        if (cleat_staging_wait(b->staging[i], NULL)) return b;
        fill_batch(b->r, 0, b->staging[i], batch);
        atomic_store(&b->full[i], 1);
    }
    return NULL;
}

static void test_loader_thread(void **state) {
    rig *r = *state;
    cleat_error error;
    belt b = {.r = r, .staging = {new_staging(r), new_staging(r)}};
    pthread_t loader;
    void *failed = NULL;
    assert_int_equal(pthread_create(&loader, NULL, load, &b), 0);
    for (int batch = 0; batch < BATCHES; ++batch) {
        while (!atomic_load(&b.full[batch % 2])) sched_yield();
        ok(cleat_exec_upload(r->exec, 0, b.staging[batch % 2], &error), &error);
        atomic_store(&b.full[batch % 2], 0);
        ok(cleat_exec_run(r->exec, 0, &error), &error);
    }
    pthread_join(loader, &failed);
    assert_null(failed);
    expect_total(r, BATCHES * (BATCHES + 1) / 2);
    for (int i = 0; i < 2; ++i) cleat_staging_destroy(b.staging[i]);
}

int main(void) {
#define RIG_TEST(test) cmocka_unit_test_setup_teardown(test, open_rig, close_rig)
    const struct CMUnitTest tests[] = {
        RIG_TEST(test_one_upload_one_run),
        RIG_TEST(test_batches_do_not_mix),
        RIG_TEST(test_upload_ahead),
        RIG_TEST(test_run_waits_for_its_upload),
        RIG_TEST(test_second_upload_is_refused),
        RIG_TEST(test_small_staging_is_refused),
        RIG_TEST(test_layout_of_inputs),
        RIG_TEST(test_loader_thread),
    };
    device = tiny_open_device();
    /* Oclgrind is 100 times slower */
    if (cleat_device_get_facts(device)->vendor == CLEAT_VENDOR_OCLGRIND) n = 50;
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    cleat_device_close(device);
    return failures;
}
