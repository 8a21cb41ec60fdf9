/* What losses over rows share: x [..., W] has a label or a target a row, and a weight, so that
 *
 *   loss f32 [1] = sum over rows of sample_weight[row] * loss of the row.
 *
 * The rows' losses, weighted, go to `rows` floats of the node's workspace; the total adds them in a fixed order. */
#ifndef CLEAT_SRC_OPS_ROW_LOSS_H
#define CLEAT_SRC_OPS_ROW_LOSS_H

#include "graph/launch.h"

/* x must be of a storage type, of 1 to `max_width` columns; makes out[0], the loss. */
cleat_status cleat_row_loss_infer(cleat_node *node, const cleat_tensor *x, int64_t max_width, cleat_error *error);
/* in[i] must have one element a row of x, in any shape: [B, L] or [B L]. */
cleat_status cleat_row_loss_expect(const cleat_node *node, int i, const char *what, cleat_dtype dtype,
                                   const cleat_tensor *x, cleat_error *error);
/* Launches the total: `rows` floats from the workspace's beginning become out[0]. */
void cleat_launch_row_loss_total(cleat_binder *binder, const cleat_node *node, int64_t rows);

#endif
