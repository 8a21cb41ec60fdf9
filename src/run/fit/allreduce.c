/* Time of an all-reduce in the usual model: a message of n bytes takes alpha + n beta, alpha the latency and
 * beta the inverse of the bandwidth, and a rank can send and receive at once. For p ranks:
 *   ring                2 (p - 1) alpha + 2 (p - 1) / p n beta
 *                       P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations,
 *                       J. Parallel Distrib. Comput. 69 (2009)
 *   tree                2 ceil(log2 p) (alpha + n beta): a binomial tree to one rank, and back
 *   recursive doubling  log2 p (alpha + n beta)
 *   recursive halving   2 log2 p alpha + 2 (p - 1) / p n beta; Rabenseifner's
 *                       Both for a power of two. Otherwise for the largest power of two below p, plus
 *                       2 (alpha + n beta): the other ranks send their vector and receive the result.
 *                       R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in
 *                       MPICH, Int. J. High Perform. Comput. Appl. 19 (2005)
 * A tree is never the fastest and serves for comparison. The bandwidth includes the time of the sums. Rows
 * that each rank sends to all travel around a ring: (p - 1) (alpha + n beta), n the bytes of the rank with
 * the most rows. */
#include "fit/allreduce.h"

#include <math.h>

/* --- one all-reduce ----------------------------------------------------------------------------------------------- */

const char *cleat_allreduce_name(cleat_allreduce way) {
    static const char *const names[CLEAT_ALLREDUCES] = {"ring", "tree", "recursive doubling", "recursive halving"};
    return way >= 0 && way < CLEAT_ALLREDUCES ? names[way] : "";
}

/* The largest e with 2^e <= n. */
static int floor_log2(int n) {
    int e = 0;
    while (n >> (e + 1)) ++e;
    return e;
}

double cleat_allreduce_seconds(cleat_allreduce way, int ranks, int64_t bytes, const cleat_network *network) {
    if (ranks < 2) return 0;
    const double alpha = network->latency_seconds, whole = (double)bytes / network->bytes_per_second;
    const int log2_floor = floor_log2(ranks), power = 1 << log2_floor;
    const int log2_ceil = log2_floor + (power < ranks);
    const double others = power < ranks ? 2 * (alpha + whole) : 0;
    switch (way) {
    case CLEAT_ALLREDUCE_RING:
        return 2.0 * (ranks - 1) * (alpha + whole / ranks);
    case CLEAT_ALLREDUCE_TREE:
        return 2.0 * log2_ceil * (alpha + whole);
    case CLEAT_ALLREDUCE_DOUBLING:
        return log2_floor * (alpha + whole) + others;
    case CLEAT_ALLREDUCE_HALVING:
        return 2 * (log2_floor * alpha + (power - 1.0) / power * whole) + others;
    case CLEAT_ALLREDUCES:
        break;
    }
    return INFINITY;
}

cleat_allreduce cleat_allreduce_best(int ranks, int64_t bytes, const cleat_network *network) {
    cleat_allreduce best = CLEAT_ALLREDUCE_RING;
    for (int way = 1; way < CLEAT_ALLREDUCES; ++way)
        if (cleat_allreduce_seconds((cleat_allreduce)way, ranks, bytes, network) <
            cleat_allreduce_seconds(best, ranks, bytes, network))
            best = (cleat_allreduce)way;
    return best;
}

/* --- the exchange of a step --------------------------------------------------------------------------------------- */

static int bucket_count(int64_t bytes) {
    const int64_t MiB = 1 << 20;
    if (bytes >= CLEAT_EXCHANGE_BUCKETS * MiB) return CLEAT_EXCHANGE_BUCKETS;
    return bytes > MiB ? (int)(bytes / MiB) : 1;
}

/* A bucket or table in the exchange. */
typedef struct part {
    double ready; /* share of the backward pass after which it is final */
    double copy, sum;
} part;

/* Parts pass in order through three stages (to the host, all-reduce, back to the device), each of which
 * handles one part at a time. Returns the seconds from the start of the backward pass, which takes
 * `backward` seconds, to the end of the exchange. */
static double pass_stages(const part *parts, int count, double backward) {
    double down = 0, sum = 0, up = 0;
    for (int i = 0; i < count; ++i) {
        down = fmax(down, backward * parts[i].ready) + parts[i].copy;
        sum = fmax(sum, down) + parts[i].sum;
        up = fmax(up, sum) + parts[i].copy;
    }
    return up;
}

static double ring_bytes(int ranks, double bytes) {
    return 2.0 * (ranks - 1) / ranks * bytes;
}

/* Seconds to sum a table, and the bytes that a rank sends. The row marks are sent earlier, hidden by
 * computation. */
static double sum_table(int ranks, const cleat_table_load *table, cleat_row_way way, const cleat_network *network,
                        double *sent) {
    const double row = (double)table->width * sizeof(float);
    const int64_t rows = way == CLEAT_ROWS_WHOLE ? table->rows : table->any;
    const int64_t bytes = rows * table->width * (int64_t)sizeof(float);
    const double marks = (double)cleat_row_words(table->rows) * sizeof(uint64_t);
    if (way == CLEAT_ROWS_OWN) {
        const double own = (double)table->most * row;
        *sent = (ranks - 1) * (own + marks);
        return (ranks - 1) * (network->latency_seconds + own / network->bytes_per_second);
    }
    *sent = ring_bytes(ranks, (double)bytes) + (ranks - 1) * marks;
    return cleat_allreduce_seconds(cleat_allreduce_best(ranks, bytes, network), ranks, bytes, network);
}

static double copy_seconds(double bytes, const cleat_network *network, bool copied) {
    return copied && network->host_bytes_per_second > 0 ? bytes / network->host_bytes_per_second : 0;
}

/* Appends the buckets of the gradient without its tables. */
static int add_buckets(int ranks, int64_t bytes, const cleat_network *network, bool copied, cleat_exchange *exchange,
                       part *parts) {
    if (bytes < 1) return 0;
    exchange->buckets = bucket_count(bytes);
    const int64_t bucket = (bytes + exchange->buckets - 1) / exchange->buckets;
    exchange->way = cleat_allreduce_best(ranks, bucket, network);
    for (int i = 0; i < exchange->buckets; ++i)
        parts[i] = (part){(i + 1.0) / exchange->buckets, copy_seconds((double)bucket, network, copied),
                          cleat_allreduce_seconds(exchange->way, ranks, bucket, network)};
    return exchange->buckets;
}

cleat_exchange cleat_exchange_estimate(int ranks, const cleat_gradient_load *gradient, const cleat_network *network,
                                       bool copied, double backward_seconds) {
    cleat_exchange exchange = {CLEAT_ALLREDUCE_RING, .buckets = 0};
    part parts[CLEAT_EXCHANGE_BUCKETS + CLEAT_TABLES];
    if (ranks < 2) return exchange;
    int count = add_buckets(ranks, gradient->bytes, network, copied, &exchange, parts);
    double sent = ring_bytes(ranks, (double)gradient->bytes);
    for (int t = 0; t < gradient->tables; ++t, ++count) {
        const cleat_table_load *table = &gradient->table[t];
        double of_table;
        exchange.table_ways[t] = cleat_row_sum_way(ranks, table->rows, table->most, table->any);
        parts[count] = (part){1, copy_seconds((double)(table->rows * table->width) * sizeof(float), network, copied),
                              sum_table(ranks, table, exchange.table_ways[t], network, &of_table)};
        exchange.table_bytes[t] = (int64_t)of_table;
        sent += of_table;
    }
    exchange.sent_bytes = (int64_t)sent;
    exchange.seconds = pass_stages(parts, count, 0);
    const double backward = isfinite(backward_seconds) ? backward_seconds : 0;
    if (count > 0) exchange.exposed_seconds = pass_stages(parts, count, backward) - backward;
    return exchange;
}
