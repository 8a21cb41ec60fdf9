/* Data-parallel training over several devices, as a model on paper: shares of the global batch, the
 * all-reduce of the gradient, the step, and which devices pay. No device and no MPI is needed. */
#ifndef CLEAT_DISTRIBUTED_PLAN_H
#define CLEAT_DISTRIBUTED_PLAN_H

#include "cleat/fit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What connects the devices: each sends and receives at once with the same bandwidth, all of them at the same
 * time (a switch). */
typedef struct cleat_network {
    char name[48];           /* as it was given: "10Gb,30us" */
    double bytes_per_second; /* that an all-reduce reaches, the sums of the host included */
    double latency_seconds;  /* of one message */
    /* Between a device with separate memory and the host, in each direction; 0: no such copy takes place. */
    double host_bytes_per_second;
} cleat_network;

/* Reads "RATE[,LATENCY]": RATE is a number of kb, Mb, Gb (bits), kB, MB or GB (bytes) a second, or the name
 * of one of the links below; LATENCY a number of ns, us, ms or s. A rate alone has the latency of TCP, 50 us;
 * each name has its own. CLEAT_ERR_ARGUMENT: another text; the message lists what is possible.
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

/* Estimates the seconds of one all-reduce of `bytes` bytes over `ranks` ranks; 0 for one rank. (Copies
 * between devices and their hosts are not included.) */
CLEAT_API double cleat_allreduce_seconds(cleat_allreduce way, int ranks, int64_t bytes, const cleat_network *network);

/* The fastest way; of equal ones the first of the list. */
CLEAT_API cleat_allreduce cleat_allreduce_best(int ranks, int64_t bytes, const cleat_network *network);

/* One measured all-reduce. */
typedef struct cleat_allreduce_time {
    int64_t bytes;
    double seconds;
} cleat_allreduce_time;

/* Finds the latency and bandwidth with which the model above is nearest to measured times [count] of `ranks`
 * ranks, in relative differences; *worst: the largest of these. network->name is what cleat_network_parse
 * reads, to three digits; host_bytes_per_second is 0. CLEAT_ERR_ARGUMENT: fewer than two ranks or sizes, or
 * times that no network has. */
CLEAT_API cleat_status cleat_network_fit(int ranks, size_t count, const cleat_allreduce_time *measured,
                                         cleat_network *network, double *worst, cleat_error *error);

enum { CLEAT_PLAN_DEVICES = 64 };

/* A device to train on; all is borrowed. */
typedef struct cleat_distributed_device {
    const char *name;
    const cleat_device_facts *facts;
    const cleat_rates *rates;
    double watts;          /* power at full load; 0: unknown */
    double price_per_hour; /* in any currency; negative: unknown */
} cleat_distributed_device;

/* One device in the plan. */
typedef struct cleat_distributed_rank {
    bool fits; /* false: it cannot hold the model; then only reason, storage and limit are set */
    char reason[512];
    cleat_dtype storage; /* activation type on this device */
    int64_t limit;       /* usable bytes */
    int64_t share;       /* samples of each global batch of the length that is shown; 0: left out */
    /* For that share; of a device that is left out, for the share that it would have. */
    bool recompute;
    int64_t micro_batch_size, micro_batches, bytes;
    double seconds;       /* estimate: the share, and the update of the parameters */
    double alone_seconds; /* estimate: the whole global batch on this device alone, and the update */
    /* The step if the decision about this device alone were the other one: without it, or with it if it is left out.
     * Infinite: no other decision is possible. Then its samples per second over all lengths, and the price of its
     * devices; 0 and negative: unknown. */
    double other_seconds, other_samples_per_second, other_price_per_hour;
} cleat_distributed_rank;

enum { CLEAT_PLAN_TABLES = 4, CLEAT_PLAN_NAME = 64 };

/* A parameter of which a step changes only some rows, such as an embedding: devices exchange these. Its rows
 * are not known before the texts are read, so all row numbers of a batch (samples times positions, padding
 * included) count as different ones; a step of training exchanges at most as much. */
typedef struct cleat_distributed_table {
    char name[CLEAT_PLAN_NAME]; /* of the parameter, cut if it is longer */
    int64_t rows, width;
    int64_t most_rows, any_rows; /* at most: of the device that touches most, and of all together */
    const char *way;    /* "whole table", "rows of all devices", "rows of each device": what moves the fewest bytes */
    bool is_whole;      /* the first of these */
    int64_t sent_bytes; /* at most, by each device */
} cleat_distributed_table;

/* The exchange of gradients in a step. */
typedef struct cleat_distributed_exchange {
    int ranks;           /* devices that take part; 0: there is no choice of several, and all else is 0 */
    int64_t bytes;       /* the gradient */
    int64_t dense_bytes; /* the same without tables */
    int64_t sent_bytes;  /* that each device sends at most, if sums are rings */
    int tables;
    cleat_distributed_table table[CLEAT_PLAN_TABLES]; /* [tables] */
    int buckets;                                      /* of dense_bytes */
    cleat_allreduce way;                              /* the fastest for a bucket */
    double way_seconds[CLEAT_ALLREDUCES]; /* of all buckets one after the other, in each way, without copies */
    double seconds;                       /* with copies, if nothing else went on */
    double exposed_seconds;               /* by which it makes the step longer */
} cleat_distributed_exchange;

typedef struct cleat_distributed_report {
    int count;                                        /* devices */
    int used;                                         /* those with a share; 0: the model fits no device */
    cleat_distributed_rank ranks[CLEAT_PLAN_DEVICES]; /* [count] */
    bool data_known;                                  /* false: one global batch of the longest length is planned */
    int64_t length; /* of the largest global batch, the longest of equal ones: the one that is shown */
    int64_t global_batch_size;
    /* If one device alone is the fastest, this is the exchange of the fastest choice of several, and not part
     * of the step. */
    cleat_distributed_exchange exchange;
    /* Estimates: */
    double step_seconds;               /* of the slowest device, and the exposed exchange of several */
    double samples_per_second;         /* over all lengths */
    double efficiency;                 /* share of what the devices that take part do alone, together */
    int64_t steps_per_epoch;           /* 0 if the data are not known */
    double epoch_seconds, run_seconds; /* 0 if the data are not known */
    /* Of the devices that take part; watts is 0, price_per_hour negative if one of them is not known. */
    double watts, price_per_hour;
} cleat_distributed_report;

/* Plans `profile` for data-parallel training over devices [count] that a network connects. Each device plans
 * micro-batches for its memory; a device that would make the step slower is left out. Samples are counted as
 * by cleat_fit_describe. CLEAT_OK is returned even if the model fits no device: see report->used.
 * CLEAT_ERR_ARGUMENT: no devices or more than CLEAT_PLAN_DEVICES, more devices than samples in a global
 * batch. */
CLEAT_API cleat_status cleat_fit_distributed(const cleat_profile *profile, int count,
                                             const cleat_distributed_device *devices, const cleat_network *network,
                                             cleat_distributed_report *report, cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif
