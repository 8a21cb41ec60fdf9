/* The row of an encoder's output that the rest of the network reads: the class token, or the last step.
 *
 * After its attention a block maps each row alone, so the last block of an encoder computes this row only:
 * the same values, and for a network of two blocks with d_ff = 4 d_model about three eighths fewer
 * multiply-adds. */
#ifndef CLEAT_SRC_NN_ROWS_H
#define CLEAT_SRC_NN_ROWS_H

#include "cleat/ops.h"

typedef struct cleat_read_row {
    cleat_end_row row;
    cleat_tensor *lengths; /* i32 [B], for the last row; may be NULL */
} cleat_read_row;

/* That row of each sample; x itself if `read` is NULL, which stands for all rows. x T [B, L, D] -> T [B, D]
 * or [B, L, D] */
cleat_tensor *cleat_nn_read_row(cleat_graph *graph, cleat_tensor *x, const cleat_read_row *read);

#endif
