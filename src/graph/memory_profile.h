/* Where a graph's memory goes: the figures of a finished plan that explain its arena, and what fused kernels spare.
 * Pure; lays nothing out. */
#ifndef CLEAT_SRC_MEMORY_PROFILE_H
#define CLEAT_SRC_MEMORY_PROFILE_H

#include "graph/plan.h"

/* What the bytes of the arena hold at a moment. */
typedef enum cleat_peak_part {
    CLEAT_PEAK_STORED,     /* results of forward nodes */
    CLEAT_PEAK_RECOMPUTED, /* results of forward nodes that were computed again (recompute.h) */
    CLEAT_PEAK_GRADIENTS,  /* results of other backward nodes */
    CLEAT_PEAK_WORKSPACE,  /* of the node at hand */
    CLEAT_PEAK_PARTS_COUNT,
} cleat_peak_part;

/* Bytes are sums of sizes aligned as the plan aligns them: the least an arena for this graph alone can have. Two
 * tensors that share bytes in place count once, as what they hold at the peak: the result written last. */
typedef struct cleat_memory_profile {
    int64_t forward_peak;  /* most bytes alive at a forward node, what is stored for backward included */
    int64_t training_peak; /* at any node: at least forward_peak */
    const cleat_node *forward_peak_node, *training_peak_node; /* the first node with that many; NULL: no nodes */
    int64_t parts[CLEAT_PEAK_PARTS_COUNT];                    /* of training_peak; they add up to it */
} cleat_memory_profile;

/* The figures of the plan's graph number `graph`. */
cleat_status cleat_memory_profile_find(const cleat_plan *plan, size_t graph, cleat_memory_profile *memory,
                                       cleat_error *error);

/* live [nodes of graph number `graph`]: bytes alive while each node runs. */
cleat_status cleat_graph_live(const cleat_plan *plan, size_t graph, int64_t *live, cleat_error *error);

/* What the forward nodes' kernels keep to themselves (cleat_op.fused_bytes): all nodes together, and the largest. */
void cleat_graph_fused(const cleat_graph *graph, int64_t *sum, int64_t *largest);

#endif
