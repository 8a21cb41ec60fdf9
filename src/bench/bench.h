/* The inside of benchmarks: what a workload is, and what lies ready on a device to be timed. bench.c times them;
 * bench_ops.c and bench_models.c have the tables. */
#ifndef CLEAT_SRC_BENCH_H
#define CLEAT_SRC_BENCH_H

#include "cleat/bench.h"
#include "cleat/exec.h"
#include "graph/plan.h"

/* Nodes that one run executes. */
typedef struct cleat_bench_part {
    size_t graph, first, last; /* [first, last) of a graph of the plan */
    int64_t times;             /* a run */
} cleat_bench_part;

enum { CLEAT_BENCH_PARTS = 2 };

/* A workload on a device, ready to run. */
typedef struct cleat_bench_job {
    cleat_device *device;
    cleat_precision precision; /* of a model's training; auto: f32, or what a profile says */
    cleat_dtype storage;       /* what it became */
    cleat_exec *exec;          /* borrowed from `own` ... */
    const cleat_plan *plan;    /* ... and so is this */
    cleat_bench_part parts[CLEAT_BENCH_PARTS];
    int n_parts;
    /* One training step, ended; the loss goes to job->loss. NULL: the parts are enqueued. */
    cleat_status (*step)(struct cleat_bench_job *job, cleat_error *error);
    int64_t samples; /* of a step */
    int64_t length;  /* of a profile's samples; else 0 */
    bool data_known; /* ... which is that of its data */
    double loss;
    void *own; /* whatever the workload keeps; `close` (may be NULL) frees it */
    void (*close)(void *own);
} cleat_bench_job;

/* A workload. Opening fills `job`, which closing empties, also after a failed opening; job->device is open. */
typedef struct cleat_bench_entry {
    cleat_bench_info info;
    cleat_status (*open)(const void *spec, cleat_bench_job *job, cleat_error *error);
    const void *spec;
} cleat_bench_entry;

/* The tables: false behind the last. */
bool cleat_bench_op(size_t i, cleat_bench_entry *entry);
bool cleat_bench_model(size_t i, cleat_bench_entry *entry);
/* A step of the request's profile as a workload without a name. */
cleat_bench_entry cleat_bench_profile(const cleat_bench_request *request);
/* What the request asks for: its profile, or the workload of that name. */
cleat_status cleat_bench_find(const cleat_bench_request *request, cleat_bench_entry *entry, cleat_error *error);

/* --- how near the peak (roofline.c) --- */

/* Sets gflops, gbytes_per_second, share_of_peak and memory_bound of a result whose ms_median and peak are set; raises
 * the rates of result->peak that the workload proves too low. */
cleat_status cleat_bench_roofline(const cleat_bench_job *job, cleat_bench_result *result, cleat_error *error);

/* --- one graph on the job's device (bench_graph.c) --- */

typedef struct cleat_bench_graph {
    cleat_store *store;
    cleat_graph *graph;
    cleat_plan *plan;
    cleat_exec *exec;
} cleat_bench_graph;

/* An empty graph, to be built. */
cleat_status cleat_bench_graph_create(const char *name, cleat_bench_graph *made, cleat_error *error);
/* Plans what was built (with the kernels that a run would choose), allocates it, and fills inputs, states, parameters
 * and gradients: small numbers of both signs, of integer inputs 0 and 1. The job runs all of it. */
cleat_status cleat_bench_graph_open(cleat_bench_graph *made, cleat_bench_job *job, cleat_error *error);
void cleat_bench_graph_destroy(cleat_bench_graph *made);
/* Those numbers, for `values` [elements of tensor], in the tensor's type. */
void cleat_bench_fill(const cleat_tensor *tensor, void *values);

/* --- comparisons (bench_compare.c) --- */

/* What a command told. */
typedef struct cleat_bench_output {
    double ms;
    bool wall_time;     /* ms is how long it took */
    double peak_rss_mb; /* 0: not told */
} cleat_bench_output;

/* Understands the output of a command that took `seconds`. */
cleat_status cleat_bench_parse_output(const char *output, double seconds, cleat_bench_output *parsed,
                                      cleat_error *error);

/* Of ours [count] over theirs [count]: the ratio of the medians, the least and the largest ratio of a round. */
cleat_status cleat_bench_ratio(const double *ours, const double *theirs, int64_t count, cleat_spread *ratio,
                               cleat_error *error);

#endif
