/* The gradient exchange of a step: buckets are copied to the host, summed over all ranks and copied back
 * while the backward pass runs; then ranks exchange the rows of tables that the batch touched
 * (ranks/row_sum.h). */
#ifndef CLEAT_SRC_ALLREDUCE_H
#define CLEAT_SRC_ALLREDUCE_H

#include "cleat/distributed_plan.h"
#include "fit/row_tables.h"
#include "ranks/row_sum.h"

/* Buckets of an eighth of the gradient, but not below 1 MiB. */
enum { CLEAT_EXCHANGE_BUCKETS = 8 };

/* An f32 table [rows, width] in a step: rows touched by the rank that touches most, and by any rank; at
 * most `rows`. */
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
    double seconds;         /* without overlap */
    double exposed_seconds; /* added to the step */
} cleat_exchange;

/* The exchange of `gradient` among `ranks` ranks. `backward_seconds`: backward pass of the last
 * micro-batch, on the rank where it is shortest; buckets become final at equal intervals during it, tables
 * (embeddings) at its end. `copied`: the devices have separate memory; tables are copied whole. All zeros
 * for one rank or an empty gradient. */
cleat_exchange cleat_exchange_estimate(int ranks, const cleat_gradient_load *gradient, const cleat_network *network,
                                       bool copied, double backward_seconds);

#endif
