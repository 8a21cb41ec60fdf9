/* The rows of an encoder's output that the network goes on with: the class token, the last step, the masked tokens. */
#ifndef CLEAT_SRC_NN_ROWS_H
#define CLEAT_SRC_NN_ROWS_H

#include "cleat/ops.h"

typedef enum cleat_rows_read { CLEAT_READ_ALL, CLEAT_READ_ONE, CLEAT_READ_MARKED } cleat_rows_read;

/* All members zero: all rows. */
typedef struct cleat_read_rows {
    cleat_rows_read which;
    cleat_row row;         /* CLEAT_READ_ONE */
    cleat_tensor *lengths; /* CLEAT_READ_ONE: i32 [B], for the last row; may be NULL */
    cleat_tensor *marks;   /* CLEAT_READ_MARKED: i32 [B, L], as in cleat_select_marked */
    int64_t count;         /* CLEAT_READ_MARKED: rows of a sample */
    cleat_tensor **chosen; /* CLEAT_READ_MARKED: receives the marks of the rows, i32 [B, count]; may be NULL */
} cleat_read_rows;

/* x T [B, L, D] -> T [B, L, D], [B, D] or [B, count, D] */
cleat_tensor *cleat_nn_read_rows(cleat_graph *graph, cleat_tensor *x, const cleat_read_rows *rows);

#endif
