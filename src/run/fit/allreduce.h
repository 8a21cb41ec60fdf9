/* The exchange of a step: the gradient in buckets, copied to the host, summed over all ranks and copied back, while the backward
 * pass still computes; then the tables, of which ranks exchange the rows that the batch touched (ranks/row_sum.h). */
#ifndef CLEAT_SRC_ALLREDUCE_H
#define CLEAT_SRC_ALLREDUCE_H

#include "cleat/distributed_plan.h"
#include "fit/row_tables.h"
#include "ranks/row_sum.h"

/* Buckets of an eighth of the gradient, but not below 1 MiB. */
enum { CLEAT_EXCHANGE_BUCKETS = 8 };

/* A table [rows, width] of f32 in a step: rows of the rank that touches most, and of all together; at most `rows`. */
typedef struct cleat_table_load {
    int64_t rows, width, most, any;
} cleat_table_load;

/* What a step exchanges. */
typedef struct cleat_gradient_load {
    int64_t bytes; /* f32, without the tables */
    int tables;
    cleat_table_load table[CLEAT_TABLES];
} cleat_gradient_load;

typedef struct cleat_exchange {
    cleat_allreduce way; /* the fastest for a bucket */
    int buckets;         /* without the tables */
    cleat_row_way table_ways[CLEAT_TABLES];
    /* Bytes that each rank sends for a table if sums are rings, the marks of its rows included. */
    int64_t table_bytes[CLEAT_TABLES];
    int64_t sent_bytes;     /* the same of the whole exchange */
    double seconds;         /* if nothing else went on */
    double exposed_seconds; /* by which the step becomes longer */
} cleat_exchange;

/* The exchange of `gradient` among `ranks` ranks. `backward_seconds`: of the last micro-batch, on the rank where it is shortest; the
 * buckets become final in it one after the other, in equal intervals, and tables, which are embeddings, with its end. `copied`: the
 * devices have separate memory; tables are copied whole. All zero for one rank, or without bytes. */
cleat_exchange cleat_exchange_estimate(int ranks, const cleat_gradient_load *gradient, const cleat_network *network,
                                       bool copied, double backward_seconds);

#endif
