/* Commands on the virtual card run as late as OpenCL allows, and never without a flush. */
/* ctest: quick */
#include "driver_rig.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

static cl_int status_of(cl_event event) {
    cl_int status = 99;
    assert_int_equal(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL),
                     CL_SUCCESS);
    return status;
}

static cl_event mark(cl_command_queue queue, cl_event after) {
    cl_event event = NULL;
    assert_int_equal(clEnqueueMarkerWithWaitList(queue, after ? 1 : 0, after ? &after : NULL, &event), CL_SUCCESS);
    return event;
}

static void commands_without_a_flush_never_run(void **state) {
    rig *r = *state;
    cl_event event = mark(r->queue, NULL);
    for (int i = 0; i < 100; ++i) assert_int_equal(status_of(event), CL_QUEUED);
    clFinish(r->other);
    assert_int_equal(status_of(event), CL_QUEUED);
    assert_int_equal(clFlush(r->queue), CL_SUCCESS);
    int polls = 0;
    while (status_of(event) != CL_COMPLETE) assert_true(++polls < 10);
    assert_true(polls > 0);
    clReleaseEvent(event);
}

static void host_memory_is_read_and_written_late(void **state) {
    rig *r = *state;
    cl_int value = 1, back = 0;
    cl_event event;
    cl_mem buffer = rig_buffer(r, 0, 4);
    clEnqueueWriteBuffer(r->queue, buffer, CL_FALSE, 0, 4, &value, 0, NULL, NULL);
    clFlush(r->queue);
    value = 2; /* too early */
    clEnqueueReadBuffer(r->queue, buffer, CL_FALSE, 0, 4, &back, 0, NULL, &event);
    clFlush(r->queue);
    assert_int_equal(back, 0);
    clWaitForEvents(1, &event);
    assert_int_equal(back, 2);
    clReleaseEvent(event);
    clReleaseMemObject(buffer);
}

static void queues_wait_for_each_other_s_events(void **state) {
    rig *r = *state;
    cl_int value = 5, back = 0;
    cl_event written;
    cl_mem buffer = rig_buffer(r, 0, 4);
    clEnqueueWriteBuffer(r->other, buffer, CL_FALSE, 0, 4, &value, 0, NULL, &written);
    clFlush(r->other);
    clEnqueueReadBuffer(r->queue, buffer, CL_TRUE, 0, 4, &back, 1, &written, NULL);
    assert_int_equal(back, 5);
    assert_int_equal(status_of(written), CL_COMPLETE);
    clReleaseEvent(written);
    clReleaseMemObject(buffer);
}

static void waiting_for_a_queue_that_nobody_flushes_is_a_deadlock(void **state) {
    rig *r = *state;
    cl_event first = mark(r->other, NULL), second = mark(r->queue, first);
    assert_int_equal(clFinish(r->queue), CL_SUCCESS);
    rig_expect_fault(r, "deadlock");
    clReleaseEvent(first);
    clReleaseEvent(second);
}

static void *flush_later(void *queue) {
    usleep(200 * 1000);
    clFlush(queue);
    return NULL;
}

static void another_thread_may_flush_in_time(void **state) {
    rig *r = *state;
    pthread_t thread;
    cl_event first = mark(r->other, NULL), second = mark(r->queue, first);
    assert_int_equal(pthread_create(&thread, NULL, flush_later, r->other), 0);
    assert_int_equal(clWaitForEvents(1, &second), CL_SUCCESS);
    pthread_join(thread, NULL);
    clReleaseEvent(first);
    clReleaseEvent(second);
}

static cl_ulong time_of(cl_event event, cl_profiling_info what) {
    cl_ulong value = 0;
    assert_int_equal(clGetEventProfilingInfo(event, what, sizeof value, &value, NULL), CL_SUCCESS);
    return value;
}

static void times_are_in_order(void **state) {
    rig *r = *state;
    cl_ulong value;
    cl_event event = mark(r->queue, NULL), later = mark(r->queue, NULL), other = mark(r->other, NULL);
    assert_int_equal(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof value, &value, NULL),
                     CL_PROFILING_INFO_NOT_AVAILABLE);
    clFinish(r->queue);
    clFinish(r->other);
    assert_true(time_of(event, CL_PROFILING_COMMAND_QUEUED) <= time_of(event, CL_PROFILING_COMMAND_SUBMIT));
    assert_true(time_of(event, CL_PROFILING_COMMAND_SUBMIT) <= time_of(event, CL_PROFILING_COMMAND_START));
    assert_true(time_of(event, CL_PROFILING_COMMAND_START) <= time_of(event, CL_PROFILING_COMMAND_END));
    assert_true(time_of(event, CL_PROFILING_COMMAND_END) <= time_of(later, CL_PROFILING_COMMAND_START));
    assert_int_equal(clGetEventProfilingInfo(other, CL_PROFILING_COMMAND_END, sizeof value, &value, NULL),
                     CL_PROFILING_INFO_NOT_AVAILABLE); /* its queue has no profiling */
    clReleaseEvent(event);
    clReleaseEvent(later);
    clReleaseEvent(other);
}

static void user_events_hold_commands(void **state) {
    rig *r = *state;
    cl_int code;
    cl_event user = clCreateUserEvent(r->context, &code), event = mark(r->queue, user);
    assert_int_equal(code, CL_SUCCESS);
    clFlush(r->queue);
    for (int i = 0; i < 10; ++i) assert_int_equal(status_of(event), CL_SUBMITTED);
    assert_int_equal(clSetUserEventStatus(user, CL_COMPLETE), CL_SUCCESS);
    assert_int_equal(clSetUserEventStatus(user, CL_COMPLETE), CL_INVALID_OPERATION);
    assert_int_equal(clWaitForEvents(1, &event), CL_SUCCESS);
    clReleaseEvent(user);
    clReleaseEvent(event);
}

static void failed_events_fail_those_that_wait_for_them(void **state) {
    rig *r = *state;
    cl_int code;
    cl_event user = clCreateUserEvent(r->context, &code), event = mark(r->queue, user);
    assert_int_equal(clSetUserEventStatus(user, -5), CL_SUCCESS);
    assert_int_equal(clWaitForEvents(1, &event), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    assert_true(status_of(event) < 0);
    clReleaseEvent(user);
    clReleaseEvent(event);
}

static void wait_lists_are_checked(void **state) {
    rig *r = *state;
    cl_event event = mark(r->queue, NULL), none = NULL;
    assert_int_equal(clEnqueueMarkerWithWaitList(r->queue, 1, NULL, NULL), CL_INVALID_EVENT_WAIT_LIST);
    assert_int_equal(clEnqueueMarkerWithWaitList(r->queue, 0, &event, NULL), CL_INVALID_EVENT_WAIT_LIST);
    assert_int_equal(clEnqueueMarkerWithWaitList(r->queue, 1, &none, NULL), CL_INVALID_EVENT_WAIT_LIST);
    assert_int_equal(clWaitForEvents(0, NULL), CL_INVALID_VALUE);
    clReleaseEvent(event);
}

static void objects_may_be_released_before_their_commands_run(void **state) {
    rig *r = *state;
    cl_int value = 3, back = 0, code;
    cl_command_queue queue = clCreateCommandQueue(r->context, r->device, 0, &code);
    cl_mem from = rig_buffer(r, 0, 4), to = rig_buffer(r, 0, 4);
    cl_event event;
    clEnqueueWriteBuffer(queue, from, CL_FALSE, 0, 4, &value, 0, NULL, NULL);
    clEnqueueCopyBuffer(queue, from, to, 0, 0, 4, 0, NULL, &event);
    clReleaseMemObject(from);
    clReleaseCommandQueue(queue);
    clEnqueueReadBuffer(r->queue, to, CL_TRUE, 0, 4, &back, 1, &event, NULL);
    assert_int_equal(back, 3);
    clReleaseEvent(event);
    clReleaseMemObject(to);
}

/* --- threads of the host --- */

enum { THREADS = 4, ROUNDS = 6, VALUES = 200 };

/* Writes, adds and reads back with its own queue and buffers. Returns false on failure. */
static bool add_on_the_card(rig *r, cl_command_queue queue, cl_kernel kernel, cl_int first) {
    cl_int values[VALUES], back[VALUES] = {0}, code;
    size_t global = VALUES, local = 50;
    for (int i = 0; i < VALUES; ++i) values[i] = first + i;
    cl_mem buffer = clCreateBuffer(r->context, 0, sizeof values, NULL, &code);
    if (code != CL_SUCCESS) return false;
    cl_event written = NULL;
    bool good =
        clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, sizeof values, values, 0, NULL, &written) == CL_SUCCESS;
    good = good && clSetKernelArg(kernel, 0, sizeof buffer, &buffer) == CL_SUCCESS;
    good = good && clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &local, 1, &written, NULL) == CL_SUCCESS;
    good = good && clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof back, back, 0, NULL, NULL) == CL_SUCCESS;
    for (int i = 0; i < VALUES; ++i) good = good && back[i] == values[i] + 7;
    return (!written || clReleaseEvent(written) == CL_SUCCESS) && clReleaseMemObject(buffer) == CL_SUCCESS && good;
}

static void *work(void *rig_of_all) { /* no assertions: they are only allowed in the test's thread */
    rig *r = rig_of_all;
    static const char *source = "__kernel void run(__global int *x) { x[get_global_id(0)] += 7; }\n";
    cl_int code;
    cl_command_queue queue = clCreateCommandQueue(r->context, r->device, 0, &code);
    cl_program program = clCreateProgramWithSource(r->context, 1, &source, NULL, &code);
    bool good = clBuildProgram(program, 1, &r->device, "", NULL, NULL) == CL_SUCCESS;
    cl_kernel kernel = good ? clCreateKernel(program, "run", &code) : NULL;
    for (int i = 0; i < ROUNDS && kernel; ++i) good = good && add_on_the_card(r, queue, kernel, 1000 * i);
    if (kernel) clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    return good ? NULL : r;
}

static void threads_may_work_at_the_same_time(void **state) {
    rig *r = *state;
    pthread_t threads[THREADS];
    void *failed[THREADS];
    for (int i = 0; i < THREADS; ++i) assert_int_equal(pthread_create(&threads[i], NULL, work, r), 0);
    for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], &failed[i]);
    for (int i = 0; i < THREADS; ++i) assert_null(failed[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        RIG_TEST(commands_without_a_flush_never_run),
        RIG_TEST(host_memory_is_read_and_written_late),
        RIG_TEST(queues_wait_for_each_other_s_events),
        RIG_TEST(waiting_for_a_queue_that_nobody_flushes_is_a_deadlock),
        RIG_TEST(another_thread_may_flush_in_time),
        RIG_TEST(times_are_in_order),
        RIG_TEST(user_events_hold_commands),
        RIG_TEST(failed_events_fail_those_that_wait_for_them),
        RIG_TEST(wait_lists_are_checked),
        RIG_TEST(objects_may_be_released_before_their_commands_run),
        RIG_TEST(threads_may_work_at_the_same_time),
    };
    return rig_has_compiler() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
