/* The finite check (anomaly detection): runs a graph node by node and finds the first tensor that contains
 * Inf or NaN. */
#ifndef CLEAT_SRC_FINITE_CHECK_H
#define CLEAT_SRC_FINITE_CHECK_H

#include "cleat/exec.h"
#include "graph/graph.h"

typedef struct cleat_finite_check cleat_finite_check;

/* Result of scanning a float tensor; values of f16 and bf16 are converted to f32. */
typedef struct cleat_scan {
    int64_t elements; /* 0: not scanned */
    int64_t bad;      /* number of elements that are Inf or NaN */
    int64_t first;    /* index of the first of them */
    float value;      /* value of the first of them */
    float largest;    /* largest magnitude among the finite elements */
} cleat_scan;

/* The first tensor that is not finite. */
typedef struct cleat_anomaly {
    const cleat_tensor *tensor; /* NULL: all are finite */
    const cleat_node *node;     /* the node that wrote it; NULL: it was not finite before any node ran */
    /* A non-finite input of the graph that the node read; NULL: everything it read was finite. */
    const cleat_tensor *source;
    cleat_scan scan;               /* scan of `tensor` */
    cleat_scan source_scan;        /* scan of `source` */
    cleat_scan read[CLEAT_MAX_IN]; /* scans of node->in [n_in] as the node read them */
    size_t next;                   /* the first node that was not run */
} cleat_anomaly;

/* Allocates a buffer of a few KiB on the device, in addition to the plan's buffers and counted with them, and
 * starts compiling the scan kernel. `exec` must outlive the check. */
cleat_status cleat_finite_check_create(cleat_exec *exec, cleat_finite_check **check, cleat_error *error);
void cleat_finite_check_destroy(cleat_finite_check *check); /* NULL is allowed */

/* Runs the nodes [first, last) of graph `graph` like cleat_exec_run_nodes. Scans every tensor that they read
 * and no node writes, then every tensor that they write, padding included. A persistent tensor that is not
 * finite (a parameter) is found before any node runs. A non-finite input is reported with the first node
 * whose result is not finite either: an input that is never read, or that is masked, does no harm. Stops soon
 * after the first non-finite tensor without running the later nodes. Waits for the device. */
cleat_status cleat_finite_check_run(cleat_finite_check *check, size_t graph, size_t first, size_t last,
                                    cleat_anomaly *anomaly, cleat_error *error);

/* Snapshot and restore of device state around a diagnostic run: snapshot copies all states (buffers included)
 * to the host; restore writes them back and sets the gradients to zero, which is their state between two
 * optimizer steps. */
cleat_status cleat_finite_check_snapshot(cleat_finite_check *check, cleat_error *error);
cleat_status cleat_finite_check_restore(cleat_finite_check *check, cleat_error *error);

#endif
