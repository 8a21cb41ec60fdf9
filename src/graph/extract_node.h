/* A node taken out of its graph, to be run by itself: for whoever times kernels. */
#ifndef CLEAT_SRC_EXTRACT_NODE_H
#define CLEAT_SRC_EXTRACT_NODE_H

#include "graph/graph.h"

/* Appends a node with the op, the attributes, and tensors of the types and shapes of `node` (a node of any graph) to the
 * empty `graph`; returns it, or NULL with the graph's error. Inputs become states "in.0", "in.1", ... of the graph's
 * store: they lie there once, however many graphs of that store have the same node, and nothing takes their bytes. What
 * was one tensor stays one: an input that `node` changes in place is changed in place. */
cleat_node *cleat_extract_node(cleat_graph *graph, const cleat_node *node);

#endif
