/* Gradient checkpointing (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost"): activations of
 * the forward part are not stored for the backward part but computed again when it reaches them.
 *
 * A model marks segments (a block each) while it builds; how many of them make a group is a property of the
 * graph. Of a group only what other groups read is stored. cleat_backward emits a group's forward nodes once
 * more, right before the gradients that read them, and removes those nobody reads: the planner then sees that
 * the originals die early. The result has the same bits: copies keep op, attributes and inputs, gradients
 * arrive in the same order. */
#ifndef CLEAT_SRC_RECOMPUTE_H
#define CLEAT_SRC_RECOMPUTE_H

#include "graph/graph.h"

/* Groups of `segments` consecutive segments are computed again; the last group may be smaller and is not (its
 * activations are needed at once). 0, the default: everything is stored. To be called before cleat_backward. */
void cleat_graph_set_recompute(cleat_graph *graph, int segments);

/* Ends a segment and begins the next at this place in the graph. Nodes before the first mark and after the
 * last belong to none. A mark where there is one already, or behind the forward part, changes nothing. */
void cleat_segment(cleat_graph *graph);

/* The number of segments: marks but one; 0 without marks. */
size_t cleat_graph_segments(const cleat_graph *graph);

/* --- for autodiff.c ------------------------------------------------------------------------------------------- */

/* Emits the copies of the group that ends before node `end`; does nothing where none does. Nodes that touch a
 * state, or whose results are at hand in any case, are not copied: nothing happens twice. */
void cleat_recompute_group(cleat_graph *graph, size_t end);

/* `node` with the tensors that hold the values by now. */
cleat_node cleat_current_node(const cleat_node *node);

/* Removes the copies, nodes and tensors, that nobody reads, and numbers the rest anew. */
void cleat_recompute_prune(cleat_graph *graph);

#endif
