/* Attributes of nodes by name (cleat_op.attributes). */
#ifndef CLEAT_SRC_ATTRIBUTES_H
#define CLEAT_SRC_ATTRIBUTES_H

#include "graph/graph.h"

/* Element `i` of the attribute `name`; true or false is 1 or 0. Returns false, with *value unchanged, if the
 * op has no such attribute or element. */
bool cleat_node_attribute(const cleat_node *node, const char *name, int i, double *value);
/* Whether two nodes of the same op have equal attributes. */
bool cleat_node_same_attributes(const cleat_node *a, const cleat_node *b);

#endif
