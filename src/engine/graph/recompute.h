/* Gradient checkpointing (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost"): activations of
 * the forward part are not stored for the backward part, but recomputed when the backward part reaches them.
 *
 * A model marks segments (one per block) while it builds; how many of them form a group is a property of the
 * graph. Only those results of a group that other groups read are stored. cleat_backward emits a group's
 * forward nodes again, right before the gradients that read them, and removes those that nothing reads. The
 * originals then have short lifetimes. The results are bit-identical: copies keep op, attributes and inputs,
 * and gradients arrive in the same order. */
#ifndef CLEAT_SRC_RECOMPUTE_H
#define CLEAT_SRC_RECOMPUTE_H

#include "graph/graph.h"

/* Recomputes groups of `segments` consecutive segments. The last group, which may be smaller, is not
 * recomputed because its activations are needed at once. 0, the default: everything is stored. Call it before
 * cleat_backward. */
void cleat_graph_set_recompute(cleat_graph *graph, int segments);

/* Selective recomputation (after Korthikanti et al. 2022, "Reducing Activation Recomputation in Large
 * Transformer Models"): instead of segments, single outputs of cheap ops (cleat_op.cheap: GELU in f32, layer
 * normalization) are computed again right before the gradients that read them. Nothing else is: their inputs
 * are kept anyway. Call it before cleat_backward. */
void cleat_graph_recompute_cheap(cleat_graph *graph);

/* Ends a segment and begins the next at this position of the graph. Nodes before the first mark and after the
 * last belong to no segment. A second mark at the same position, or one after the forward part, has no
 * effect. */
void cleat_segment(cleat_graph *graph);

/* The number of segments: the number of marks less one; 0 without marks. */
size_t cleat_graph_segments(const cleat_graph *graph);

/* --- for autodiff.c ------------------------------------------------------------------------------------------- */

/* Emits the copies of the group that ends before node `end`, if there is one. Nodes that read or write a
 * state, or whose results are available anyway, are not copied, so that no side effect happens twice. */
void cleat_recompute_group(cleat_graph *graph, size_t end);

/* Emits copies of the cheap nodes whose outputs `node` reads, unless they have been copied. */
void cleat_recompute_inputs(cleat_graph *graph, const cleat_node *node);

/* Returns `node` with its tensors replaced by their current copies (cleat_current). */
cleat_node cleat_current_node(const cleat_node *node);

/* Removes the copies, both nodes and tensors, that nothing reads, and renumbers the rest. */
void cleat_recompute_prune(cleat_graph *graph);

#endif
