#!/usr/bin/env bash
# PoCL 7.1 (Debian sid: pocl-opencl-icd 7.1-9, LLVM 21.1.8), groups of several work-items: a value that was loaded from memory is loaded
# again where it is used, though the memory has changed. In `swap`, each item keeps the number of another one across a barrier, and some
# of them get what the other has written after it. In `apply`, three vectors of three elements come from memory through a small private
# array; in all items but the first, the second vector has the values of the first. No option, no warning (tried on a CPU with AVX-512). PoCL 3.1 and 6.0 are
# right; so is 7.1 for `swap` with POCL_WORK_GROUP_METHOD=cbs, not for `apply`. pocl/pocl#2269, merged after 7.1 was released, names the
# cause ("Do not rematerialize loads whose values may change") for barriers; no report was found that a kernel without one is hit.
#
# cleat's groups have one work-item on a CPU: its 45 reference trainings are right there. Kernels for GPUs that PoCL runs in place of a
# card, in tests, are wrong (batch_norm, softmax, conv2d).
#
# Output seen, 29 November 2026 (`apply`: rows 0 and 1, which should be equal):
#   swap: 16 of 64 items are wrong
#   apply: 100 50 25, 16.6667 25 100
# Needs root, for chroot.
set -euo pipefail
work=$(mktemp -d)
root=$work/root
trap 'umount -l "$root/sys" "$root/proc" 2>/dev/null || true; rm -rf --one-file-system "$work"' EXIT
dpkg -s ocl-icd-opencl-dev >"$work/packages" 2>&1 || apt-get install -y -qq ocl-icd-opencl-dev opencl-c-headers gcc >"$work/packages" 2>&1 || { cat "$work/packages"; exit 1; }

# Unpacked beside this system, not installed.
mkdir -p "$work"/apt/{lists,archives}/partial "$root"/{dev,proc,sys,tmp}
echo "deb http://deb.debian.org/debian sid main" >"$work/apt/sources.list"
apt_of_sid() {
  apt-get -qq -o Dir::State="$work/apt" -o Dir::Cache="$work/apt" -o Dir::State::status=/dev/null -o Dir::Etc::sourceparts=- \
    -o Dir::Etc::sourcelist="$work/apt/sources.list" -o APT::Sandbox::User=root "$@"
}
apt_of_sid update
apt_of_sid -y --no-install-recommends --download-only install base-files bash pocl-opencl-icd=7.1-9 ocl-icd-libopencl1 >"$work/packages" 2>&1 ||
  { cat "$work/packages"; exit 1; }
for package in "$work"/apt/archives/base-files_*.deb "$work"/apt/archives/*.deb; do dpkg -x "$package" "$root"; done
mknod -m 666 "$root/dev/null" c 1 3
mknod -m 666 "$root/dev/urandom" c 1 9
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"

cat >"$work/loads.c" <<'END'
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

enum { ITEMS = 64, ROWS = 8 };

static const char text[] =
    "__kernel void swap(__global float *y, const float factor) {\n"
    "    const int i = get_local_id(0);\n"
    "    const float own = i % 2 ? factor : 1;\n"
    "    y[i] = 1;\n"
    "    barrier(CLK_GLOBAL_MEM_FENCE);\n"
    "    const float other = y[63 - i];\n"
    "    barrier(CLK_GLOBAL_MEM_FENCE);\n"
    "    y[i] = own * other;\n"
    "}\n"
    "static inline float4 some(__global const float *p, int n) {\n"
    "    float lane[4];\n"
    "    for (int j = 0; j < 4; ++j) lane[j] = j < n ? p[j] : 0.0f;\n"
    "    return vload4(0, lane);\n"
    "}\n"
    "static inline void put(float4 v, __global float *p, int n) {\n"
    "    float lane[4];\n"
    "    vstore4(v, 0, lane);\n"
    "    for (int j = 0; j < 4; ++j) if (j < n) p[j] = lane[j];\n"
    "}\n"
    "static inline float4 load(__global const float *p, int at, int n) {\n"
    "    if (at + 4 <= n) return vload4(0, p + at);\n"
    "    return at < n ? some(p + at, 3) : (float4)(0.0f);\n"
    "}\n"
    "static inline void store(float4 v, __global float *p, int at, int n) {\n"
    "    if (at + 4 <= n) vstore4(v, 0, p + at); else put(v, p + at, 3);\n"
    "}\n"
    "__kernel void apply(__global float *y, const int n, __global const float *x, __global const float *a, __global const float *b,\n"
    "                    __global const float *c, const int rows) {\n"
    "    float4 u[1], v[1], w[1];\n"
    "    u[0] = load(a, 0, n);\n"
    "    v[0] = 1.0f / sqrt(load(b, 0, n));\n"
    "    w[0] = load(c, 0, n);\n"
    "    for (int row = get_local_id(0); row < rows; row += 64)\n"
    "        store(fma(some(x + row * n, 3) - u[0], v[0], w[0]), y + row * n, 0, n);\n"
    "}\n";

static cl_int code;
static cl_context context;
static void check(cl_int result) {
    if (result) exit(printf("an OpenCL call failed: %d\n", result));
}

static cl_mem buffer(const float *values, size_t count) {
    return clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, count * sizeof *values, (void *)values, &code);
}

static void run(cl_command_queue queue, cl_kernel kernel, cl_mem out, float *y, size_t count) {
    const size_t items = ITEMS;
    check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &items, 0, NULL, NULL));
    check(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, count * sizeof *y, y, 0, NULL, NULL));
}

int main(void) {
    static const float a[4] = {36, 16, 1}, b[4] = {1, 4, 16}, c[4] = {0};
    const char *source = text;
    const float factor = 3;
    const int n = 3, rows = ROWS;
    cl_platform_id platform;
    cl_device_id device;
    float x[3 * ROWS], y[ITEMS] = {0};
    char name[200] = "", version[200] = "";
    int wrong = 0;
    for (int i = 0; i < 3 * ROWS; ++i) x[i] = 100 + a[i % 3];
    check(clGetPlatformIDs(1, &platform, NULL));
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &device, NULL));
    check(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL));
    check(clGetDeviceInfo(device, CL_DRIVER_VERSION, sizeof version, version, NULL));
    fprintf(stderr, "%s, driver %s\n", name, version);
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &code);
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &code);
    check(clBuildProgram(program, 1, &device, "", NULL, NULL));
    cl_kernel swap = clCreateKernel(program, "swap", &code), apply = clCreateKernel(program, "apply", &code);
    cl_mem out = buffer(y, ITEMS), inputs[4] = {buffer(x, 3 * ROWS), buffer(a, 4), buffer(b, 4), buffer(c, 4)};
    check(clSetKernelArg(swap, 0, sizeof out, &out));
    check(clSetKernelArg(swap, 1, sizeof factor, &factor));
    run(queue, swap, out, y, ITEMS);
    for (int i = 0; i < ITEMS; ++i) wrong += y[i] != (i % 2 ? factor : 1);
    printf("swap: %d of %d items are wrong\n", wrong, ITEMS);
    check(clSetKernelArg(apply, 0, sizeof out, &out));
    check(clSetKernelArg(apply, 1, sizeof n, &n));
    for (int i = 0; i < 4; ++i) check(clSetKernelArg(apply, (cl_uint)i + 2, sizeof inputs[i], &inputs[i]));
    check(clSetKernelArg(apply, 6, sizeof rows, &rows));
    run(queue, apply, out, y, 3 * ROWS);
    printf("apply: %g %g %g, %g %g %g\n", y[0], y[1], y[2], y[3], y[4], y[5]);
    return 0;
}
END
gcc -O1 "$work/loads.c" -o "$root/tmp/loads" -lOpenCL
env -i PATH=/usr/bin:/bin HOME=/tmp "$(command -v chroot)" "$root" /tmp/loads | tee "$work/seen"
cat >"$work/expected" <<'END'
swap: 16 of 64 items are wrong
apply: 100 50 25, 16.6667 25 100
END
diff "$work/expected" "$work/seen" && echo "as described"
