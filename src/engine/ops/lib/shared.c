/* Helpers shared by op implementations; independent of any particular op. */
#include "ops/lib/shared.h"

#include <stdio.h>
#include <string.h>

void cleat_emit_grads_of(cleat_graph *graph, const cleat_node *node, const cleat_op *op, cleat_tensor *const *in,
                         int n_in, cleat_tensor *const *targets, int n_targets) {
    cleat_emit_grads(graph, &(cleat_grads_spec){.op = op,
                                                .attr = node->attr,
                                                .attr_bytes = sizeof node->attr,
                                                .in = in,
                                                .n_in = n_in,
                                                .targets = targets,
                                                .n_targets = n_targets});
}

void cleat_launch_elementwise(cleat_binder *binder, int64_t elements) {
    int64_t vector_width = binder->facts->vector_width;
    cleat_launch_items(binder, (elements + vector_width - 1) / vector_width);
}

void cleat_launch_elements(cleat_binder *binder, const cleat_node *node, const char *file, const char *kernel,
                           const cleat_tensor *const *tensors, int count) {
    const cleat_tensor *result = tensors[count - 1];
    cleat_launch_vector_kernel(binder, node, file, kernel, result->dtype, 0);
    for (int i = 0; i < count; ++i) cleat_launch_tensor(binder, tensors[i]);
    cleat_launch_i64(binder, "n", cleat_tensor_elements(result));
    cleat_launch_elementwise(binder, cleat_tensor_elements(result));
}

cleat_status cleat_expect(const cleat_node *node, int i, const char *what, cleat_dtype dtype, int rank,
                          const int64_t *shape, cleat_error *error) {
    cleat_tensor wanted = {.dtype = dtype, .rank = rank};
    memcpy(wanted.shape, shape, (size_t)rank * sizeof *shape);
    const cleat_tensor *got = node->in[i];
    if (got && got->dtype == dtype && cleat_same_shape(got, &wanted)) return CLEAT_OK;
    return cleat_infer_fail(node, error, "%s is %s, it must be %s", what, CLEAT_DESCRIBED(got),
                            CLEAT_DESCRIBED(&wanted));
}

void cleat_launch_table(cleat_binder *binder, const cleat_tensor *table) {
    const int32_t blocks = cleat_blocks_option(table);
    if (blocks)
        cleat_launch_define(binder, "BLOCKS", blocks);
    else if (table->dtype != CLEAT_F32)
        cleat_launch_define(binder, "HALF_TABLE", 1);
}
