/* The rows of an encoder's output that the network goes on with: the class token, the last step. */
#ifndef CLEAT_SRC_NN_ROWS_H
#define CLEAT_SRC_NN_ROWS_H

#include "cleat/ops.h"

typedef enum cleat_rows_read { CLEAT_READ_ALL, CLEAT_READ_ONE } cleat_rows_read;

/* All members zero: all rows. */
typedef struct cleat_read_rows {
    cleat_rows_read which;
    cleat_row row;         /* CLEAT_READ_ONE */
    cleat_tensor *lengths; /* CLEAT_READ_ONE: i32 [B], for the last row; may be NULL */
} cleat_read_rows;

/* x T [B, L, D] -> T [B, L, D] or [B, D] */
cleat_tensor *cleat_nn_read_rows(cleat_graph *graph, cleat_tensor *x, const cleat_read_rows *rows);

#endif
