/* Measuring: benchmarks, the search for a micro-batch, the kernel tuner. */
#ifndef CLEAT_BENCH_H
#define CLEAT_BENCH_H

#include "cleat/rates.h"
#include "cleat/train.h"
#include "cleat/tuning.h"
#include "cleat/verify.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cleat_bench_kind {
    CLEAT_BENCH_MICRO, /* one operation, or one and its gradient */
    CLEAT_BENCH_MODEL, /* a training step: forward, loss, backward, AdamW */
} cleat_bench_kind;

typedef struct cleat_bench_info {
    cleat_bench_kind kind;
    char name[48];
    char peer[24];  /* what a PyTorch script calls the same workload, $WORKLOAD of --compare; "" where it has none */
    char what[128]; /* is run, in a line */
} cleat_bench_info;

/* The i-th workload that cleat_bench knows; false behind the last. */
CLEAT_API bool cleat_bench_workload(size_t i, cleat_bench_info *info);

/* The rates of cleat_rates that bound a workload. */
typedef enum cleat_bench_rate {
    CLEAT_BENCH_FLOPS,
    CLEAT_BENCH_MATRIX_FLOPS,
    CLEAT_BENCH_BYTES,
    CLEAT_BENCH_RATES
} cleat_bench_rate;

typedef struct cleat_bench_request {
    const char *device;           /* as cleat_device_open takes it */
    const char *workload;         /* a name or a peer's name of cleat_bench_workload; with a profile, what to call it */
    const cleat_profile *profile; /* not NULL: an optimizer step of its longest bucket, with made-up data */
    double seconds;               /* of timed runs, at least 5 of them, after two that are not timed ... */
    int64_t repeats;              /* ... or exactly so many (bursts of short ones); 0: as long as `seconds` */
    cleat_precision precision;    /* of a training step; auto: f32, or what the profile says */
    bool remeasure_peak;          /* cleat_rates_remeasure instead of the kept rates: a second more */
    bool
        own_process; /* in a process of its own, so that its memory is its own; the calling process must then not have used
                   OpenCL and must have one thread only (fork) */
} cleat_bench_request;

typedef struct cleat_bench_result {
    char workload[256], device[128];
    cleat_bench_kind kind;
    cleat_dtype storage;              /* of a training step's activations */
    double ms_median, ms_min, ms_max; /* of one run. A training step is waited for; others are run in bursts of at least
                                         5 ms, as in a training step, where nobody waits for them */
    int64_t steps;                    /* that were timed */
    double gflops, gbytes_per_second; /* what the operations cost (arithmetic; inputs and outputs once each), over the
                                         median */
    /* The time in which every operation would be done at the device's measured rate of arithmetic (of its matrix unit,
     * where the kernel uses that) or of memory, whichever takes longer (the roofline model), over the median: 0 to 1. */
    double share_of_peak;
    bool memory_bound; /* most of that time is memory's */
    /* The measured rates. If the workload is faster than these allow, the rates that bound it are raised until it is not.
     * Of a raised rate of arithmetic, what the workload proves is kept for later calls (cleat_rates_measure): the
     * operations it bounds over the whole time. A raised rate of memory holds for this result only: it may be that of a
     * cache. */
    cleat_rates peak;
    bool raised[CLEAT_BENCH_RATES];
    int64_t device_bytes;
    double peak_rss_mb; /* of the process, so far */
    /* Training steps only; else 0: */
    int64_t samples; /* a step */
    double samples_per_second;
    int64_t parameters;
    double loss; /* of the last step */
    /* A profile's only; else 0: */
    int64_t length;  /* of its samples: the longest of the data ... */
    bool data_known; /* ... or where data.path is not there (false), the longest of the profile */
} cleat_bench_result;

/* Times a workload. CLEAT_ERR_NOT_FOUND: there is none of that name; the message says the nearest. */
CLEAT_API cleat_status cleat_bench(const cleat_bench_request *request, cleat_bench_result *result, cleat_error *error);

typedef struct cleat_spread {
    double median, min, max;
} cleat_spread;

typedef struct cleat_bench_comparison {
    cleat_bench_result ours; /* of the last round */
    int64_t rounds;
    cleat_spread ours_ms, theirs_ms;   /* each round's median */
    cleat_spread ratio;                /* ours over theirs: of the medians; least and largest of a round */
    double ours_rss_mb, theirs_rss_mb; /* medians; 0 where the command does not tell */
    bool wall_time;                    /* theirs is how long the command took: it told no time */
} cleat_bench_comparison;

/* Alternates a workload with `command`, which /bin/sh runs with WORKLOAD set to the workload's name there (peer, or
 * where it has none, its own): ours, theirs, ours, theirs, ... for `rounds`. Each run is a process of its own on both
 * sides (request->apart is taken as true), so that neither profits from the other's state. The command's time is the
 * number `ms_per_step` or `ms` of the last line it prints, a JSON object, and its memory `peak_rss_mb`; where it prints
 * no object, its wall time counts. Errors: a command that fails, an object without such a number. */
CLEAT_API cleat_status cleat_bench_compare(const cleat_bench_request *request, const char *command, int64_t rounds,
                                           cleat_bench_comparison *comparison, cleat_error *error);

enum { CLEAT_BATCH_POINTS = 32 };

/* One micro-batch that was tried. */
typedef struct cleat_batch_point {
    int64_t micro_batch_size;
    int64_t planned_bytes, limit_bytes; /* of the plan; that may be used: run.max_memory_usage of what is free */
    bool planned_fits;
    bool recomputed; /* activations are recomputed in backward, see train.gradient_checkpointing */
    bool ran;
    double ms_median, ms_min, ms_max; /* of a training step */
    double samples_per_second;
    int64_t allocated_bytes; /* most there were on the device */
    char error[256];         /* why it did not run; "" where it did */
} cleat_batch_point;

typedef struct cleat_batch_search {
    size_t count;
    cleat_batch_point points[CLEAT_BATCH_POINTS]; /* ascending by batch */
    int64_t length;                               /* all samples have it: the longest of the data ... */
    bool data_known;                              /* ... or where data.path is not there, the longest of the profile */
    int64_t global_batch_size;                    /* samples an optimizer step */
    int64_t largest;                              /* micro-batch that ran; 0 where none did, as in the following */
    int64_t best;                                 /* with the most samples a second */
    int64_t cliff;       /* the smallest above `best` that is more than 15 % slower, even its fastest step; 0: none */
    int64_t recommended; /* the smallest within 3 % of the best */
    char why[256];       /* it is recommended */
} cleat_batch_search;

typedef struct cleat_batch_search_options {
    double seconds;                                            /* of timed steps a point, at least 3 steps; 0: 2 s */
    void (*point)(void *user, const cleat_batch_point *point); /* after each try, in their order; may be NULL */
    void *user;
} cleat_batch_search_options;

/* Finds the largest micro-batch by training steps (forward, loss, backward, AdamW) at the longest length, and how fast
 * each is. Doubles up to the effective batch; where one does not fit or fails, looks between it and the one before.
 * Only micro-batches are tried that full windows are cut into. Each runs in a process of its own, so that one that is
 * killed, crashes or hangs is a point with an error. `options` NULL: the defaults. The calling process must not have
 * used OpenCL and must have one thread only (fork). `result` is filled as far as the search came, whatever the status.
 * CLEAT_ERR_FIT or CLEAT_ERR_DEVICE_MEMORY: not even a single sample trains. */
CLEAT_API cleat_status cleat_find_batch(const cleat_profile *profile, const cleat_batch_search_options *options,
                                        cleat_batch_search *result, cleat_error *error);

enum { CLEAT_TUNE_CANDIDATES = 16 };

/* A kernel variant that can compute a node. */
typedef struct cleat_tune_candidate {
    const char *variant;
    double seconds;  /* its fastest run; 0: it was not run, or failed */
    char error[128]; /* why it failed, or why it was not run; "" where it ran */
} cleat_tune_candidate;

/* All nodes of a profile's graphs that run the same operation on the same shapes. */
typedef struct cleat_tune_node {
    char *key; /* operation, inputs -> outputs: "linear f32[1024,256] f32[512,256] f32[512] - -> f32[1024,512]" */
    int64_t length, micro_batch_size; /* the longest bucket that has such nodes */
    int64_t uses;                     /* in an optimizer step of that bucket; 0: in evaluation only */
    size_t count, chosen;
    cleat_tune_candidate candidates[CLEAT_TUNE_CANDIDATES]; /* [count]; the first is the default */
    bool measured;
    char why[256]; /* it was chosen, or why nothing was measured */
} cleat_tune_node;

typedef struct cleat_tune_report {
    char device[128];
    char path[CLEAT_PATH]; /* of the file; "": there is no place to keep it */
    size_t count;
    cleat_tune_node *nodes;                /* [count], kinds of nodes with a choice */
    size_t single;                         /* kinds for which one variant only serves: nothing to measure */
    size_t entries;                        /* in the file, with those of other calls */
    char before[CLEAT_TUNING_TEXT];        /* what runs used until now: cleat_tuning_describe */
    char clblast[256];                     /* what came of CLBlast's parameters; "": they were not looked at */
    bool data_known;                       /* false: data.path is not there, the profile's longest length is tuned */
    int64_t length, micro_batches;         /* an optimizer step of the longest bucket: ... */
    double default_seconds, tuned_seconds; /* ... of its nodes with a choice; all others take what they took */
    int64_t default_bytes, tuned_bytes;    /* of the plan */
    double seconds;                        /* the call took */
} cleat_tune_report;

typedef struct cleat_tune_options {
    double seconds; /* a candidate, about; 0: 0.2 s */
    /* Looks for parameters of CLBlast's own first, where it is a candidate for the profile's products: 300 x `seconds` at
     * most. In a process of its own: the calling process must then not have used OpenCL and must have one thread only
     * (fork). */
    bool clblast;
    const char *ship;                                      /* a file that gets the table too; NULL: none */
    void (*node)(void *user, const cleat_tune_node *node); /* after each contest; may be NULL */
    void *user;
} cleat_tune_options;

/* Measures which kernel variants are the fastest on the profile's device for the graphs it runs (micro-batches as they are
 * fitted), and keeps the winners in the cache folder ($CLEAT_CACHE_DIR), each as soon as it is known, with those of earlier
 * calls and of other processes: later runs and plans on this device use them. A variant must win 3 % over the default to
 * replace it. `options` NULL: the defaults. CLEAT_ERR_IO: a winner cannot be kept; that ends the search.
 * options->ship: the table is also written as a file that may come with the program (profiles/devices/NAME.tuned).
 * `report` (free with cleat_tune_free) is filled as far as it came. */
CLEAT_API cleat_status cleat_tune(const cleat_profile *profile, const cleat_tune_options *options,
                                  cleat_tune_report *report, cleat_error *error);
CLEAT_API void cleat_tune_free(cleat_tune_report *report);

#ifdef __cplusplus
}
#endif
#endif
