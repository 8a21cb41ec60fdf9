/* The sum over ranks of a table of which each rank has only some rows, such as the gradient of an embedding.
 *
 * Every rank has the row marks of all, so all choose the same way, the one that moves the fewest bytes: an
 * ordinary sum of the whole table; an ordinary sum of the packed rows that any rank has; or every rank
 * sends its own rows to all. */
#ifndef CLEAT_SRC_RANKS_ROW_SUM_H
#define CLEAT_SRC_RANKS_ROW_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cleat_row_sum {
    float *values; /* [rows, width] on this rank: 0 in the rows that it does not have; then the sums */
    int64_t rows, width;
    /* Rank k has row r if bit r % 64 of marks[k * stride + r / 64] is set. Bits from `rows` on are 0. */
    const uint64_t *marks;
    size_t stride;
    float *scratch; /* [cleat_row_sum_scratch] */
} cleat_row_sum;

/* The operations used by the sum, those of cleat_transport or equivalent ones. They return false on a
 * failure. */
typedef struct cleat_row_exchange {
    void *user;
    int rank, count;
    bool (*sum)(void *user, float *values, size_t count);
    bool (*gather)(void *user, const void *bytes, size_t size, void *all);
} cleat_row_exchange;

/* How the sum is made. */
typedef enum cleat_row_way {
    CLEAT_ROWS_WHOLE, /* ordinary sum of the whole table */
    CLEAT_ROWS_UNION, /* ordinary sum of the packed rows that any rank has */
    CLEAT_ROWS_OWN,   /* every rank sends its own rows to all */
} cleat_row_way;

/* The way that moves the fewest bytes over a ring. most: rows of the rank with the most; any: rows that
 * any rank has. */
cleat_row_way cleat_row_sum_way(int ranks, int64_t rows, int64_t most, int64_t any);

/* Words of 64 bits for the marks of a table. */
static inline size_t cleat_row_words(int64_t rows) {
    return (size_t)(rows + 63) / 64;
}
/* Elements of scratch memory. */
size_t cleat_row_sum_scratch(int64_t rows, int64_t width, int ranks);
/* *squares: the sum of the squares of the sums in order, in double precision. False: the exchange failed.
 * With two ranks the bits are those of a sum of the whole table; with more, all ranks have the same bits,
 * and the last ones may depend on the way. */
bool cleat_row_sum_run(const cleat_row_sum *table, const cleat_row_exchange *exchange, double *squares);

#endif
