/* Checks of single operations against double precision on the host, for sizes and effects that no reference
 * trajectory covers. */
#ifndef CLEAT_SRC_OP_CHECKS_H
#define CLEAT_SRC_OP_CHECKS_H

#include "cleat/device.h"
#include "cleat/graph.h"
#include "cleat/verify.h"

enum { CLEAT_OP_CHECKS = 10 };

/* Appends op check `index`, computed in `storage`, to the empty `graph`, including gradients. */
void cleat_op_check_build(cleat_graph *graph, int index, cleat_dtype storage);

/* Runs all op checks with the variants of a rank (see cleat_verify_subject) and compares every result by the
 * largest difference divided by the largest value. *more: some node has variants of a higher rank. Free the
 * report with cleat_verify_free. */
cleat_status cleat_verify_ops(cleat_device *device, cleat_dtype storage, int rank, bool *more,
                              cleat_verify_report *report, cleat_error *error);

#endif
