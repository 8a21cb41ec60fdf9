/* The driver of the virtual card: rejected calls, execution times of commands, reported properties. Uses the
 * OpenCL loader like every program; ctest sets OCL_ICD_VENDORS. */
/* ctest: quick */
#include "driver_rig.h"

#include <string.h>

#define GIB ((size_t)1 << 30)

/* --- the device --- */

static void it_says_what_the_card_s_driver_says(void **state) {
    rig *r = *state;
    char text[1024];
    cl_ulong memory, largest, local;
    cl_uint align;
    clGetDeviceInfo(r->device, CL_DEVICE_NAME, sizeof text, text, NULL);
    assert_string_equal(text, "Tesla T4");
    clGetDeviceInfo(r->device, CL_DEVICE_EXTENSIONS, sizeof text, text, NULL);
    assert_null(strstr(text, "cl_khr_fp16"));
    assert_null(strstr(text, "subgroup"));
    assert_non_null(strstr(text, "cl_khr_fp64"));
    clGetDeviceInfo(r->device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof memory, &memory, NULL);
    clGetDeviceInfo(r->device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof largest, &largest, NULL);
    clGetDeviceInfo(r->device, CL_DEVICE_LOCAL_MEM_SIZE, sizeof local, &local, NULL);
    clGetDeviceInfo(r->device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof align, &align, NULL);
    assert_int_equal(largest, memory / 4);
    assert_int_equal(local, 48 * 1024);
    assert_int_equal(align, 512 * 8);
    assert_int_equal(clGetDeviceInfo(r->device, CL_DEVICE_NAME, 3, text, NULL), CL_INVALID_VALUE);
    assert_int_equal(clGetDeviceInfo(r->device, 0x7777, sizeof text, text, NULL), CL_INVALID_VALUE);
}

/* --- memory --- */

static cl_int buffer_error(const rig *r, cl_mem_flags flags, size_t bytes, void *host) {
    cl_int code = CL_SUCCESS;
    cl_mem buffer = clCreateBuffer(r->context, flags, bytes, host, &code);
    if (buffer) clReleaseMemObject(buffer);
    return code;
}

static void buffers_that_the_card_cannot_hold_are_refused(void **state) {
    rig *r = *state;
    cl_mem buffers[8];
    cl_int code = CL_SUCCESS;
    int count = 0;
    char byte = 0;
    assert_int_equal(buffer_error(r, 0, 0, NULL), CL_INVALID_BUFFER_SIZE);
    assert_int_equal(buffer_error(r, 0, 4 * GIB, NULL), CL_MEM_OBJECT_ALLOCATION_FAILURE);
    assert_int_equal(buffer_error(r, 0, 3 * GIB, NULL), CL_SUCCESS);
    assert_int_equal(buffer_error(r, CL_MEM_COPY_HOST_PTR, 1, NULL), CL_INVALID_HOST_PTR);
    assert_int_equal(buffer_error(r, 0, 1, &byte), CL_INVALID_HOST_PTR);
    assert_int_equal(buffer_error(r, CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 1, NULL), CL_INVALID_VALUE);
    for (; count < 8 && code == CL_SUCCESS; ++count)
        buffers[count] = clCreateBuffer(r->context, 0, 3 * GIB, NULL, &code);
    assert_int_equal(code, CL_MEM_OBJECT_ALLOCATION_FAILURE);
    assert_int_equal(count, 5); /* 14.8 GiB */
    for (int i = 0; i < 4; ++i) assert_int_equal(clReleaseMemObject(buffers[i]), CL_SUCCESS);
}

static void large_buffers_cost_nothing_until_they_are_touched(void **state) {
    rig *r = *state;
    char byte = 7;
    cl_mem buffer = rig_buffer(r, 0, 7 * GIB / 2);
    size_t last = 7 * GIB / 2 - 1;
    assert_int_equal(clEnqueueWriteBuffer(r->queue, buffer, CL_TRUE, last, 1, &byte, 0, NULL, NULL), CL_SUCCESS);
    byte = 0;
    assert_int_equal(clEnqueueReadBuffer(r->queue, buffer, CL_TRUE, last, 1, &byte, 0, NULL, NULL), CL_SUCCESS);
    assert_int_equal(byte, 7);
    clReleaseMemObject(buffer);
}

static void what_was_never_written_is_nan(void **state) {
    rig *r = *state;
    float values[2] = {0, 0};
    cl_mem buffer = rig_buffer(r, 0, 4096);
    clEnqueueReadBuffer(r->queue, buffer, CL_TRUE, 1024, sizeof values, values, 0, NULL, NULL);
    assert_true(values[0] != values[0] && values[1] != values[1]);
    clReleaseMemObject(buffer);
}

static cl_int part_error(cl_mem buffer, cl_mem_flags flags, size_t origin, size_t size) {
    const cl_buffer_region region = {origin, size};
    cl_int code = CL_SUCCESS;
    cl_mem part = clCreateSubBuffer(buffer, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    if (part) clReleaseMemObject(part);
    return code;
}

static void sub_buffers_are_checked(void **state) {
    rig *r = *state;
    cl_mem buffer = rig_buffer(r, CL_MEM_READ_ONLY, 4096);
    assert_int_equal(part_error(buffer, 0, 256, 256), CL_MISALIGNED_SUB_BUFFER_OFFSET);
    assert_int_equal(part_error(buffer, 0, 512, 4096 - 512), CL_SUCCESS);
    assert_int_equal(part_error(buffer, 0, 512, 4096), CL_INVALID_VALUE);
    assert_int_equal(part_error(buffer, 0, 512, 0), CL_INVALID_BUFFER_SIZE);
    assert_int_equal(part_error(buffer, CL_MEM_READ_WRITE, 512, 512), CL_INVALID_VALUE);
    clReleaseMemObject(buffer);
}

static void a_sub_buffer_keeps_the_memory_of_its_buffer(void **state) {
    rig *r = *state;
    const cl_buffer_region region = {512, 512};
    cl_mem buffer = rig_buffer(r, 0, 4096);
    cl_int code;
    char byte = 5, back = 0;
    cl_mem part = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    assert_int_equal(code, CL_SUCCESS);
    clReleaseMemObject(buffer);
    clEnqueueWriteBuffer(r->queue, part, CL_TRUE, 0, 1, &byte, 0, NULL, NULL);
    clEnqueueReadBuffer(r->queue, part, CL_TRUE, 0, 1, &back, 0, NULL, NULL);
    assert_int_equal(back, 5);
    clReleaseMemObject(part);
}

/* --- transfers --- */

static void transfers_are_checked(void **state) {
    rig *r = *state;
    char host[64] = {0}, pattern[3] = {1, 2, 3};
    cl_mem a = rig_buffer(r, 0, 4096), b = rig_buffer(r, CL_MEM_HOST_NO_ACCESS, 4096);
    assert_int_equal(clEnqueueReadBuffer(r->queue, a, CL_TRUE, 4090, 8, host, 0, NULL, NULL), CL_INVALID_VALUE);
    assert_int_equal(clEnqueueReadBuffer(r->queue, a, CL_TRUE, (size_t)-4, 8, host, 0, NULL, NULL), CL_INVALID_VALUE);
    assert_int_equal(clEnqueueReadBuffer(r->queue, a, CL_TRUE, 0, 0, host, 0, NULL, NULL), CL_INVALID_VALUE);
    assert_int_equal(clEnqueueWriteBuffer(r->queue, a, CL_TRUE, 0, 8, NULL, 0, NULL, NULL), CL_INVALID_VALUE);
    assert_int_equal(clEnqueueReadBuffer(r->queue, b, CL_TRUE, 0, 8, host, 0, NULL, NULL), CL_INVALID_OPERATION);
    assert_int_equal(clEnqueueCopyBuffer(r->queue, a, a, 0, 4, 8, 0, NULL, NULL), CL_MEM_COPY_OVERLAP);
    assert_int_equal(clEnqueueCopyBuffer(r->queue, a, a, 0, 8, 8, 0, NULL, NULL), CL_SUCCESS);
    assert_int_equal(clEnqueueFillBuffer(r->queue, a, pattern, 3, 0, 6, 0, NULL, NULL), CL_INVALID_VALUE);
    assert_int_equal(clEnqueueFillBuffer(r->queue, a, pattern, 2, 1, 6, 0, NULL, NULL), CL_INVALID_VALUE);
    assert_int_equal(clEnqueueFillBuffer(r->queue, a, pattern, 2, 0, 5, 0, NULL, NULL), CL_INVALID_VALUE);
    assert_int_equal(clEnqueueFillBuffer(r->queue, a, pattern, 2, 0, 6, 0, NULL, NULL), CL_SUCCESS);
    clEnqueueReadBuffer(r->queue, a, CL_TRUE, 0, 6, host, 0, NULL, NULL);
    assert_memory_equal(host, "\1\2\1\2\1\2", 6);
    clReleaseMemObject(a);
    clReleaseMemObject(b);
}

static void fills_of_two_gib_are_refused(void **state) {
    rig *r = *state;
    cl_int zero = 0;
    cl_mem buffer = rig_buffer(r, 0, 3 * GIB);
    assert_int_equal(clEnqueueFillBuffer(r->queue, buffer, &zero, 4, 0, 2 * GIB - 4, 0, NULL, NULL), CL_SUCCESS);
    assert_int_equal(clEnqueueFillBuffer(r->queue, buffer, &zero, 4, 0, 2 * GIB, 0, NULL, NULL), CL_OUT_OF_RESOURCES);
    rig_expect_fault(r, "clEnqueueFillBuffer");
    clReleaseMemObject(buffer); /* the first fill has not run yet */
    assert_int_equal(clEnqueueMarkerWithWaitList(r->queue, 0, NULL, NULL), CL_SUCCESS);
}

static void mappings_are_copies_and_must_be_paired(void **state) {
    rig *r = *state;
    cl_int code, back = 0;
    cl_mem buffer = rig_buffer(r, CL_MEM_ALLOC_HOST_PTR, 4096);
    cl_int *host =
        clEnqueueMapBuffer(r->queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 4, 8, 0, NULL, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    host[0] = 17;
    clEnqueueReadBuffer(r->queue, buffer, CL_TRUE, 4, 4, &back, 0, NULL, NULL);
    assert_int_not_equal(back, 17);
    assert_int_equal(clEnqueueUnmapMemObject(r->queue, buffer, host + 1, 0, NULL, NULL), CL_INVALID_VALUE);
    assert_int_equal(clEnqueueUnmapMemObject(r->queue, buffer, host, 0, NULL, NULL), CL_SUCCESS);
    assert_int_equal(clEnqueueUnmapMemObject(r->queue, buffer, host, 0, NULL, NULL), CL_INVALID_VALUE);
    clEnqueueReadBuffer(r->queue, buffer, CL_TRUE, 4, 4, &back, 0, NULL, NULL);
    assert_int_equal(back, 17);
    clEnqueueMapBuffer(r->queue, buffer, CL_TRUE, CL_MAP_READ, 4092, 8, 0, NULL, NULL, &code);
    assert_int_equal(code, CL_INVALID_VALUE);
    clEnqueueMapBuffer(r->queue, buffer, CL_TRUE, CL_MAP_READ, 0, 8, 0, NULL, NULL, &code);
    clReleaseMemObject(buffer);
    rig_expect_fault(r, "while it was mapped");
}

/* --- objects --- */

static void released_objects_must_not_be_used(void **state) {
    rig *r = *state;
    cl_event event;
    cl_mem buffer = rig_buffer(r, 0, 16);
    assert_int_equal(clRetainMemObject(buffer), CL_SUCCESS);
    assert_int_equal(clReleaseMemObject(buffer), CL_SUCCESS);
    assert_int_equal(clReleaseMemObject(buffer), CL_SUCCESS);
    assert_int_equal(clReleaseMemObject(buffer), CL_INVALID_MEM_OBJECT);
    rig_expect_fault(r, "clReleaseMemObject: the buffer was released before");
    clEnqueueMarkerWithWaitList(r->queue, 0, NULL, &event);
    clReleaseEvent(event);
    assert_int_equal(clWaitForEvents(1, &event), CL_INVALID_EVENT);
    rig_expect_fault(r, "clWaitForEvents: the event was released before");
    assert_int_equal(clFlush((cl_command_queue)(void *)r->context), CL_INVALID_COMMAND_QUEUE);
}

static void leak_an_event(rig *r) {
    cl_event event;
    clEnqueueMarkerWithWaitList(r->queue, 0, NULL, &event);
    rig_close(r);
}

static void leave_the_rig_open(rig *r) {
    (void)r;
}

static void leaks_fail_a_strict_process(void **state) {
    rig *r = *state;
    assert_int_equal(rig_exit_code(r, leave_the_rig_open, true), 86);
    assert_int_equal(rig_exit_code(r, leak_an_event, true), 86);
    assert_int_equal(rig_exit_code(r, leak_an_event, false), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        RIG_TEST(it_says_what_the_card_s_driver_says),
        RIG_TEST(buffers_that_the_card_cannot_hold_are_refused),
        RIG_TEST(large_buffers_cost_nothing_until_they_are_touched),
        RIG_TEST(what_was_never_written_is_nan),
        RIG_TEST(sub_buffers_are_checked),
        RIG_TEST(a_sub_buffer_keeps_the_memory_of_its_buffer),
        RIG_TEST(transfers_are_checked),
        RIG_TEST(fills_of_two_gib_are_refused),
        RIG_TEST(mappings_are_copies_and_must_be_paired),
        RIG_TEST(released_objects_must_not_be_used),
        RIG_TEST(leaks_fail_a_strict_process),
    };
    return rig_has_compiler() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
