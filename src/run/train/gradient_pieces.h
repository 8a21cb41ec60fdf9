/* The gradient of a step in the pieces in which ranks exchange it: parameters in the opposite order of their declaration, which is
 * the order in which backward makes their gradients final.
 *
 * Pieces and their order follow from the parameters alone, so they are the same on all ranks, whatever their micro-batches. The
 * host's copy has the pieces one after the other; a flat buffer on the device has a piece in several runs, because parameters of one
 * rule lie side by side there. */
#ifndef CLEAT_SRC_GRADIENT_PIECES_H
#define CLEAT_SRC_GRADIENT_PIECES_H

#include "fit/row_tables.h"

/* Tables whose gradient is exchanged by rows are pieces of their own. */
enum { CLEAT_DENSE_PIECES = 16, CLEAT_PIECES = CLEAT_DENSE_PIECES + 2 * CLEAT_TABLES };

typedef struct cleat_gradient_run {
    int64_t flat, host, elements; /* first element in the flat gradient and in the host's copy */
} cleat_gradient_run;

typedef struct cleat_piece {
    size_t first_run, runs;
    int64_t first, elements; /* in the host's copy */
    /* Nodes of the bucket's training graph after which it is final, and the pieces before it are. */
    size_t ready[CLEAT_BUCKETS];
    int table; /* number of the table (cleat_pieces.tables) that it is, or -1 */
} cleat_piece;

typedef struct cleat_pieces {
    size_t count;
    cleat_piece list[CLEAT_PIECES];
    cleat_gradient_run *runs; /* [run_count], those of a piece side by side */
    size_t run_count;
    int64_t elements; /* of the host's copy */
    cleat_row_table tables[CLEAT_TABLES];
    int table_count;
} cleat_pieces;

/* CLEAT_ERR_MEMORY. The caller closes it, also after an error. */
cleat_status cleat_pieces_cut(cleat_pieces *pieces, const cleat_workload *work, cleat_error *error);
void cleat_pieces_close(cleat_pieces *pieces);

#endif
