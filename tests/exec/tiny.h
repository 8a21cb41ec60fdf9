/* Operations for the exec tests. Their kernels come from tests/exec/cl through CLEAT_KERNEL_DIR. */
#ifndef CLEAT_TESTS_TINY_H
#define CLEAT_TESTS_TINY_H

#include "graph/graph.h"

/* Fault to inject into a launch. */
typedef enum tiny_fault {
    TINY_FINE,
    TINY_MISSING_FILE,
    TINY_MISSING_KERNEL,
    TINY_BROKEN_SOURCE,
    TINY_FEW_ARGUMENTS,
    TINY_SWAPPED_ARGUMENTS,
    TINY_HUGE_GROUP,
} tiny_fault;

/* y = x * factor + bias, bias may be NULL. x f32 [n], bias f32 [m] -> f32 [n]. `delay` makes the kernel
 * slow. */
cleat_tensor *tiny_affine(cleat_graph *graph, cleat_tensor *x, cleat_tensor *bias, float factor, int delay,
                          tiny_fault fault);
/* total += x, through a workspace. Both f32 [n]; total is a state. */
void tiny_accumulate(cleat_graph *graph, cleat_tensor *x, cleat_tensor *total);

/* C[m, n] = A[m, k] B[n, k]^T by CLBlast, which receives the required workspace only if `workspace` is
 * set. */
cleat_tensor *tiny_product(cleat_graph *graph, cleat_tensor *a, cleat_tensor *b, bool workspace);

/* Fails the test with the text of the error unless the status is CLEAT_OK. */
void ok(cleat_status status, const cleat_error *error);

/* Opens $CLEAT_TEST_DEVICE (default "auto") with kernels from tests/exec/cl. Exits with 77 without a
 * device. */
cleat_device *tiny_open_device(void);

#endif
