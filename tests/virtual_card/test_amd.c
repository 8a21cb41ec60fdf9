/* Differences of the driver of AMD's virtual cards from NVIDIA's: reported properties, rejected and accepted
 * calls. */
/* ctest: quick */
#include "driver_rig.h"

#include <stdlib.h>
#include <string.h>

static bool is_mi210(void) {
    return strcmp(getenv("CLEAT_VIRTUAL_CARD"), "mi210") == 0;
}

static void the_device_is_amds(void **state) {
    rig *r = *state;
    char text[2000] = "";
    size_t free_kib[2] = {0, 0}, most = 0;
    cl_ulong local = 0, memory = 0;
    clGetPlatformInfo(r->platform, CL_PLATFORM_NAME, sizeof text, text, NULL);
    assert_string_equal(text, "AMD Accelerated Parallel Processing");
    clGetDeviceInfo(r->device, CL_DEVICE_NAME, sizeof text, text, NULL);
    assert_string_equal(text, is_mi210() ? "gfx90a:sramecc+:xnack-" : "gfx1100");
    clGetDeviceInfo(r->device, CL_DEVICE_EXTENSIONS, sizeof text, text, NULL);
    assert_non_null(strstr(text, "cl_khr_fp16"));
    assert_null(strstr(text, "cl_nv_"));
    clGetDeviceInfo(r->device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof most, &most, NULL);
    assert_int_equal(most, 256);
    clGetDeviceInfo(r->device, CL_DEVICE_LOCAL_MEM_SIZE, sizeof local, &local, NULL);
    assert_int_equal(local, 65536);
    clGetDeviceInfo(r->device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof memory, &memory, NULL);
    cl_mem buffer = rig_buffer(r, 0, 1 << 20);
    assert_int_equal(clGetDeviceInfo(r->device, 0x4039, sizeof free_kib, free_kib, NULL), CL_SUCCESS);
    assert_int_equal(free_kib[0], memory / 1024 - 1024); /* CL_DEVICE_GLOBAL_FREE_MEMORY_AMD */
    clReleaseMemObject(buffer);
}

static void queues_are_in_order(void **state) {
    rig *r = *state;
    cl_int code = CL_SUCCESS;
    assert_null(clCreateCommandQueue(r->context, r->device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code));
    assert_int_equal(code, CL_INVALID_QUEUE_PROPERTIES);
}

static void expect_build(rig *r, const char *source, const char *options, cl_int expected) {
    cl_program program;
    cl_int code = rig_build(r, source, options, &program);
    if (code != expected) fail_msg("%s with '%s': %d", source, options, (int)code);
    clReleaseProgram(program);
}

static void programs_may_use_half(void **state) {
    rig *r = *state;
    static const char half_source[] = "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n"
                                      "__kernel void run(__global half *x) { half y = x[0]; x[1] = y * y; }";
    expect_build(r, half_source, "", CL_SUCCESS);
    expect_build(r, half_source, "-cl-std=CL2.0 -cl-fast-relaxed-math", CL_SUCCESS);
    expect_build(r, half_source, "-cl-nv-verbose", CL_INVALID_BUILD_OPTIONS);
    expect_build(r, "#ifndef __AMDGCN__\n#error\n#endif\n#ifndef cl_khr_fp16\n#error\n#endif\n", "", CL_SUCCESS);
    expect_build(r, "__kernel void run(int x) { x = nothing; }", "", CL_BUILD_PROGRAM_FAILURE);
}

/* A three-dimensional group, all kinds of ids and sizes, a local memory argument, a barrier, a function call. */
static void a_kernel_computes(void **state) {
    rig *r = *state;
    static const char source[] =
        "__attribute__((noinline)) float twice(float x) { return 2.0f * x; }\n"
        "__kernel void run(__global const float *a, __global float *b, __local float *c, const float d) {\n"
        "    size_t i = get_global_id(0) + get_global_size(0) * (get_global_id(1) + get_global_size(1) * "
        "get_global_id(2));\n"
        "    size_t l = get_local_id(0) + get_local_size(0) * (get_local_id(1) + get_local_size(1) * "
        "get_local_id(2));\n"
        "    c[l] = a[i];\n"
        "    barrier(CLK_LOCAL_MEM_FENCE);\n"
        "    b[i] = twice(c[l ^ 1]) + d + 1000.0f * get_group_id(0) + 10000.0f * get_num_groups(2);\n"
        "}\n";
    enum { N = 8 * 6 * 12 };
    static float values[N], back[N];
    const size_t global[3] = {8, 6, 12}, local[3] = {4, 3, 6};
    const float d = 0.25f;
    cl_kernel kernel = rig_kernel(r, source);
    cl_mem a = rig_buffer(r, CL_MEM_READ_ONLY, sizeof values), b = rig_buffer(r, 0, sizeof values);
    for (int i = 0; i < N; ++i) values[i] = (float)i;
    clEnqueueWriteBuffer(r->queue, a, CL_TRUE, 0, sizeof values, values, 0, NULL, NULL);
    clSetKernelArg(kernel, 0, sizeof a, &a);
    clSetKernelArg(kernel, 1, sizeof b, &b);
    clSetKernelArg(kernel, 2, 72 * sizeof(float), NULL);
    clSetKernelArg(kernel, 3, sizeof d, &d);
    assert_int_equal(clEnqueueNDRangeKernel(r->queue, kernel, 3, NULL, global, local, 0, NULL, NULL), CL_SUCCESS);
    assert_int_equal(clEnqueueReadBuffer(r->queue, b, CL_TRUE, 0, sizeof back, back, 0, NULL, NULL), CL_SUCCESS);
    for (int i = 0; i < N; ++i) {
        const float other = (float)(i ^ 1); /* neighbours in a group are neighbours in the grid */
        assert_true(back[i] == 2.0f * other + 0.25f + 1000.0f * (float)(i % 8 / 4) + 20000.0f);
    }
    clReleaseMemObject(a);
    clReleaseMemObject(b);
    clReleaseKernel(kernel);
}

static void sizes_are_checked(void **state) {
    rig *r = *state;
    cl_kernel kernel = rig_kernel(r, "__kernel void run(__global int *x, __local int *y) { x[get_global_id(0)] = 1; }");
    cl_mem buffer = rig_buffer(r, 0, 2048);
    clSetKernelArg(kernel, 0, sizeof buffer, &buffer);
    clSetKernelArg(kernel, 1, 65536, NULL);
    assert_int_equal(rig_launch(r, kernel, 512, 256), CL_SUCCESS);
    assert_int_equal(rig_launch(r, kernel, 512, 512), CL_INVALID_WORK_GROUP_SIZE);
    clSetKernelArg(kernel, 1, 65540, NULL);
    assert_int_equal(rig_launch(r, kernel, 512, 256), CL_OUT_OF_RESOURCES);
    assert_int_equal(clFinish(r->queue), CL_SUCCESS);
    clReleaseMemObject(buffer);
    clReleaseKernel(kernel);
}

static void faults_are_reported(void **state) {
    rig *r = *state;
    cl_kernel kernel = rig_kernel(r, "__kernel void run(__global int *x) { x[get_global_id(0)] = 1; }");
    cl_mem buffer = rig_buffer(r, 0, 256);
    clSetKernelArg(kernel, 0, sizeof buffer, &buffer);
    assert_int_equal(rig_launch(r, kernel, 128, 64), CL_SUCCESS);
    clFinish(r->queue);
    rig_expect_fault(r, "run: write of 4 bytes outside the memory of the launch");
    clReleaseMemObject(buffer);
    clReleaseKernel(kernel);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        RIG_TEST(the_device_is_amds), RIG_TEST(queues_are_in_order), RIG_TEST(programs_may_use_half),
        RIG_TEST(a_kernel_computes),  RIG_TEST(sizes_are_checked),   RIG_TEST(faults_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
