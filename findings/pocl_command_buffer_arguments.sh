#!/usr/bin/env bash
# PoCL 3.1 (Debian 12: libpocl2 3.1-3+deb12u1), cl_khr_command_buffer: a recorded kernel runs with the arguments that the cl_kernel
# has when the buffer is enqueued. By the extension, clCommandNDRangeKernelKHR takes the arguments as they are when it records; a
# later clSetKernelArg has no effect. So the usual way, one cl_kernel that is recorded several times with other arguments, runs all
# launches with the last ones, and every call succeeds. A cl_kernel for each launch avoids it.
#
# cleat has a cl_kernel for each launch, and records nothing: a buffer's launches also take longer than clEnqueueNDRangeKernel.
#
# Output seen, 27 November 2026:
#   PoCL 3.1: add 3, add 40, recorded from one kernel: 80, not 43
#   replayed after an argument became 5: 10, not 43
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! dpkg -s libpocl2 ocl-icd-opencl-dev >"$work/packages" 2>&1; then
  apt-get install -y -qq libpocl2=3.1-3+deb12u1 ocl-icd-opencl-dev opencl-c-headers gcc >"$work/packages" 2>&1 || { cat "$work/packages"; exit 1; }
fi
cat >"$work/replay.c" <<'END'
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cl_int code;
static void check(cl_int result) {
    if (result) exit(printf("an OpenCL call failed: %d\n", result));
}

int main(void) {
    static const char *text = "__kernel void add(__global int *x, int y) { x[0] += y; }";
    cl_platform_id platforms[8], platform = NULL;
    cl_device_id device;
    cl_uint count;
    char version[200] = "";
    check(clGetPlatformIDs(8, platforms, &count));
    for (cl_uint i = 0; i < count && !platform; ++i) {
        check(clGetPlatformInfo(platforms[i], CL_PLATFORM_VERSION, sizeof version, version, NULL));
        if (strstr(version, "PoCL 3.1")) platform = platforms[i];
    }
    if (!platform) exit(puts("no PoCL 3.1"));
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &code);
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &code);
    check(clBuildProgram(program, 1, &device, "", NULL, NULL));
    cl_kernel add = clCreateKernel(program, "add", &code);
    cl_mem x = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(int), NULL, &code);
#define GET(name) name##_fn name = (name##_fn)clGetExtensionFunctionAddressForPlatform(platform, #name)
    GET(clCreateCommandBufferKHR);
    GET(clCommandNDRangeKernelKHR);
    GET(clFinalizeCommandBufferKHR);
    GET(clEnqueueCommandBufferKHR);
    const int recorded[2] = {3, 40}, later = 5, zero = 0;
    const size_t one = 1;
    int sums[2];
    cl_command_buffer_khr commands = clCreateCommandBufferKHR(1, &queue, NULL, &code);
    check(code);
    check(clSetKernelArg(add, 0, sizeof x, &x));
    for (int i = 0; i < 2; ++i) {
        check(clSetKernelArg(add, 1, sizeof(int), &recorded[i]));
        check(clCommandNDRangeKernelKHR(commands, NULL, NULL, add, 1, NULL, &one, NULL, 0, NULL, NULL, NULL));
    }
    check(clFinalizeCommandBufferKHR(commands));
    for (int i = 0; i < 2; ++i) {
        if (i == 1) check(clSetKernelArg(add, 1, sizeof(int), &later));
        check(clEnqueueWriteBuffer(queue, x, CL_TRUE, 0, sizeof(int), &zero, 0, NULL, NULL));
        check(clEnqueueCommandBufferKHR(0, NULL, commands, 0, NULL, NULL));
        check(clFinish(queue));
        check(clEnqueueReadBuffer(queue, x, CL_TRUE, 0, sizeof(int), &sums[i], 0, NULL, NULL));
    }
    printf("PoCL 3.1: add 3, add 40, recorded from one kernel: %d, not 43\n", sums[0]);
    printf("replayed after an argument became 5: %d, not 43\n", sums[1]);
    return sums[0] == 80 && sums[1] == 10 ? 0 : puts("this has changed");
}
END
cc -o "$work/replay" "$work/replay.c" -lOpenCL
"$work/replay"
