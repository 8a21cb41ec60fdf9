/* Helpers for losses on traces: per-residue planes and partial sums in the workspace, the weights of a term,
 * and the total. */
#ifndef CLEAT_SRC_OPS_TRACE_LOSS_H
#define CLEAT_SRC_OPS_TRACE_LOSS_H

#include "graph/launch.h"

/* x is the trace [B, L, 3]. A plane holds one value per residue of a chain, padded so that full vectors can
 * be read. */
int64_t cleat_trace_stride(const cleat_tensor *x);
/* Workspace bytes of `planes` planes per chain, and of two values (sum, count) per residue; multiples of
 * 256. */
int64_t cleat_trace_planes_bytes(const cleat_tensor *x, int planes);
int64_t cleat_trace_rows_bytes(const cleat_tensor *x);

/* Checks that x is not too large, and that sample_weight is f32 [terms, B] and has a row `term`. */
cleat_status cleat_trace_check(const cleat_node *node, const cleat_tensor *x, const cleat_tensor *sample_weight,
                               int term, cleat_error *error);
/* Adds row `term` of sample_weight to the launch's arguments. */
void cleat_trace_launch_sample_weight(cleat_binder *binder, const cleat_tensor *x, const cleat_tensor *sample_weight,
                                      int term);
/* Launches the reduction of the sums at byte offset `rows` of the workspace to out[0], the term, and out[1],
 * 1 / count of each chain. */
void cleat_trace_launch_total(cleat_binder *binder, const cleat_node *node, const cleat_tensor *x,
                              const cleat_tensor *sample_weight, int term, int64_t rows);

#endif
