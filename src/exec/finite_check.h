/* The watch: runs a graph node by node and finds the first tensor that holds Inf or NaN. */
#ifndef CLEAT_SRC_FINITE_CHECK_H
#define CLEAT_SRC_FINITE_CHECK_H

#include "cleat/exec.h"
#include "graph/graph.h"

typedef struct cleat_finite_check cleat_finite_check;

/* What a look at a tensor of floats says; f16 and bf16 as the f32 they stand for. */
typedef struct cleat_scan {
    int64_t elements; /* 0: not looked at */
    int64_t bad;      /* how many are Inf or NaN */
    int64_t first;    /* index of the first of them */
    float value;      /* the first of them */
    float largest;    /* the largest magnitude of the others */
} cleat_scan;

/* Which tensor went bad first. */
typedef struct cleat_anomaly {
    const cleat_tensor *tensor; /* NULL: none did */
    const cleat_node *node;     /* that wrote it; NULL: it was bad before any node ran */
    const cleat_tensor
        *source;     /* an input of the graph that was bad and that the node read; NULL: what it read was finite */
    cleat_scan scan; /* of `tensor` */
    cleat_scan source_scan;        /* of `source` */
    cleat_scan read[CLEAT_MAX_IN]; /* of node->in [n_in], as the node read them */
    size_t next;                   /* the first node that was not run */
} cleat_anomaly;

/* Allocates a buffer of a few KiB on the device, beside the plan's and counted as they are, and compiles its kernel. `exec` must
 * outlive the watch. */
cleat_status cleat_finite_check_create(cleat_exec *exec, cleat_finite_check **check, cleat_error *error);
void cleat_finite_check_destroy(cleat_finite_check *check); /* NULL is fine */

/* Runs the nodes [first, last) of graph `graph` as cleat_exec_run_nodes does, and looks at everything they read that no node writes, then at
 * everything they write, padding included. Something persistent that is bad (a parameter) is found before any node runs. An input that is
 * bad is found with the first node whose result is bad too: one that is read nowhere, or masked, does no harm. Ends soon after the first
 * bad tensor: later nodes are then not run. Waits for the device. */
cleat_status cleat_finite_check_run(cleat_finite_check *check, size_t graph, size_t first, size_t last,
                                    cleat_anomaly *anomaly, cleat_error *error);

/* Around runs that are to leave no trace: copies all states (buffers included) to the host; brings them back, and makes the gradients
 * zero, as they are between two optimizer steps. */
cleat_status cleat_finite_check_snapshot(cleat_finite_check *check, cleat_error *error);
cleat_status cleat_finite_check_restore(cleat_finite_check *check, cleat_error *error);

#endif
