/* Forward nodes that run in the backward part, just before their gradient. A loss over a large vocabulary is
 * computed in parts: if all of them ran before the first gradient, the logits of all parts would have to be kept,
 * or computed twice. */
#ifndef CLEAT_SRC_DEFER_H
#define CLEAT_SRC_DEFER_H

#include "graph/graph.h"

/* Defers the node that computes the tensor, if cleat_backward differentiates it; returns the tensor. All nodes after
 * the first deferred one must be deferred, or be results that read deferred ones: these run after the backward
 * part. */
cleat_tensor *cleat_defer(cleat_tensor *tensor);

/* --- for autodiff.c ------------------------------------------------------------------------------------------- */

/* Moves a deferred node, behind those that compute its inputs, to the end of the graph. */
void cleat_defer_move(cleat_graph *graph, cleat_node *node);
/* Closes the gaps, moves the readers of deferred nodes to the end, and renumbers the nodes. */
void cleat_defer_finish(cleat_graph *graph);

#endif
