/* Memory statistics of a finished plan: they explain the size of its arena and what fused kernels save. Pure;
 * computes no layout. */
#ifndef CLEAT_SRC_MEMORY_PROFILE_H
#define CLEAT_SRC_MEMORY_PROFILE_H

#include "graph/plan.h"

/* Contents of the arena's bytes at a given node. */
typedef enum cleat_peak_part {
    CLEAT_PEAK_STORED,     /* results of forward nodes */
    CLEAT_PEAK_RECOMPUTED, /* results of recomputed forward nodes (recompute.h) */
    CLEAT_PEAK_GRADIENTS,  /* results of other backward nodes */
    CLEAT_PEAK_WORKSPACE,  /* workspace of the running node */
    CLEAT_PEAK_PARTS_COUNT,
} cleat_peak_part;

/* All numbers are sums of sizes aligned as in the plan, hence the minimum size of an arena for this graph
 * alone. Two tensors that share bytes in place count once, as what they hold at the peak, namely the result
 * written last. */
typedef struct cleat_memory_profile {
    int64_t forward_peak;  /* most live bytes at a forward node, including what is stored for backward */
    int64_t training_peak; /* the same over all nodes; >= forward_peak */
    /* First node with that many bytes; NULL: no nodes. */
    const cleat_node *forward_peak_node, *training_peak_node;
    int64_t parts[CLEAT_PEAK_PARTS_COUNT]; /* of training_peak; the parts add up to it */
} cleat_memory_profile;

/* Computes the statistics of graph number `graph` of the plan. */
cleat_status cleat_memory_profile_find(const cleat_plan *plan, size_t graph, cleat_memory_profile *memory,
                                       cleat_error *error);

/* Fills parts [nodes of graph number `graph`] with the live bytes while each node runs. */
cleat_status cleat_graph_live_parts(const cleat_plan *plan, size_t graph, int64_t (*parts)[CLEAT_PEAK_PARTS_COUNT],
                                    cleat_error *error);

#endif
