/* Kernels that do one thing only, to measure what a device can do: nothing, or multiply-adds in registers (peaks.c). */
#ifndef CLEAT_SRC_PEAKS_H
#define CLEAT_SRC_PEAKS_H

#include "cleat/graph.h"

typedef enum cleat_peak_kernel {
    CLEAT_PEAK_LAUNCH, /* an empty kernel */
    CLEAT_PEAK_F32,
    CLEAT_PEAK_MATRIX /* the matrix unit, with f16 operands; the device has one */
} cleat_peak_kernel;

/* Appends one launch of the kernel. `rounds` is a state i32 [1]: a run of the graph does as many rounds as it holds then. The
 * result [groups, work-items] is what each work-item has summed up; that of CLEAT_PEAK_LAUNCH is `rounds`, unchanged. */
cleat_tensor *cleat_peak_node(cleat_graph *graph, cleat_peak_kernel kernel, cleat_tensor *rounds, int64_t groups);

/* Operations of a round of one work-group on this device; a multiply-add is two. */
double cleat_peak_flops(const cleat_device_facts *facts, cleat_peak_kernel kernel);

/* --- sizes of what is timed ------------------------------------------------------------------------------------ */

/* Something that can be run in several sizes. */
typedef struct cleat_sized_work {
    /* Seconds of one launch of it. CLEAT_ERR_FIT, CLEAT_ERR_DEVICE_MEMORY: there is not enough memory for this size. */
    cleat_status (*time)(void *user, int64_t size, double *seconds, cleat_error *error);
    void *user;
    int64_t first, most;
} cleat_sized_work;

/* Doubles the size, from `first` to `most` or until memory ends, until a launch takes as long as the cost of 32 launches. A
 * rate that is computed from the time includes this cost, and so it is at most 3 % too low. */
cleat_status cleat_find_size(const cleat_sized_work *work, double launch_seconds, int64_t *size, double *seconds,
                             cleat_error *error);

/* Bytes of three arrays of which one is the sum of the others, in a measurement of the memory's rate: 8 times what the cache
 * of a GPU holds, at least 64 MiB, on cards of more than 16 GiB 512 MiB; but at most `allowed`. On CPUs 64 MiB. */
int64_t cleat_stream_bytes(const cleat_device_facts *facts, int64_t cache, int64_t allowed);

#endif
