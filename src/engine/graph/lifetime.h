/* Lifetimes of a graph's activations and workspaces, in node indices.
 *
 * Together with cleat_arena_bound this also gives the minimum memory of any part of a graph (the forward part
 * alone, a recomputed segment) without computing a layout. */
#ifndef CLEAT_SRC_LIFETIME_H
#define CLEAT_SRC_LIFETIME_H

#include "graph/arena.h"

/* Block i < graph->tensor_count holds tensor i. It has no bytes if the tensor is an input, a reshape, never
 * written, or stored in another tensor's bytes. Block graph->tensor_count + n is the workspace of node n. */
typedef struct cleat_lifetimes {
    cleat_block *blocks; /* [count], count = graph->tensor_count + graph->node_count */
    size_t count;
    /* [graph->tensor_count] the block that holds a tensor's bytes; -1: not an activation, or never
     * written. */
    int32_t *storage;
} cleat_lifetimes;

/* Finds the lifetimes for the given workspace sizes (workspace_bytes [graph->node_count]). An activation
 * lives from the node that writes it to the last node that reads it or a reshape of it; to the end of the
 * graph if `retain` is set. The first output of a node reuses the bytes of an input if op->inplace_inputs
 * allows it and no later node reads that input. Reshape nodes (which have no variants) neither read nor
 * write. CLEAT_ERR_ARGUMENT: a node reads an activation that no earlier node wrote, or a tensor of another
 * graph. On success, release `lifetimes` with cleat_lifetimes_clear. */
cleat_status cleat_lifetimes_find(const cleat_graph *graph, const int64_t *workspace_bytes, cleat_lifetimes *lifetimes,
                                  cleat_error *error);
void cleat_lifetimes_clear(cleat_lifetimes *lifetimes);

#endif
