/* Plans data-parallel training over several devices: shares of the global batch, the time of the gradient
 * all-reduce and of a step, and which devices are worth using. Needs neither a device nor MPI. */
#ifndef CLEAT_DISTRIBUTED_PLAN_H
#define CLEAT_DISTRIBUTED_PLAN_H

#include "cleat/fit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The network between the devices, modelled as a switch: all devices send and receive at the same time, each
 * with the same bandwidth. */
typedef struct cleat_network {
    char name[48];           /* as given: "10Gb,30us" */
    double bytes_per_second; /* reached by an all-reduce, including the sums on the host */
    double latency_seconds;  /* of one message */
    /* Between a device with separate memory and the host, in each direction; 0: gradients are not copied. */
    double host_bytes_per_second;
} cleat_network;

/* Parses "RATE[,LATENCY]": RATE is a number of kb, Mb or Gb (bits), kB, MB or GB (bytes) per second, or the
 * name of a link below; LATENCY is a number of ns, us, ms or s. The default latency is that of the named
 * link, or 50 us (TCP) for a number. CLEAT_ERR_ARGUMENT: any other text; the message lists the valid forms.
 *     memory                several devices that share the memory of one machine (CPUs, integrated GPUs)
 *     pcie3, pcie4, pcie5   cards with 16 lanes in one machine, whose gradients are summed in its memory */
CLEAT_API cleat_status cleat_network_parse(const char *text, cleat_network *network, cleat_error *error);

/* Algorithms that sum a vector over all ranks and give each rank the result. */
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

/* The fastest algorithm; the first in the list if several are equally fast. */
CLEAT_API cleat_allreduce cleat_allreduce_best(int ranks, int64_t bytes, const cleat_network *network);

/* One measured all-reduce. */
typedef struct cleat_allreduce_time {
    int64_t bytes;
    double seconds;
} cleat_allreduce_time;

/* Fits the latency and bandwidth of the model above to measured times [count] of `ranks` ranks, by relative
 * difference; *worst receives the largest difference. network->name has the form that cleat_network_parse
 * reads, to three digits; host_bytes_per_second is 0. CLEAT_ERR_ARGUMENT: fewer than two ranks or sizes, or
 * times that no network can have. */
CLEAT_API cleat_status cleat_network_fit(int ranks, size_t count, const cleat_allreduce_time *measured,
                                         cleat_network *network, double *worst, cleat_error *error);

enum { CLEAT_PLAN_DEVICES = 64 };

/* A device to train on. Everything is borrowed. */
typedef struct cleat_distributed_device {
    const char *name;
    const cleat_device_facts *facts;
    const cleat_rates *rates;
    double watts;          /* power at full load; 0: unknown */
    double price_per_hour; /* in any currency; negative: unknown */
} cleat_distributed_device;

/* One device in the plan. */
typedef struct cleat_distributed_rank {
    bool fits; /* false: it cannot hold the model, and only reason, storage and limit are set */
    char reason[512];
    cleat_dtype storage; /* activation type on this device */
    int64_t limit;       /* usable bytes */
    int64_t share;       /* samples of each global batch of report->length; 0: left out */
    /* For that share; for a device that is left out, for the share it would have. */
    bool recompute;
    int64_t micro_batch_size, micro_batches, bytes;
    double seconds;       /* estimate: the share, and the update of the parameters */
    double alone_seconds; /* estimate: the whole global batch on this device alone, and the update */
    /* The step after the opposite decision about this device alone: without it, or with it if it is left out.
     * Infinite: not possible. Then that step's samples per second over all lengths, and the price of its
     * devices; 0 and negative: unknown. */
    double other_seconds, other_samples_per_second, other_price_per_hour;
} cleat_distributed_rank;

enum { CLEAT_PLAN_TABLES = 4, CLEAT_PLAN_NAME = 64 };

/* A parameter in which a step changes only some rows, such as an embedding: devices exchange only these rows.
 * The plan does not read the texts, so it counts all row numbers of a batch (samples times positions, padding
 * included) as different; a training step exchanges at most that many. */
typedef struct cleat_distributed_table {
    char name[CLEAT_PLAN_NAME]; /* of the parameter, truncated if longer */
    int64_t rows, width;
    int64_t most_rows, any_rows; /* upper bounds: of the device that changes most, and of all devices */
    const char *way;    /* the one with the fewest bytes: "whole table", "rows of all devices", "rows of each device" */
    bool is_whole;      /* `way` is "whole table" */
    int64_t sent_bytes; /* upper bound, by each device */
} cleat_distributed_table;

/* The exchange of gradients in a step. */
typedef struct cleat_distributed_exchange {
    int ranks;           /* devices that take part; 0: no choice of several exists, and all other members are 0 */
    int64_t bytes;       /* the gradient */
    int64_t dense_bytes; /* the same without tables */
    int64_t sent_bytes;  /* upper bound for each device, with ring all-reduces */
    int tables;
    cleat_distributed_table table[CLEAT_PLAN_TABLES]; /* [tables] */
    int buckets;                                      /* of dense_bytes */
    cleat_allreduce way;                              /* the fastest for a bucket */
    double way_seconds[CLEAT_ALLREDUCES]; /* of all buckets in sequence, with each algorithm, without copies */
    double seconds;                       /* with copies, without overlap */
    double exposed_seconds;               /* part of it that lengthens the step */
} cleat_distributed_exchange;

typedef struct cleat_distributed_report {
    int count;                                        /* devices */
    int used;                                         /* those with a share; 0: the model fits no device */
    cleat_distributed_rank ranks[CLEAT_PLAN_DEVICES]; /* [count] */
    bool data_known;                                  /* false: one global batch of the longest length is planned */
    int64_t length; /* of the largest global batch, which is reported; the longest of equal ones */
    int64_t global_batch_size;
    /* If one device alone is the fastest, this is the exchange of the fastest choice of several devices, and
     * not part of the step. */
    cleat_distributed_exchange exchange;
    /* Estimates: */
    double step_seconds;               /* slowest device plus exposed exchange */
    double samples_per_second;         /* over all lengths */
    double efficiency;                 /* throughput / sum of the throughputs of the used devices alone */
    int64_t steps_per_epoch;           /* 0 if the data are not known */
    double epoch_seconds, run_seconds; /* 0 if the data are not known */
    /* Sums over the used devices; watts is 0 and price_per_hour negative if that of one of them is unknown. */
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
