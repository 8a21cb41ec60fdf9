/* Launches of the kernel that copies columns of one matrix to columns of another (cl/concat.cl). */
#ifndef CLEAT_SRC_OPS_COLUMNS_H
#define CLEAT_SRC_OPS_COLUMNS_H

#include "graph/launch.h"

/* Columns of a matrix that begin at column `at`; its rows are `stride` elements apart. */
typedef struct cleat_columns {
    const cleat_tensor *tensor; /* may be NULL as a source: zeros */
    int64_t at, stride;
} cleat_columns;

/* Columns of a tensor whose rows are all dimensions but the last, flattened; `tensor` may be NULL. */
cleat_columns cleat_columns_of(const cleat_tensor *tensor, int64_t at);

/* Launches to = accum + from for `rows` rows of `width` columns; accum (may be NULL) is laid out as `to`. */
void cleat_launch_columns(cleat_binder *binder, const cleat_node *node, cleat_columns from, const cleat_tensor *accum,
                          cleat_columns to, int64_t rows, int64_t width);

#endif
