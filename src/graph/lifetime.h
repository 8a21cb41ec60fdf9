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
 * graph when it is kept. A node's first output takes over an input's bytes where op->inplace_inputs allows and nobody
 * misses them. Reshape nodes (no variants) neither read nor write. CLEAT_ERR_ARGUMENT: a node reads an
 * activation that no earlier node wrote, or a tensor of another graph. */
cleat_status cleat_lifetimes_find(const cleat_graph *graph, const int64_t *workspace_bytes, cleat_lifetimes *lifetimes,
                                  cleat_error *error);
void cleat_lifetimes_clear(cleat_lifetimes *lifetimes);

#endif
