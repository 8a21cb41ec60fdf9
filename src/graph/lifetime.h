/* When the bytes of a graph's activations and workspaces are in use, in node indices.
 *
 * With cleat_arena_bound this also answers what any part of a graph needs at least (forward only, a
 * checkpointed segment) without laying anything out. */
#ifndef CLEAT_SRC_LIFETIME_H
#define CLEAT_SRC_LIFETIME_H

#include "graph/arena.h"

/* Block i < graph->tensor_count holds tensor i; it has no bytes where the tensor is an input, a reshape,
 * never written, or lies in another's bytes. Block graph->tensor_count + n is the workspace of node n. */
typedef struct cleat_lifetimes {
    cleat_block *blocks; /* [count], count = graph->tensor_count + graph->node_count */
    size_t count;
    int32_t *storage; /* [graph->tensor_count] the block a tensor's bytes are in; -1: not an activation, or
                         never written */
} cleat_lifetimes;

/* Finds the lifetimes for workspaces of these sizes (workspace_bytes [graph->node_count]). An activation
 * lives from the node that writes it to the last node that reads it or a reshape of it; to the end of the
 * graph when it is kept. A node's first output takes over an input's bytes where op->share allows and nobody
 * misses them. Reshape nodes (no variants) neither read nor write. CLEAT_ERR_ARGUMENT: a node reads an
 * activation that no earlier node wrote, or a tensor of another graph. */
cleat_status cleat_lifetimes_find(const cleat_graph *graph, const int64_t *workspace_bytes, cleat_lifetimes *lifetimes,
                                  cleat_error *error);
void cleat_lifetimes_clear(cleat_lifetimes *lifetimes);

/* The tensor whose bytes these are: the base of a reshape, else the tensor itself. */
static inline const cleat_tensor *cleat_root(const cleat_tensor *tensor) {
    return tensor->base ? tensor->base : tensor;
}

/* Which of the flat buffers holds tensors of this role (cleat_store.flat); -1: none. */
static inline int cleat_flat_index(cleat_role role) {
    switch (role) {
    case CLEAT_ROLE_PARAMETER:
        return CLEAT_FLAT_PARAMETERS;
    case CLEAT_ROLE_GRADIENT:
        return CLEAT_FLAT_GRADIENTS;
    case CLEAT_ROLE_MOMENT1:
        return CLEAT_FLAT_MOMENTS1;
    case CLEAT_ROLE_MOMENT2:
        return CLEAT_FLAT_MOMENTS2;
    case CLEAT_ROLE_COPY:
        return CLEAT_FLAT_COPIES;
    default:
        return -1;
    }
}

/* What its bytes are for. */
static inline cleat_category cleat_flat_category(int flat) {
    static const cleat_category categories[CLEAT_FLATS] = {[CLEAT_FLAT_PARAMETERS] = CLEAT_BYTES_PARAMETERS,
                                                           [CLEAT_FLAT_GRADIENTS] = CLEAT_BYTES_GRADIENTS,
                                                           [CLEAT_FLAT_MOMENTS1] = CLEAT_BYTES_OPTIMIZER,
                                                           [CLEAT_FLAT_MOMENTS2] = CLEAT_BYTES_OPTIMIZER,
                                                           [CLEAT_FLAT_COPIES] = CLEAT_BYTES_COPIES};
    return categories[flat];
}

#endif
