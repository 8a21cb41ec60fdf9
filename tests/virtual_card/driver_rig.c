/* An open virtual card for tests. */
#include "driver_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

bool rig_has_compiler(void) {
    return VC_CLANG[0] != 0;
}

static void *function_of(const rig *r, const char *name) {
    void *found = clGetExtensionFunctionAddressForPlatform(r->platform, name);
    assert_non_null(found);
    return found;
}

int rig_open(void **state) {
    const cl_command_queue_properties profiled = CL_QUEUE_PROFILING_ENABLE;
    rig *r = calloc(1, sizeof *r);
    cl_int code = CL_SUCCESS;
    assert_non_null(r);
    assert_int_equal(clGetPlatformIDs(1, &r->platform, NULL), CL_SUCCESS);
    assert_int_equal(clGetDeviceIDs(r->platform, CL_DEVICE_TYPE_GPU, 1, &r->device, NULL), CL_SUCCESS);
    r->context = clCreateContext(NULL, 1, &r->device, NULL, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    r->queue = clCreateCommandQueue(r->context, r->device, profiled, &code);
    assert_int_equal(code, CL_SUCCESS);
    r->other = clCreateCommandQueue(r->context, r->device, 0, &code);
    assert_int_equal(code, CL_SUCCESS);
    void *found = function_of(r, "vc_faults");
    memcpy(&r->faults, &found, sizeof found);
    found = function_of(r, "vc_last_fault");
    memcpy(&r->last_fault, &found, sizeof found);
    r->seen = r->faults();
    *state = r;
    return 0;
}

void rig_close(rig *r) {
    clReleaseCommandQueue(r->other);
    clReleaseCommandQueue(r->queue);
    clReleaseContext(r->context);
}

int rig_close_state(void **state) {
    rig *r = *state;
    rig_close(r);
    bool more = r->faults() != r->seen;
    if (more) print_error("unexpected fault: %s\n", r->last_fault());
    free(r);
    return more ? -1 : 0;
}

cl_mem rig_buffer(rig *r, cl_mem_flags flags, size_t bytes) {
    cl_int code = CL_SUCCESS;
    cl_mem buffer = clCreateBuffer(r->context, flags, bytes, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    return buffer;
}

cl_int rig_build(rig *r, const char *source, const char *options, cl_program *program) {
    cl_int code = CL_SUCCESS;
    *program = clCreateProgramWithSource(r->context, 1, &source, NULL, &code);
    assert_int_equal(code, CL_SUCCESS);
    return clBuildProgram(*program, 1, &r->device, options, NULL, NULL);
}

cl_kernel rig_kernel(rig *r, const char *source) {
    cl_program program;
    cl_int code = rig_build(r, source, "-cl-std=CL1.2", &program);
    if (code != CL_SUCCESS) {
        char log[2000] = "";
        clGetProgramBuildInfo(program, r->device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
        fail_msg("%d\n%s", (int)code, log);
    }
    cl_kernel kernel = clCreateKernel(program, "run", &code);
    assert_int_equal(code, CL_SUCCESS);
    clReleaseProgram(program);
    return kernel;
}

cl_int rig_launch(rig *r, cl_kernel kernel, size_t global, size_t local) {
    return clEnqueueNDRangeKernel(r->queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL);
}

int rig_exit_code(rig *r, void (*act)(rig *), bool strict) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr)) _exit(99);
        setenv("CLEAT_VIRTUAL_CARD_STRICT", strict ? "1" : "0", 1);
        act(r);
        exit(0);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void rig_expect_fault(rig *r, const char *text) {
    assert_int_equal(r->faults(), r->seen + 1);
    if (!strstr(r->last_fault(), text)) fail_msg("the fault is: %s", r->last_fault());
    ++r->seen;
}
