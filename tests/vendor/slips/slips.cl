/* Every slip that tools/vendor_check.sh --lint must find. Never compiled. Names with "innocent" are no slips:
 * half, double and 1.0 in comments included. */
#include "innocent.clh"
#include <math.h> // SLIP: slips.cl:4: include
half value; // SLIP: slips.cl:5: half
half4 values; // SLIP: slips.cl:6: half
__local half row[4]; // SLIP: slips.cl:7: half
T one; // SLIP: slips.cl:8: half
double wide; // SLIP: slips.cl:9: double
float a = 1.0; // SLIP: slips.cl:10: double
float b = .5; // SLIP: slips.cl:11: double
float c = 1e-3; // SLIP: slips.cl:12: double
float d = 0x1p-3; // SLIP: slips.cl:13: double
atomic_cmpxchg(p, 1, 2); // SLIP: slips.cl:14: atomics
#ifdef cl_khr_fp16 // SLIP: slips.cl:15: extension
#pragma OPENCL EXTENSION x : enable // SLIP: slips.cl:16: extension
#if defined(__AMDGCN__) // SLIP: slips.cl:17: extension
__kernel void slip_name(int x) {} // SLIP: kernel slip_name begins the name of slip_name_longer
__attribute__((reqd_work_group_size(WG, 1, 1))) __kernel void
slip_name_longer(int x) {}
__kernel void slip_twice(int x) {} // SLIP: kernel slip_twice is in slips.cl too
__kernel __attribute__((reqd_work_group_size(WG, 1, 1))) void slip_twice(int x) {}
__kernel void shape_of_body(int x) { // SLIP: slips.cl:23: shape
#if X
    x = 1;
#endif
    x = 2;
}
static void shape_of_loops(int x) { // SLIP: slips.cl:29: shape
    if (x)
        for (;;)
            while (x) {
                if (x) {
                    do x = 2;
                    while (x);
                }
            }
}
static void shape_of_length(int x) { // SLIP: slips.cl:39: shape
    x = 1;
    x = 1;
    x = 1;
    x = 1;
    x = 1;
    x = 1;
    x = 1;
    x = 1;
    x = 1;
}
