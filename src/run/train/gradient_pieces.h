/* The gradient of a step in the pieces in which ranks exchange it: parameters in reverse order of
 * declaration, which is the order in which backward completes their gradients.
 *
 * Pieces and their order depend only on the parameters, so they are the same on all ranks, whatever their
 * micro-batches. Pieces are contiguous in the host's copy; in the flat buffer on the device a piece is in
 * several runs, because parameters of one update rule are adjacent there. */
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
    /* Number of nodes of the bucket's training graph after which this piece and those before it are final. */
    size_t ready[CLEAT_BUCKETS];
    int table; /* number of its table in cleat_pieces.tables, or -1 */
} cleat_piece;

typedef struct cleat_pieces {
    size_t count;
    cleat_piece list[CLEAT_PIECES];
    cleat_gradient_run *runs; /* [run_count], those of a piece are adjacent */
    size_t run_count;
    int64_t elements; /* of the host's copy */
    cleat_row_table tables[CLEAT_TABLES];
    int table_count;
} cleat_pieces;

/* CLEAT_ERR_MEMORY. The caller closes it, also after an error. */
cleat_status cleat_pieces_cut(cleat_pieces *pieces, const cleat_workload *work, cleat_error *error);
void cleat_pieces_close(cleat_pieces *pieces);

#endif
