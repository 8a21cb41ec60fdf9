#!/usr/bin/env bash
# PoCL 7.1 (Debian sid: pocl-opencl-icd 7.1-9, LLVM 21.1.8), CPU with AVX-512 (device cpu-skylake-avx512-...): in a program built with
# -cl-opt-disable, functions of the kernel library (vload16, vstore16, fma) get other float16 than they are given. The results fit a
# caller that passes a float16 in two registers of 256 bits to a function that takes one of 512: vstore16 stores 0 in the lanes 8 to 15,
# and fma(a, b, c) computes lanes 0 to 7 from the first half of a, its second half, and the first half of b. The build succeeds without
# a warning. Programs without that option are right, so is PoCL 6.0 of Debian 13 (LLVM 19) on the same CPU: what a debugger or a test
# builds without optimization is wrong there, and right in use.
#
# cleat builds without this option; its tests build with it where PoCL is older than 7.
#
# Output seen, 29 November 2026 (lanes 0, 1, 8, 9 of 2 x; lanes 0 and 1 of fma(x, 1, x); x is 1, 2, 3, ...):
#   '': 2 x = 2 4 18 20; fma(x, 1, x) = 2 4
#   '-cl-opt-disable': 2 x = 2 4 0 0; fma(x, 1, x) = 10 21
# Needs root, for chroot; without AVX-512: exit status 77.
set -euo pipefail
grep -q avx512vl /proc/cpuinfo || { echo "skipped: this CPU has no AVX-512" && exit 77; }
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

cat >"$work/lanes.c" <<'END'
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

static cl_int code;
static void check(cl_int result) {
    if (result) exit(printf("an OpenCL call failed: %d\n", result));
}

int main(int count, char **arguments) {
    const char *option = count > 1 ? arguments[1] : "";
    static const char *text = "__kernel void k(__global const float *x, __global float16 *y) {\n"
                              "    vstore16(2 * vload16(0, x), 0, (__global float *)y);\n"
                              "    y[1] = fma(*(__global const float16 *)x, (float16)(1.0f), *(__global const float16 *)x);\n"
                              "}\n";
    cl_platform_id platform;
    cl_device_id device;
    char name[200] = "", version[200] = "";
    float x[16], y[32];
    for (int i = 0; i < 16; ++i) x[i] = i + 1;
    check(clGetPlatformIDs(1, &platform, NULL));
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &device, NULL));
    check(clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL));
    check(clGetDeviceInfo(device, CL_DRIVER_VERSION, sizeof version, version, NULL));
    fprintf(stderr, "%s, driver %s\n", name, version);
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &code);
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &code);
    check(clBuildProgram(program, 1, &device, option, NULL, NULL));
    cl_kernel kernel = clCreateKernel(program, "k", &code);
    cl_mem in = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof x, x, &code);
    cl_mem out = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof y, NULL, &code);
    const size_t one = 1;
    check(clSetKernelArg(kernel, 0, sizeof in, &in));
    check(clSetKernelArg(kernel, 1, sizeof out, &out));
    check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL));
    check(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, sizeof y, y, 0, NULL, NULL));
    printf("'%s': 2 x = %g %g %g %g; fma(x, 1, x) = %g %g\n", option, y[0], y[1], y[8], y[9], y[16], y[17]);
    return 0;
}
END
gcc -O1 "$work/lanes.c" -o "$root/tmp/lanes" -lOpenCL
run() { env -i PATH=/usr/bin:/bin HOME=/tmp "$(command -v chroot)" "$root" /tmp/lanes "$1"; }
run "" | tee "$work/seen"
run -cl-opt-disable | tee -a "$work/seen"
cat >"$work/expected" <<'END'
'': 2 x = 2 4 18 20; fma(x, 1, x) = 2 4
'-cl-opt-disable': 2 x = 2 4 0 0; fma(x, 1, x) = 10 21
END
diff "$work/expected" "$work/seen" && echo "as described"
