/* Time of an all-reduce in the usual model: a message of n bytes takes alpha + n beta, alpha the latency and beta the
 * inverse of the bandwidth, and a rank can send and receive at once. For p ranks:
 *   ring                2 (p - 1) alpha + 2 (p - 1) / p n beta
 *                       P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations,
 *                       J. Parallel Distrib. Comput. 69 (2009)
 *   tree                2 ceil(log2 p) (alpha + n beta): a binomial tree to one rank, and back
 *   recursive doubling  log2 p (alpha + n beta)
 *   recursive halving   2 log2 p alpha + 2 (p - 1) / p n beta; Rabenseifner's
 *                       Both for a power of two. Else for the largest below p, and 2 (alpha + n beta) more: the other
 *                       ranks hand over their vector and receive the result.
 *                       R. Thakur, R. Rabenseifner, W. Gropp: Optimization of collective communication operations in
 *                       MPICH, Int. J. High Perform. Comput. Appl. 19 (2005)
 * A tree is never the fastest: it is for comparison. The time of the sums is part of the bandwidth. */
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

/* The buckets pass through three stages: to the host, all-reduce, back to the device. Each stage is busy with one
 * bucket at a time, so the slowest stage determines the rate, and the others count once. A bucket starts when it is
 * final, and after the one before it. */
cleat_exchange cleat_exchange_estimate(int ranks, int64_t bytes, const cleat_network *network, bool copied,
                                       double backward_seconds) {
    cleat_exchange exchange = {CLEAT_ALLREDUCE_RING, 0, 0, 0};
    if (ranks < 2 || bytes < 1) return exchange;
    exchange.buckets = bucket_count(bytes);
    const int64_t bucket = (bytes + exchange.buckets - 1) / exchange.buckets;
    exchange.way = cleat_allreduce_best(ranks, bucket, network);
    const double reduce = cleat_allreduce_seconds(exchange.way, ranks, bucket, network);
    const double copy =
        copied && network->host_bytes_per_second > 0 ? (double)bucket / network->host_bytes_per_second : 0;
    const double slowest = fmax(reduce, copy), once = reduce + 2 * copy;
    exchange.seconds = (exchange.buckets - 1) * slowest + once;
    /* Bound by the exchange: it starts with the first bucket. Bound by backward: the last bucket remains. */
    const double first = backward_seconds / exchange.buckets;
    exchange.exposed_seconds = fmax(once, first + exchange.seconds - backward_seconds);
    return exchange;
}
