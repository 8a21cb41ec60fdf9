/* Programs and launches on the virtual card: calls that the driver rejects, and kernel faults. */
/* ctest: quick */
#include "driver_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char add_source[] = "__kernel void run(__global const float *a, __global float *b, float c) {\n"
                                 "    size_t i = get_global_id(0);\n"
                                 "    b[i] = a[i] + c;\n"
                                 "}\n";

static void set_buffer(cl_kernel kernel, cl_uint index, cl_mem buffer) {
    assert_int_equal(clSetKernelArg(kernel, index, sizeof buffer, &buffer), CL_SUCCESS);
}

/* --- programs --- */

static void a_kernel_computes(void **state) {
    rig *r = *state;
    float values[100], back[100], c = 2.5f;
    cl_kernel kernel = rig_kernel(r, add_source);
    cl_mem a = rig_buffer(r, CL_MEM_READ_ONLY, sizeof values), b = rig_buffer(r, 0, sizeof values);
    for (int i = 0; i < 100; ++i) values[i] = (float)i;
    clEnqueueWriteBuffer(r->queue, a, CL_TRUE, 0, sizeof values, values, 0, NULL, NULL);
    set_buffer(kernel, 0, a);
    set_buffer(kernel, 1, b);
    clSetKernelArg(kernel, 2, sizeof c, &c);
    assert_int_equal(rig_launch(r, kernel, 100, 50), CL_SUCCESS);
    assert_int_equal(clEnqueueReadBuffer(r->queue, b, CL_TRUE, 0, sizeof back, back, 0, NULL, NULL), CL_SUCCESS);
    for (int i = 0; i < 100; ++i) assert_true(back[i] == (float)i + 2.5f);
    clReleaseMemObject(a);
    clReleaseMemObject(b);
    clReleaseKernel(kernel);
}

static void expect_build(rig *r, const char *source, const char *options, cl_int expected) {
    cl_program program;
    cl_int code = rig_build(r, source, options, &program);
    if (code != expected) fail_msg("%s with '%s': %d", source, options, (int)code);
    clReleaseProgram(program);
}

static void programs_are_refused_as_by_the_driver(void **state) {
    rig *r = *state;
    expect_build(r, add_source, "", CL_SUCCESS);
    expect_build(r, add_source, "-cl-nv-verbose -cl-nv-maxrregcount=64 -DX=1 -D Y", CL_SUCCESS);
    expect_build(r, add_source, "-cl-std=CL1.1", CL_SUCCESS); /* CLBlast's */
    expect_build(r, add_source, "-foo", CL_INVALID_BUILD_OPTIONS);
    expect_build(r, add_source, "-cl-std=CL2.0", CL_INVALID_BUILD_OPTIONS);
    expect_build(r, "__kernel void run(__global half *x) { half y = x[0]; x[1] = y; }", "", CL_BUILD_PROGRAM_FAILURE);
    expect_build(r, "#ifdef cl_khr_fp16\n#error\n#endif\n#ifndef cl_khr_fp64\n#error\n#endif\n", "", CL_SUCCESS);
}

static void build_errors_are_in_the_log(void **state) {
    rig *r = *state;
    char log[2000] = "";
    cl_build_status status = 0;
    cl_program program;
    cl_int code = CL_SUCCESS;
    assert_int_equal(rig_build(r, "__kernel void run(int x) { x = nothing; }", "", &program), CL_BUILD_PROGRAM_FAILURE);
    clGetProgramBuildInfo(program, r->device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
    assert_non_null(strstr(log, "nothing"));
    clGetProgramBuildInfo(program, r->device, CL_PROGRAM_BUILD_STATUS, sizeof status, &status, NULL);
    assert_int_equal(status, CL_BUILD_ERROR);
    assert_null(clCreateKernel(program, "run", &code));
    assert_int_equal(code, CL_INVALID_PROGRAM_EXECUTABLE);
    clReleaseProgram(program);
}

static unsigned char *binary_of(cl_program program, size_t *bytes) {
    clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof *bytes, bytes, NULL);
    unsigned char *binary = malloc(*bytes + 1);
    assert_non_null(binary);
    assert_int_equal(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL), CL_SUCCESS);
    binary[*bytes] = 0;
    return binary;
}

static void binaries_are_ptx(void **state) {
    rig *r = *state;
    cl_program program;
    cl_int code, of_device;
    size_t bytes = 0;
    assert_int_equal(rig_build(r, add_source, "", &program), CL_SUCCESS);
    unsigned char *binary = binary_of(program, &bytes);
    clReleaseProgram(program);
    assert_non_null(strstr((char *)binary, ".target sm_75"));
    program = clCreateProgramWithBinary(r->context, 1, &r->device, &bytes, (const unsigned char **)&binary, &of_device,
                                        &code);
    assert_int_equal(code, CL_SUCCESS);
    assert_int_equal(clBuildProgram(program, 1, &r->device, "", NULL, NULL), CL_SUCCESS);
    cl_kernel kernel = clCreateKernel(program, "run", &code);
    assert_int_equal(code, CL_SUCCESS);
    assert_int_equal(clBuildProgram(program, 1, &r->device, "", NULL, NULL), CL_INVALID_OPERATION);
    assert_null(clCreateKernel(program, "walk", &code));
    assert_int_equal(code, CL_INVALID_KERNEL_NAME);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    bytes /= 2;
    assert_null(clCreateProgramWithBinary(r->context, 1, &r->device, &bytes, (const unsigned char **)&binary,
                                          &of_device, &code));
    assert_int_equal(code, CL_INVALID_BINARY);
    *strstr((char *)binary, "sm_75") = 'x';
    bytes *= 2;
    assert_null(clCreateProgramWithBinary(r->context, 1, &r->device, &bytes, (const unsigned char **)&binary,
                                          &of_device, &code));
    assert_int_equal(code, CL_INVALID_BINARY);
    free(binary);
}

/* --- arguments and sizes --- */

static void arguments_are_checked(void **state) {
    rig *r = *state;
    float c = 1;
    cl_uint count = 0;
    cl_kernel kernel = rig_kernel(r, add_source);
    cl_mem buffer = rig_buffer(r, 0, 256);
    clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL);
    assert_int_equal(count, 3);
    assert_int_equal(clSetKernelArg(kernel, 3, sizeof c, &c), CL_INVALID_ARG_INDEX);
    assert_int_equal(clSetKernelArg(kernel, 2, 8, &c), CL_INVALID_ARG_SIZE);
    assert_int_equal(clSetKernelArg(kernel, 2, sizeof c, NULL), CL_INVALID_ARG_VALUE);
    assert_int_equal(clSetKernelArg(kernel, 0, 4, &buffer), CL_INVALID_ARG_SIZE);
    set_buffer(kernel, 0, buffer);
    set_buffer(kernel, 1, buffer);
    assert_int_equal(rig_launch(r, kernel, 32, 32), CL_INVALID_KERNEL_ARGS);
    clSetKernelArg(kernel, 2, sizeof c, &c);
    assert_int_equal(rig_launch(r, kernel, 32, 32), CL_SUCCESS);
    clReleaseMemObject(buffer);
    assert_int_equal(rig_launch(r, kernel, 32, 32), CL_INVALID_MEM_OBJECT);
    rig_expect_fault(r, "clEnqueueNDRangeKernel: the buffer was released before");
    clReleaseKernel(kernel);
}

static cl_int launch_3d(rig *r, cl_kernel kernel, const size_t global[3], const size_t local[3]) {
    return clEnqueueNDRangeKernel(r->queue, kernel, 3, NULL, global, local, 0, NULL, NULL);
}

static void sizes_are_checked(void **state) {
    rig *r = *state;
    const size_t offset = 1, size = 32;
    cl_kernel kernel = rig_kernel(r, "__kernel void run(void) {}");
    assert_int_equal(rig_launch(r, kernel, 1024, 1024), CL_SUCCESS);
    assert_int_equal(rig_launch(r, kernel, 2048, 2048), CL_INVALID_WORK_ITEM_SIZE);
    assert_int_equal(rig_launch(r, kernel, 100, 64), CL_INVALID_WORK_GROUP_SIZE);
    assert_int_equal(rig_launch(r, kernel, 0, 1), CL_INVALID_GLOBAL_WORK_SIZE);
    assert_int_equal(launch_3d(r, kernel, (size_t[]){64, 32, 1}, (size_t[]){64, 32, 1}), CL_INVALID_WORK_GROUP_SIZE);
    assert_int_equal(launch_3d(r, kernel, (size_t[]){1, 1, 128}, (size_t[]){1, 1, 128}), CL_INVALID_WORK_ITEM_SIZE);
    assert_int_equal(launch_3d(r, kernel, (size_t[]){1, 65536, 1}, (size_t[]){1, 1, 1}), CL_INVALID_GLOBAL_WORK_SIZE);
    assert_int_equal(launch_3d(r, kernel, (size_t[]){1, 65535, 1}, (size_t[]){1, 1, 1}), CL_SUCCESS);
    assert_int_equal(clEnqueueNDRangeKernel(r->queue, kernel, 4, NULL, &size, &size, 0, NULL, NULL),
                     CL_INVALID_WORK_DIMENSION);
    assert_int_equal(clEnqueueNDRangeKernel(r->queue, kernel, 1, &offset, &size, &size, 0, NULL, NULL),
                     CL_INVALID_GLOBAL_OFFSET);
    clReleaseKernel(kernel);
}

static void a_required_work_group_size_is_kept(void **state) {
    rig *r = *state;
    size_t size[3] = {0}, most = 0;
    cl_kernel kernel = rig_kernel(r, "__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void run(void) {}");
    clGetKernelWorkGroupInfo(kernel, r->device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof size, size, NULL);
    clGetKernelWorkGroupInfo(kernel, r->device, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, NULL);
    assert_int_equal(size[0], 64);
    assert_int_equal(size[2], 1);
    assert_int_equal(most, 64);
    assert_int_equal(rig_launch(r, kernel, 128, 64), CL_SUCCESS);
    assert_int_equal(rig_launch(r, kernel, 128, 32), CL_INVALID_WORK_GROUP_SIZE);
    clReleaseKernel(kernel);
}

static const char local_source[] = "__kernel void run(__global float *x, __local float *l) {\n"
                                   "    l[get_local_id(0)] = x[get_global_id(0)];\n"
                                   "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                                   "    x[get_global_id(0)] = l[get_local_size(0) - 1 - get_local_id(0)];\n"
                                   "}\n";

static void local_memory_ends_at_48_kib(void **state) {
    rig *r = *state;
    float values[64];
    cl_kernel kernel = rig_kernel(r, local_source);
    cl_mem buffer = rig_buffer(r, 0, sizeof values);
    for (int i = 0; i < 64; ++i) values[i] = (float)i;
    clEnqueueWriteBuffer(r->queue, buffer, CL_TRUE, 0, sizeof values, values, 0, NULL, NULL);
    set_buffer(kernel, 0, buffer);
    assert_int_equal(clSetKernelArg(kernel, 1, 64, values), CL_INVALID_ARG_VALUE);
    assert_int_equal(clSetKernelArg(kernel, 1, 0, NULL), CL_INVALID_ARG_SIZE);
    assert_int_equal(clSetKernelArg(kernel, 1, 49153, NULL), CL_SUCCESS);
    assert_int_equal(rig_launch(r, kernel, 64, 32), CL_OUT_OF_RESOURCES);
    assert_int_equal(clSetKernelArg(kernel, 1, 49152, NULL), CL_SUCCESS);
    assert_int_equal(rig_launch(r, kernel, 64, 32), CL_SUCCESS);
    clEnqueueReadBuffer(r->queue, buffer, CL_TRUE, 0, sizeof values, values, 0, NULL, NULL);
    for (int i = 0; i < 64; ++i) assert_true(values[i] == (float)(i / 32 * 32 + 31 - i % 32));
    clReleaseKernel(kernel);
    kernel = rig_kernel(r, "__kernel void run(__global float *x) {\n"
                           "    __local float l[12289];\n"
                           "    l[get_local_id(0) * 300] = x[0];\n"
                           "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                           "    x[get_local_id(0)] = l[(int)x[1]];\n"
                           "}\n");
    set_buffer(kernel, 0, buffer);
    assert_int_equal(rig_launch(r, kernel, 32, 32), CL_OUT_OF_RESOURCES);
    clReleaseMemObject(buffer);
    clReleaseKernel(kernel);
}

/* --- faults of kernels --- */

/* Runs a kernel with one buffer of 256 bytes and expects a fault with this text. */
static void expect_kernel_fault(rig *r, const char *source, cl_mem_flags flags, const char *text) {
    cl_kernel kernel = rig_kernel(r, source);
    cl_mem buffer = rig_buffer(r, flags, 256);
    set_buffer(kernel, 0, buffer);
    assert_int_equal(rig_launch(r, kernel, 64, 64), CL_SUCCESS);
    clFinish(r->queue);
    assert_true(r->faults() > r->seen);
    if (!strstr(r->last_fault(), text)) fail_msg("'%s' is not in: %s", text, r->last_fault());
    r->seen = r->faults();
    clReleaseMemObject(buffer);
    clReleaseKernel(kernel);
}

static void writing_behind_a_buffer_is_a_fault(void **state) {
    expect_kernel_fault(*state, "__kernel void run(__global float *x) { x[get_global_id(0) + 1] = 1; }", 0, "run");
}

static void writing_to_a_read_only_buffer_is_a_fault(void **state) {
    expect_kernel_fault(*state, "__kernel void run(__global float *x) { x[get_global_id(0)] = 1; }", CL_MEM_READ_ONLY,
                        "run");
}

static void a_misaligned_vector_is_a_fault(void **state) {
    expect_kernel_fault(*state,
                        "__kernel void run(__global float *x) {\n"
                        "    if (get_global_id(0) == 0) *(__global float4 *)(x + 1) = (float4)(1);\n"
                        "}\n",
                        0, "run");
}

static void a_race_is_a_fault(void **state) {
    expect_kernel_fault(*state,
                        "__kernel void run(__global float *x) {\n"
                        "    __local float l[64];\n"
                        "    l[get_local_id(0)] = x[get_local_id(0)];\n"
                        "    x[get_local_id(0)] = l[63 - get_local_id(0)];\n"
                        "}\n",
                        0, "run");
}

static void a_barrier_that_not_all_reach_is_a_fault(void **state) {
    expect_kernel_fault(*state,
                        "__kernel void run(__global float *x) {\n"
                        "    if (x[get_local_id(0)] != 3 && get_local_id(0) < 32) barrier(CLK_LOCAL_MEM_FENCE);\n"
                        "    x[get_local_id(0)] = 1;\n"
                        "    if (get_local_id(0) >= 100) barrier(CLK_LOCAL_MEM_FENCE);\n"
                        "}\n",
                        0, "run");
}

static void using_a_mapped_buffer_is_a_fault(void **state) {
    rig *r = *state;
    float c = 1;
    cl_int code;
    cl_kernel kernel = rig_kernel(r, add_source);
    cl_mem buffer = rig_buffer(r, 0, 256);
    void *host = clEnqueueMapBuffer(r->queue, buffer, CL_TRUE, CL_MAP_WRITE, 0, 256, 0, NULL, NULL, &code);
    set_buffer(kernel, 0, buffer);
    set_buffer(kernel, 1, buffer);
    clSetKernelArg(kernel, 2, sizeof c, &c);
    assert_int_equal(rig_launch(r, kernel, 64, 64), CL_SUCCESS);
    rig_expect_fault(r, "mapped for writing");
    clEnqueueUnmapMemObject(r->queue, buffer, host, 0, NULL, NULL);
    clReleaseMemObject(buffer);
    clReleaseKernel(kernel);
}

/* --- the report --- */

static const char *report_path;

static void run_and_report(rig *r) {
    cl_kernel kernel = rig_kernel(r, "__kernel void run(void) {}");
    setenv("CLEAT_VIRTUAL_CARD_REPORT", report_path, 1);
    rig_launch(r, kernel, 128, 64);
    rig_launch(r, kernel, 64, 64);
    clReleaseKernel(kernel);
    rig_close(r);
}

static void counters_are_reported(void **state) {
    char path[] = "/tmp/virtual_card_report_XXXXXX", line[2000];
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    report_path = path;
    assert_int_equal(rig_exit_code(*state, run_and_report, true), 0);
    FILE *table = fopen(path, "r");
    assert_non_null(table);
    assert_non_null(fgets(line, sizeof line, table));
    assert_non_null(strstr(line, "card\tkernel\twork_items\tlaunches\tgroups\t"));
    bool found = false;
    while (fgets(line, sizeof line, table)) found = found || strncmp(line, "t4\trun\t64\t2\t3\t", 14) == 0;
    fclose(table);
    unlink(path);
    assert_true(found);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        RIG_TEST(counters_are_reported), /* runs first, because a child must not inherit faults */
        RIG_TEST(a_kernel_computes),
        RIG_TEST(programs_are_refused_as_by_the_driver),
        RIG_TEST(build_errors_are_in_the_log),
        RIG_TEST(binaries_are_ptx),
        RIG_TEST(arguments_are_checked),
        RIG_TEST(sizes_are_checked),
        RIG_TEST(a_required_work_group_size_is_kept),
        RIG_TEST(local_memory_ends_at_48_kib),
        RIG_TEST(writing_behind_a_buffer_is_a_fault),
        RIG_TEST(writing_to_a_read_only_buffer_is_a_fault),
        RIG_TEST(a_misaligned_vector_is_a_fault),
        RIG_TEST(a_race_is_a_fault),
        RIG_TEST(a_barrier_that_not_all_reach_is_a_fault),
        RIG_TEST(using_a_mapped_buffer_is_a_fault),
    };
    return rig_has_compiler() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
