/* Benchmarks, the search for the fastest micro-batch size, and the kernel tuner. */
#ifndef CLEAT_BENCH_H
#define CLEAT_BENCH_H

#include "cleat/distributed_plan.h"
#include "cleat/ranks.h"
#include "cleat/rates.h"
#include "cleat/train.h"
#include "cleat/tuning.h"
#include "cleat/verify.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cleat_bench_kind {
    CLEAT_BENCH_MICRO, /* one operation, or an operation and its gradient */
    CLEAT_BENCH_MODEL, /* a training step: forward, loss, backward, AdamW */
} cleat_bench_kind;

typedef struct cleat_bench_info {
    cleat_bench_kind kind;
    char name[48];
    /* name of the same workload in the PyTorch script: $WORKLOAD of --compare; "" if none */
    char peer[24];
    char what[128]; /* one-line description */
} cleat_bench_info;

/* The i-th built-in workload of cleat_bench; false past the last. */
CLEAT_API bool cleat_bench_workload(size_t i, cleat_bench_info *info);

typedef struct cleat_bench_request {
    const char *device;   /* device name in the form of cleat_device_open */
    const char *workload; /* name or peer name of a workload; with `profile`, the label of the result */
    /* If not NULL: benchmarks an optimizer step of the longest bucket of this profile, on synthetic data. */
    const cleat_profile *profile;
    double seconds;            /* duration of the timed runs (at least 5, after two warm-up runs) */
    int64_t repeats;           /* timed runs (bursts of short runs); 0: as many as fit into `seconds` */
    cleat_precision precision; /* precision of a training step */
    /* Measures the peaks again instead of using cached ones, which takes about two more seconds. */
    bool remeasure_peak;
    /* Runs in a child process, so that its memory is measured separately. The calling process must not have
     * used OpenCL and must have only one thread (fork). */
    bool own_process;
} cleat_bench_request;

typedef struct cleat_bench_result {
    char workload[256], device[128];
    cleat_bench_kind kind;
    cleat_dtype storage; /* activation type of a training step */
    /* Time of one run in milliseconds. The benchmark waits for the end of each training step. Other workloads
     * run in bursts of at least 5 ms without a wait between runs, as in a training step. */
    double ms_median, ms_min, ms_max;
    int64_t steps; /* number of timed runs */
    /* Nominal work of the operations (arithmetic; inputs and outputs counted once each) divided by the median
     * time. */
    double gflops, gbytes_per_second;
    /* Ratio of the roofline time to the median. The roofline time of an operation is the longer of its
     * arithmetic at the peak of the unit that computes it and its memory traffic at the memory's rate. Above
     * 1 if data stay in a cache, or if a kernel does less arithmetic than is counted
     * (cleat_bench_warning). */
    double share_of_peak;
    /* The estimate of `cleat plan` for one run, at the sustained rates in the card file of the device;
     * without one (and on CPUs) at `peak`. */
    double predicted_ms;
    bool memory_bound;     /* memory traffic dominates the roofline time */
    cleat_rates peak;      /* of the device (cleat_peaks_measure) */
    cleat_rates card_peak; /* the same rates in the card file of the device; 0: it has none, or is a CPU */
    int64_t device_bytes;
    double peak_rss_mb; /* high-water mark of the process */
    /* Training steps only; else 0: */
    int64_t samples; /* samples per step */
    double samples_per_second;
    int64_t parameters;
    double loss; /* loss of the last step */
    /* Workloads from a profile only; else 0: */
    int64_t length;  /* sample length: that of the longest data sample */
    bool data_known; /* false: data.path is missing; `length` is the longest of the profile */
} cleat_bench_result;

/* Times a workload. `result` is plain data, written on success only. CLEAT_ERR_NOT_FOUND: no workload has
 * this name; the message gives the nearest one. */
CLEAT_API cleat_status cleat_bench(const cleat_bench_request *request, cleat_bench_result *result, cleat_error *error);

/* Writes warning number `i` about a result (its share is above 1; a measured peak is below half of the card
 * file's) to `text` [size], cut if too long; false past the last. */
CLEAT_API bool cleat_bench_warning(const cleat_bench_result *result, size_t i, char *text, size_t size);

typedef struct cleat_spread {
    double median, min, max;
} cleat_spread;

typedef struct cleat_bench_comparison {
    cleat_bench_result ours; /* result of the last round */
    int64_t rounds;
    cleat_spread ours_ms, theirs_ms;   /* of the medians of the rounds, in ms */
    cleat_spread ratio;                /* ours / theirs: ratio of the medians, range over the rounds */
    double ours_rss_mb, theirs_rss_mb; /* medians in MB; 0 if the command does not report memory */
    bool wall_time;                    /* `theirs` is the wall time of the command, which reported no time */
} cleat_bench_comparison;

/* Alternates a workload with `command` for `rounds` rounds: ours, theirs, ours, theirs, ... /bin/sh runs the
 * command with WORKLOAD set to the peer name of the workload (its name if it has no peer). Each run on either
 * side is a separate process (request->own_process is treated as true), so that neither side profits from
 * cached state. The last line that the command prints is read as a JSON object: its `ms_per_step` or `ms` is
 * the time, its `peak_rss_mb` the memory. Without an object, the wall time of the command counts. Errors: the
 * command fails, or the object has no such time. */
CLEAT_API cleat_status cleat_bench_compare(const cleat_bench_request *request, const char *command, int64_t rounds,
                                           cleat_bench_comparison *comparison, cleat_error *error);

enum { CLEAT_BATCH_POINTS = 32 };

/* One micro-batch size that was tried. */
typedef struct cleat_batch_point {
    int64_t micro_batch_size;
    /* Bytes of the plan, and bytes allowed: run.max_memory_usage x free memory. */
    int64_t planned_bytes, limit_bytes;
    bool planned_fits;
    bool recomputed; /* activations are recomputed in backward (train.gradient_checkpointing) */
    bool ran;
    double ms_median, ms_min, ms_max; /* time of a training step */
    double samples_per_second;
    int64_t allocated_bytes; /* peak allocation on the device */
    char error[256];         /* reason for not running; "" if it ran */
} cleat_batch_point;

typedef struct cleat_batch_search {
    size_t count;
    cleat_batch_point points[CLEAT_BATCH_POINTS]; /* ascending by micro-batch size */
    int64_t length;                               /* length of all samples: that of the longest data sample */
    bool data_known;           /* false: data.path is missing; `length` is the longest of the profile */
    int64_t global_batch_size; /* samples per optimizer step */
    int64_t largest;           /* largest micro-batch that ran; 0: none ran, and the next three are 0 */
    int64_t best;              /* micro-batch with the highest throughput */
    int64_t cliff;             /* smallest above `best` whose fastest step is over 15 % slower; 0: none */
    int64_t recommended;       /* smallest within 3 % of the best throughput */
    char why[256];             /* reason for the recommendation */
} cleat_batch_search;

typedef struct cleat_batch_search_options {
    double seconds; /* duration of the timed steps per point, at least 3 steps; 0: 2 s */
    /* Called after each point, in order; may be NULL. */
    void (*point)(void *user, const cleat_batch_point *point);
    void *user;
} cleat_batch_search_options;

/* Finds the largest micro-batch with which training steps (forward, loss, backward, AdamW) run at the longest
 * length, and measures the throughput of each size. The size doubles up to the effective batch size; if one
 * does not fit or fails, the sizes between it and the previous one are searched. Only sizes into which full
 * global batches can be cut are tried. Each size runs in a separate process, so that a process that is
 * killed, crashes or hangs becomes a point with an error. `options` NULL: the defaults. The calling process
 * must not have used OpenCL and must have only one thread (fork). `result` holds the points found so far,
 * regardless of the status. CLEAT_ERR_FIT or CLEAT_ERR_DEVICE_MEMORY: not even a single sample can be
 * trained. */
CLEAT_API cleat_status cleat_find_batch(const cleat_profile *profile, const cleat_batch_search_options *options,
                                        cleat_batch_search *result, cleat_error *error);

enum { CLEAT_ALLREDUCE_POINTS = 8 };

/* Result for one message size: the median of its runs on the rank where that is longest. */
typedef struct cleat_allreduce_point {
    cleat_allreduce_time time;
    int64_t runs;
} cleat_allreduce_point;

typedef struct cleat_allreduce_bench {
    int ranks;
    size_t count;
    cleat_allreduce_point points[CLEAT_ALLREDUCE_POINTS]; /* [count], from 64 KiB to 256 MiB */
    cleat_network network; /* model fitted to these times; its name is for `cleat plan --network` */
    double worst;          /* largest relative difference between its times and those measured */
} cleat_allreduce_bench;

/* Times the all-reduce of gradients without devices, for about `seconds` per message size. The series ends at
 * a size whose runs would take much longer. All ranks call it and receive the same points.
 * CLEAT_ERR_ARGUMENT: there is only one rank; CLEAT_ERR_RANK_LOST. `bench` is written on success only. */
CLEAT_API cleat_status cleat_bench_allreduce(cleat_ranks *ranks, double seconds, cleat_allreduce_bench *bench,
                                             cleat_error *error);

enum { CLEAT_WORKER_POINTS = 16 };

/* One number of loader threads. Rates are in samples per second. */
typedef struct cleat_worker_point {
    int workers;
    bool beyond_cpus; /* more threads than CPUs; measured on request */
    double supply;    /* the loader alone */
    /* the loader alone: time between micro-batches; time a thread takes to fill one */
    double batch_ms_p50, batch_ms_p95, batch_ms_max, fill_ms;
    double samples_per_second, step_ms; /* training steps with this loader */
    double dry_share;                   /* fraction of their batches for which the device waited, idle */
} cleat_worker_point;

typedef struct cleat_worker_search {
    size_t count;
    cleat_worker_point points[CLEAT_WORKER_POINTS]; /* in the requested order */
    int cpus;                                       /* CPUs that this process may use, under its quota */
    double quota;                                   /* CPU quota of the control groups; 0: none */
    double demand, demand_step_ms; /* training steps without a loader, in samples per second and milliseconds */
    int64_t steps;                 /* timed optimizer steps for each number of threads, twice; the same for all */
    double noise;                  /* largest relative difference between the two measurements of a rate: 0.1 is 10 % */
    int chosen;                    /* smallest number of threads within 2 % of the best rate of training steps */
    char verdict[384];             /* one line: what limits training, with the numbers */
} cleat_worker_search;

typedef struct cleat_worker_search_options {
    const int *counts; /* [n_counts] numbers of threads; none: 0, 1, 2, 4, 8, 12, 16 up to the number of CPUs */
    size_t n_counts;
    double seconds; /* approximate duration of each measurement; 0: 2 s */
    /* Called after each number of threads, in order; may be NULL. */
    void (*point)(void *user, const cleat_worker_point *point);
    void *user;
} cleat_worker_search_options;

/* Measures, for several numbers of loader threads, the loader alone, the training steps of the profile without a
 * loader (batches that stay in memory), and both together, with the profile's data, and chooses a number. If
 * the device computes on the CPU, the threads compete with it; only the last measurement shows this.
 * `options` NULL: the defaults. CLEAT_ERR_ARGUMENT: more threads than loader.prefetch_factor allows. Other
 * errors: those of cleat_train before its first step. */
CLEAT_API cleat_status cleat_find_workers(const cleat_profile *profile, const cleat_worker_search_options *options,
                                          cleat_worker_search *search, cleat_error *error);
/* Chooses from the points [count], count > 0, and writes the verdict, as cleat_find_workers does. */
CLEAT_API void cleat_worker_search_select(cleat_worker_search *search);

enum { CLEAT_TUNE_CANDIDATES = 16 };

/* A kernel variant that can compute a node. */
typedef struct cleat_tune_candidate {
    const char *variant;
    double seconds;  /* time of its fastest run; 0: not run, or failed */
    char error[128]; /* why it failed or was not run; "" if it ran */
} cleat_tune_candidate;

/* All nodes of a profile's graphs that run the same operation on the same shapes. */
typedef struct cleat_tune_node {
    /* operation, inputs -> outputs: "linear f32[1024,256] f32[512,256] f32[512] - -> f32[1024,512]" */
    char *key;
    int64_t length, micro_batch_size; /* of the longest bucket that has such nodes */
    int64_t uses;                     /* uses per optimizer step of that bucket; 0: in evaluation only */
    size_t count, chosen;
    cleat_tune_candidate candidates[CLEAT_TUNE_CANDIDATES]; /* [count]; the first is the default */
    bool measured;
    char why[256]; /* reason for the choice, or for measuring nothing */
} cleat_tune_node;

typedef struct cleat_tune_report {
    char device[128];
    char path[CLEAT_PATH]; /* path of the tuned table; "": no folder to store it in */
    size_t count;
    cleat_tune_node *nodes;         /* [count], kinds of nodes with more than one usable variant */
    size_t single;                  /* node kinds with a single usable variant: nothing to measure */
    size_t entries;                 /* entries of the file, including those of earlier calls */
    char before[CLEAT_TUNING_TEXT]; /* choices in use before the call: cleat_tuning_describe */
    char clblast[256];              /* result of the search for CLBlast parameters; "": not searched */
    bool data_known;                /* false: data.path is missing; the longest length is tuned */
    int64_t length, micro_batches;  /* of an optimizer step of the longest bucket */
    /* Time of the nodes with a choice in that step; other nodes are unchanged. */
    double default_seconds, tuned_seconds;
    int64_t default_bytes, tuned_bytes; /* bytes of the plan */
    double seconds;                     /* duration of the call */
} cleat_tune_report;

typedef struct cleat_tune_options {
    double seconds; /* approximate time per candidate; 0: 0.2 s */
    /* Searches for CLBlast parameters first, if CLBlast is a candidate for the matrix products of the
     * profile; takes at most 300 x `seconds`. The search runs in a separate process; the calling process must
     * not have used OpenCL and must have only one thread (fork). */
    bool clblast;
    const char *ship;                                      /* second copy of the table; NULL: none */
    void (*node)(void *user, const cleat_tune_node *node); /* called after each node; may be NULL */
    void *user;
} cleat_tune_options;

/* Finds the fastest kernel variants on the profile's device for the graphs that the profile runs (with the
 * fitted micro-batches). Each result is stored in the cache folder ($CLEAT_CACHE_DIR) as soon as it is known,
 * together with those of earlier calls and of other processes; later runs and plans on this device use them.
 * A variant replaces the default only if it is at least 3 % faster. `options` NULL: the defaults.
 * options->ship: the table is also written as a file that can ship with the program
 * (profiles/devices/NAME.tuned). `report` (release with cleat_tune_free) holds the results so far, regardless
 * of the status. CLEAT_ERR_IO: a result cannot be stored, which ends the search. */
CLEAT_API cleat_status cleat_tune(const cleat_profile *profile, const cleat_tune_options *options,
                                  cleat_tune_report *report, cleat_error *error);
CLEAT_API void cleat_tune_free(cleat_tune_report *report);

#ifdef __cplusplus
}
#endif
#endif
