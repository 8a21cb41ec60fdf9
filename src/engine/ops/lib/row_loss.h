/* Helpers for losses over rows: x [..., W] has a label or a target, and a weight, per row, and
 *
 *   loss f32 [1] = sum over rows of sample_weight[row] * loss of the row.
 *
 * The weighted losses of the rows go to `rows` floats of the node's workspace; the final launch adds them in
 * a fixed order. */
#ifndef CLEAT_SRC_OPS_ROW_LOSS_H
#define CLEAT_SRC_OPS_ROW_LOSS_H

#include "graph/launch.h"

/* x must have a storage type and 1 to `max_width` columns; sets out[0], the loss. */
cleat_status cleat_row_loss_infer(cleat_node *node, const cleat_tensor *x, int64_t max_width, cleat_error *error);
/* in[i] must have one element per row of x, in any shape: [B, L] or [B L]. */
cleat_status cleat_row_loss_expect(const cleat_node *node, int i, const char *what, cleat_dtype dtype,
                                   const cleat_tensor *x, cleat_error *error);
/* cleat_variant.workspace of a loss over the rows of in[0]. */
int64_t cleat_row_loss_workspace(const cleat_node *node, const cleat_device_facts *facts);
/* Launches the final sum: out[0] = sum of the `rows` floats at the start of the workspace. */
void cleat_launch_row_loss_total(cleat_binder *binder, const cleat_node *node, int64_t rows);

#endif
