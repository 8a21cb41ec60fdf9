/* The rows of tables that the global batch of a step touches, on all ranks. Ranks exchange them before
 * their last micro-batch, so they are known when the gradients are ready. */
#ifndef CLEAT_SRC_TOUCHED_ROWS_H
#define CLEAT_SRC_TOUCHED_ROWS_H

#include "ranks/ranks.h"
#include "session/session.h"
#include "train/gradient_pieces.h"

typedef struct cleat_touched_rows {
    uint64_t *own, *all; /* marks [stride] of this rank, [ranks, stride] of all, in the layout of cleat_row_sum */
    size_t stride, first_word[CLEAT_TABLES];
    float *scratch;      /* of the sums */
    bool every;          /* all rows are exchanged: CLEAT_RANKS_DENSE is set on this rank, for tests and measurements */
    bool announced;      /* in this step */
    cleat_row_sum *sums; /* [tables] */
} cleat_touched_rows;

/* Memory for the tables of `pieces`; values [pieces->elements] is the host's copy of the gradient, borrowed.
 * CLEAT_ERR_MEMORY. The caller closes it, also after an error. */
cleat_status cleat_touched_rows_open(cleat_touched_rows *rows, const cleat_pieces *pieces, int ranks, float *values,
                                     cleat_error *error);
void cleat_touched_rows_close(cleat_touched_rows *rows);

/* Begins a step: no row is touched yet. */
void cleat_touched_rows_begin(cleat_touched_rows *rows);
/* Adds the rows that a micro-batch touches; inputs: of the training graph of the bucket, as they are uploaded. */
void cleat_touched_rows_add(cleat_touched_rows *rows, const cleat_pieces *pieces, const cleat_session *session,
                            size_t bucket, const void *inputs);
/* Sends the rows to the other ranks, once per step; does nothing without tables. All ranks call it before
 * they sum. */
cleat_status cleat_touched_rows_announce(cleat_touched_rows *rows, cleat_ranks *ranks, cleat_error *error);

#endif
