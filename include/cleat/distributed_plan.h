/* Data-parallel training over several devices, as a model on paper: shares of the global batch, the all-reduce of the
 * gradient, the step, and which devices pay. No device and no MPI is needed. */
#ifndef CLEAT_DISTRIBUTED_PLAN_H
#define CLEAT_DISTRIBUTED_PLAN_H

#include "cleat/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What connects the devices: each sends and receives at once with the same bandwidth, all of them at the same time (a
 * switch). */
typedef struct cleat_network {
    char name[48];           /* as it was given: "10Gb,30us" */
    double bytes_per_second; /* that an all-reduce reaches, the sums of the host included */
    double latency_seconds;  /* of one message */
    /* Between a device with separate memory and the host, in each direction; 0: no such copy takes place. */
    double host_bytes_per_second;
} cleat_network;

/* Reads "RATE[,LATENCY]": RATE is a number of kb, Mb, Gb (bits), kB, MB or GB (bytes) a second, or the name of one of
 * the links below; LATENCY a number of ns, us, ms or s. A rate alone has the latency of TCP, 50 us; each name has its
 * own. CLEAT_ERR_ARGUMENT: another text; the message lists what is possible.
 *     memory                several devices that share the memory of one machine (CPUs, integrated GPUs)
 *     pcie3, pcie4, pcie5   cards with 16 lanes in one machine, whose gradients are summed in its memory */
CLEAT_API cleat_status cleat_network_parse(const char *text, cleat_network *network, cleat_error *error);

/* Ways to sum a vector over all ranks so that each has the result. */
typedef enum cleat_allreduce {
    CLEAT_ALLREDUCE_RING,
    CLEAT_ALLREDUCE_TREE,
    CLEAT_ALLREDUCE_DOUBLING,
    CLEAT_ALLREDUCE_HALVING,
    CLEAT_ALLREDUCES
} cleat_allreduce;

/* "ring", "tree", "recursive doubling", "recursive halving"; "" if out of range. */
CLEAT_API const char *cleat_allreduce_name(cleat_allreduce way);

/* Estimates the seconds of one all-reduce of `bytes` bytes over `ranks` ranks; 0 for one rank. (Copies between devices
 * and their hosts are not included.) */
CLEAT_API double cleat_allreduce_seconds(cleat_allreduce way, int ranks, int64_t bytes, const cleat_network *network);

/* The fastest way; of equal ones the first of the list. */
CLEAT_API cleat_allreduce cleat_allreduce_best(int ranks, int64_t bytes, const cleat_network *network);

#ifdef __cplusplus
}
#endif
#endif
