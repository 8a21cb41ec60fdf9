/* Extracts a node from its graph in order to run it alone, for example to time its kernels. */
#ifndef CLEAT_SRC_EXTRACT_NODE_H
#define CLEAT_SRC_EXTRACT_NODE_H

#include "graph/graph.h"

/* Appends to the empty `graph` a node with the op and the attributes of `node` (a node of any graph) and with
 * tensors of the same types and shapes. Returns the node, or NULL with the graph's error. Inputs become
 * states "in.0", "in.1", ... of the graph's store: they are allocated once for all graphs of that store that
 * contain the same node, and no other tensor reuses their bytes. Tensors that are identical in the original
 * stay identical: an input that `node` changes in place is changed in place by the copy. */
cleat_node *cleat_extract_node(cleat_graph *graph, const cleat_node *node);

#endif
