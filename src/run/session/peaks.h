/* Kernels that measure the peak rates of a device: an empty one, and multiply-adds in registers (peaks.c). */
#ifndef CLEAT_SRC_PEAKS_H
#define CLEAT_SRC_PEAKS_H

#include "cleat/graph.h"

typedef enum cleat_peak_kernel {
    CLEAT_PEAK_LAUNCH, /* an empty kernel */
    CLEAT_PEAK_F32,
    CLEAT_PEAK_MATRIX /* the matrix unit, with f16 operands; the device has one */
} cleat_peak_kernel;

/* Appends one launch of the kernel. `rounds` is a state i32 [1] with the number of rounds of each run of
 * the graph. The result [groups, work-items] holds the sum of each work-item; for CLEAT_PEAK_LAUNCH it is
 * `rounds`, unchanged. */
cleat_tensor *cleat_peak_node(cleat_graph *graph, cleat_peak_kernel kernel, cleat_tensor *rounds, int64_t groups);

/* Operations in a round of one work-group on this device; a multiply-add counts as two. */
double cleat_peak_flops(const cleat_device_facts *facts, cleat_peak_kernel kernel);

/* --- sizes of timed work --------------------------------------------------------------------------------------- */

/* Work that can be timed in several sizes. */
typedef struct cleat_sized_work {
    /* Seconds per launch at this size. CLEAT_ERR_FIT, CLEAT_ERR_DEVICE_MEMORY: not enough memory for it. */
    cleat_status (*time)(void *user, int64_t size, double *seconds, cleat_error *error);
    void *user;
    int64_t first, most;
} cleat_sized_work;

/* Doubles the size, from `first` to `most` or the memory limit, until a launch takes 32 times the launch
 * cost. A rate computed from the time includes this cost, so it is at most 3 % too low. */
cleat_status cleat_find_size(const cleat_sized_work *work, double launch_seconds, int64_t *size, double *seconds,
                             cleat_error *error);

/* Total bytes of the arrays x, y and x + y that measure memory bandwidth. GPUs: 8 times the cache, at
 * least 64 MiB, or 512 MiB with more than 16 GiB of memory. CPUs: 64 MiB. Never more than `allowed`. */
int64_t cleat_stream_bytes(const cleat_device_facts *facts, int64_t cache, int64_t allowed);

#endif
