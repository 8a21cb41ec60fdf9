/* Unchecked copies between tensors and the host, and runs. */
#ifndef CLEAT_SRC_EXEC_COPY_H
#define CLEAT_SRC_EXEC_COPY_H

#include "cleat/exec.h"
#include "core/gguf.h"

/* cleat_exec_write and cleat_exec_read without the checks that protect their callers: any tensor that has memory, at
 * any time; `values` has the bytes of the tensor. */
cleat_status cleat_exec_write_unchecked(cleat_exec *exec, size_t graph, const cleat_tensor *tensor, const void *values,
                                        cleat_error *error);
cleat_status cleat_exec_read_unchecked(cleat_exec *exec, size_t graph, const cleat_tensor *tensor, void *values,
                                       cleat_error *error);
/* cleat_exec_run and cleat_exec_run_nodes without a flush: the driver may hold the commands back until a
 * later run, an upload that waits for them, or a blocking call. For bursts of short launches, and where more
 * follows at once. */
cleat_status cleat_exec_enqueue(cleat_exec *exec, size_t graph, cleat_error *error);
cleat_status cleat_exec_enqueue_nodes(cleat_exec *exec, size_t graph, size_t first, size_t last, cleat_error *error);
/* Writes elements first .. first + count - 1 of a tensor, and, of a parameter, of its half weight. */
cleat_status cleat_exec_write_part(cleat_exec *exec, size_t graph, const cleat_tensor *tensor, int64_t first,
                                   int64_t count, const void *values, cleat_error *error);
/* The same of a parameter, from blocks of a GGUF file that hold `count` values: without rounding where the weight's
 * blocks can have these values. */
cleat_status cleat_exec_write_stored(cleat_exec *exec, const cleat_tensor *param, int64_t first, int64_t count,
                                     cleat_gguf_type type, const void *stored, cleat_error *error);
/* Copies beside the kernels (part_copy.c), of elements first .. first + count - 1 of a persistent tensor.
 * `values` belongs to the copy until it has ended. begin_read starts once everything enqueued so far is done,
 * and may overlap with later kernels; end_copy waits for it, and frees it also on an error. begin_write takes
 * its place among the kernels; it has ended when a later read has. */
typedef struct _cl_event cleat_copy;
cleat_status cleat_exec_begin_read(cleat_exec *exec, const cleat_tensor *tensor, int64_t first, int64_t count,
                                   void *values, cleat_copy **copy, cleat_error *error);
cleat_status cleat_exec_end_copy(cleat_exec *exec, cleat_copy *copy, cleat_error *error);
cleat_status cleat_exec_begin_write(cleat_exec *exec, const cleat_tensor *tensor, int64_t first, int64_t count,
                                    const void *values, cleat_error *error);
/* Writes the initial values of a parameter or buffer, those that cleat_exec_initialise draws from `seed`. */
cleat_status cleat_exec_initialise_one(cleat_exec *exec, cleat_tensor *tensor, uint64_t seed, cleat_error *error);

#endif
