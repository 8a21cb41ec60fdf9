/* The exchange of a step: the flat gradient in buckets, copied to the host, summed over all ranks and copied back, while
 * the backward pass still computes. */
#ifndef CLEAT_SRC_ALLREDUCE_H
#define CLEAT_SRC_ALLREDUCE_H

#include "cleat/distributed_plan.h"

/* Buckets of an eighth of the gradient, but not below 1 MiB. */
enum { CLEAT_EXCHANGE_BUCKETS = 8 };

typedef struct cleat_exchange {
    cleat_allreduce way; /* the fastest for a bucket */
    int buckets;
    double seconds;         /* if nothing else went on */
    double exposed_seconds; /* by which the step becomes longer */
} cleat_exchange;

/* The exchange of `bytes` bytes (f32 gradients) among `ranks` ranks. `backward_seconds`: of the last micro-batch, on the
 * rank where it is shortest; the buckets become final in it one after the other, in equal intervals. `copied`: the
 * devices have separate memory. All zero for one rank, or without bytes. */
cleat_exchange cleat_exchange_estimate(int ranks, int64_t bytes, const cleat_network *network, bool copied,
                                       double backward_seconds);

#endif
