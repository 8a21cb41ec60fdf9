/* Runs one node on the device and compares sampled elements of its outputs with its op's definition. */
#ifndef CLEAT_SRC_NODE_CHECK_H
#define CLEAT_SRC_NODE_CHECK_H

#include "exec/exec.h"

/* What was found so far. */
typedef struct cleat_node_check {
    int64_t nodes, elements; /* compared */
    double worst;            /* largest difference as a share of what is allowed */
} cleat_node_check;

/* Runs node `index` of graph `graph` (as cleat_exec_run_nodes) and adds to *result. The op has a definition.
 * Inputs and outputs are on the host only during the call. CLEAT_ERR_DEVICE: an element is wrong; the message
 * names operation, kernel and element. CLEAT_ERR_MEMORY: the host has no memory for the copies. */
cleat_status cleat_check_node(cleat_exec *exec, size_t graph, size_t index, cleat_node_check *result,
                              cleat_error *error);

/* Bytes of the largest tensor that is copied to the host: nodes with larger ones are run without a comparison. */
enum { CLEAT_CHECKED_BYTES = 1 << 30 };

#endif
