/* Internal interface of the benchmarks: a workload, and the job that is prepared on a device for timing.
 * bench.c does the timing; bench_ops.c and bench_models.c contain the tables of workloads. */
#ifndef CLEAT_SRC_BENCH_H
#define CLEAT_SRC_BENCH_H

#include "cleat/bench.h"
#include "cleat/exec.h"
#include "graph/plan.h"

/* A range of nodes executed by one run. */
typedef struct cleat_bench_part {
    size_t graph, first, last; /* nodes [first, last) of a graph of the plan */
    int64_t times;             /* executions per run */
} cleat_bench_part;

enum { CLEAT_BENCH_PARTS = 2 };

/* A workload prepared on a device. */
typedef struct cleat_bench_job {
    cleat_device *device;
    cleat_precision precision; /* precision of a model's training; auto: the profile's, or f32 */
    cleat_dtype storage;       /* resolved from `precision` */
    cleat_exec *exec;          /* borrowed from `own` */
    const cleat_plan *plan;    /* borrowed from `own` */
    cleat_bench_part parts[CLEAT_BENCH_PARTS];
    int n_parts;
    /* Executes one training step, waits for it and writes its loss to job->loss. NULL: the parts are enqueued
     * instead. */
    cleat_status (*step)(struct cleat_bench_job *job, cleat_error *error);
    int64_t samples; /* samples per step */
    int64_t length;  /* length of a profile's samples; else 0 */
    bool data_known; /* `length` was read from the data */
    double loss;
    void *own; /* private state of the workload, freed by `close` (may be NULL) */
    void (*close)(void *own);
} cleat_bench_job;

/* A workload. `open` fills `job`, whose device is open; the job must be closed even if opening fails. */
typedef struct cleat_bench_entry {
    cleat_bench_info info;
    cleat_status (*open)(const void *spec, cleat_bench_job *job, cleat_error *error);
    const void *spec;
} cleat_bench_entry;

/* The tables of workloads; false past the last entry. */
bool cleat_bench_op(size_t i, cleat_bench_entry *entry);
bool cleat_bench_model(size_t i, cleat_bench_entry *entry);
/* The network of a workload and the size of its batch, without a device. */
typedef struct cleat_bench_network {
    cleat_profile *profile;
    cleat_model *model;
    int64_t batch, length;
} cleat_bench_network;

/* CLEAT_ERR_NOT_FOUND: no model of the benchmarks has that name. Close it after success. */
cleat_status cleat_bench_model_open(const char *name, cleat_precision precision, cleat_bench_network *made,
                                    cleat_error *error);
void cleat_bench_model_close(cleat_bench_network *made);
/* A training step of the request's profile, as an unnamed workload. */
cleat_bench_entry cleat_bench_profile(const cleat_bench_request *request);
/* Finds the workload of a request: its profile, or the workload of the given name. */
cleat_status cleat_bench_find(const cleat_bench_request *request, cleat_bench_entry *entry, cleat_error *error);

/* --- ratio to the peak rates (roofline.c) --- */

/* Sets gflops, gbytes_per_second, share_of_peak, predicted_ms and memory_bound of a result whose ms_median
 * and peak are set. */
cleat_status cleat_bench_roofline(const cleat_bench_job *job, cleat_bench_result *result, cleat_error *error);
/* The peaks in the card file of a device; 0: unknown. */
void cleat_bench_card_peak(const cleat_device_facts *facts, cleat_rates *peak);

/* --- one graph on the job's device (bench_graph.c) --- */

typedef struct cleat_bench_graph {
    cleat_store *store;
    cleat_graph *graph;
    cleat_plan *plan;
    cleat_exec *exec;
} cleat_bench_graph;

/* Creates an empty graph for the caller to build. */
cleat_status cleat_bench_graph_create(const char *name, cleat_bench_graph *made, cleat_error *error);
/* Plans the built graph with the kernels that training would select, allocates it, and fills inputs, states,
 * parameters and gradients with small values of both signs (integer inputs with 0 and 1). The job runs the
 * whole graph. */
cleat_status cleat_bench_graph_open(cleat_bench_graph *made, cleat_bench_job *job, cleat_error *error);
void cleat_bench_graph_destroy(cleat_bench_graph *made);
/* Writes such values to `values` [elements of tensor], in the tensor's type. */
void cleat_bench_fill(const cleat_tensor *tensor, void *values);

/* --- comparisons (bench_compare.c) --- */

/* Parsed output of a command. */
typedef struct cleat_bench_output {
    double ms;
    bool wall_time;     /* ms is the wall time of the command */
    double peak_rss_mb; /* 0: not reported */
} cleat_bench_output;

/* Parses the output of a command that took `seconds`. */
cleat_status cleat_bench_parse_output(const char *output, double seconds, cleat_bench_output *parsed,
                                      cleat_error *error);

/* Ratio of ours [count] to theirs [count]: ratio of the medians, and the smallest and largest ratio of a
 * round. */
cleat_status cleat_bench_ratio(const double *ours, const double *theirs, int64_t count, cleat_spread *ratio,
                               cleat_error *error);

#endif
