/* Helpers for losses on traces: per-residue planes and partial sums in the workspace, the weights of a term,
 * and the totals. */
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
/* Terms that a launch may have at most: structure_loss.cl has four arguments for each of their parameters. */
enum { CLEAT_TRACE_TERMS = 4 };

/* Checks that x is not too large, and that sample_weight is f32 [terms, B] and has a row `term`. */
cleat_status cleat_trace_check(const cleat_node *node, const cleat_tensor *x, const cleat_tensor *sample_weight,
                               int term, cleat_error *error);
/* Adds row `term` of sample_weight to the launch's arguments. */
void cleat_trace_launch_sample_weight(cleat_binder *binder, const cleat_tensor *x, const cleat_tensor *sample_weight,
                                      int term);
/* Launches the reduction of the sums [count, 2, B, L] at byte offset `rows` of the workspace to out[i], the terms
 * i < count, and out[count], 1 / items of each chain [count, B]. terms [count]: their rows of sample_weight. */
void cleat_trace_launch_total(cleat_binder *binder, const cleat_node *node, const cleat_tensor *x,
                              const cleat_tensor *sample_weight, const int32_t *terms, int count, int64_t rows);
/* Adds `count` of CLEAT_TRACE_TERMS tensors to the launch's arguments; the others are NULL. */
void cleat_trace_launch_tensors(cleat_binder *binder, cleat_tensor *const *tensors, int count);

#endif
