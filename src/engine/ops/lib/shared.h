/* Helpers shared by op implementations. */
#ifndef CLEAT_SRC_OPS_SHARED_H
#define CLEAT_SRC_OPS_SHARED_H

#include "graph/launch.h"
#include "lib/shared_numbers.clh"

/* cleat_emit_grads by an op with the attributes of `node`, the copy that cleat_op.backward gets and may change. */
void cleat_emit_grads_of(cleat_graph *graph, const cleat_node *node, const cleat_op *op, cleat_tensor *const *in,
                         int n_in, cleat_tensor *const *targets, int n_targets);

/* Launches an elementwise kernel whose arguments are tensors [count] of one shape (entries may be NULL; the
 * last one is written) and their number of elements. */
void cleat_launch_elements(cleat_binder *binder, const cleat_node *node, const char *file, const char *kernel,
                           const cleat_tensor *const *tensors, int count);

/* BLOCKS for a kernel that reads `weight` (lib/blocks.clh): BLOCKS_NONE unless it is a frozen weight in blocks. */
static inline int32_t cleat_blocks_option(const cleat_tensor *weight) {
    return weight->dtype == CLEAT_Q8     ? BLOCKS_Q8
           : weight->dtype == CLEAT_NF4  ? BLOCKS_NF4
           : weight->dtype == CLEAT_Q4   ? BLOCKS_Q4
           : weight->dtype == CLEAT_HALF ? BLOCKS_HALF
                                         : BLOCKS_NONE;
}

/* The options of a kernel that reads rows of an embedding's table (lib/table_rows.clh). */
void cleat_launch_table(cleat_binder *binder, const cleat_tensor *table);

/* Ends the launch of an elementwise kernel (FOR_VECTORS of common.clh) over `elements` elements. */
void cleat_launch_elementwise(cleat_binder *binder, int64_t elements);

/* Fails unless in[i] has this dtype and shape. `what` is its name in the message ("gamma"). */
cleat_status cleat_expect(const cleat_node *node, int i, const char *what, cleat_dtype dtype, int rank,
                          const int64_t *shape, cleat_error *error);

#endif
