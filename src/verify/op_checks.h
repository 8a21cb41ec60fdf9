/* Single operations against double precision on the host: what no reference trajectory is large enough for, or does not show. */
#ifndef CLEAT_SRC_OP_CHECKS_H
#define CLEAT_SRC_OP_CHECKS_H

#include "cleat/device.h"
#include "cleat/graph.h"
#include "cleat/verify.h"

enum { CLEAT_OP_CHECKS = 6 };

/* Appends piece `index`, computed in `storage`, to the empty `graph`, gradients included. */
void cleat_op_check_build(cleat_graph *graph, int index, cleat_dtype storage);

/* Runs all pieces with the variants of a rank (see cleat_verify_subject) and compares every result: the largest difference over the largest
 * value. *more: some node has variants of a higher rank. cleat_verify_free. */
cleat_status cleat_verify_ops(cleat_device *device, cleat_dtype storage, int rank, bool *more,
                              cleat_verify_report *report, cleat_error *error);

#endif
