/* The kernel tuner (cleat_tune of cleat/bench.h), from the inside: the contest of a node's variants (autotune_bench.c). What it
 * found is kept by session/tuned_cache.h. */
#ifndef CLEAT_SRC_TUNE_H
#define CLEAT_SRC_TUNE_H

#include "cleat/bench.h"
#include "cleat/exec.h"
#include "graph/tuning.h"

/* --- a contest ------------------------------------------------------------------------------------------------ */

typedef struct cleat_autotune_request {
    cleat_device *device;
    const cleat_node *node;
    const cleat_variant *variants[CLEAT_TUNE_CANDIDATES]; /* [count], all serve the node; the first is the default */
    bool out[CLEAT_TUNE_CANDIDATES];                      /* not even tried */
    size_t count;
    int64_t limit;  /* bytes */
    double seconds; /* a candidate, about */
    /* Writes the values of an input of the node, where it knows them: integers must mean something to the kernels.
     * Other floats are random, other integers zero. May be NULL. */
    void (*input)(void *user, const cleat_tensor *tensor, void *values);
    void *user;
} cleat_autotune_request;

/* Chooses by the candidates' seconds: the default, unless another is faster by more than what a measurement repeated on
 * another day may differ by. Writes chosen and why. */
void cleat_tune_select(cleat_tune_node *node);

/* The candidates of a contest on the device, ready to run. */
typedef struct cleat_autotune_candidate {
    size_t index;
    int runs;       /* a burst */
    double fastest; /* seconds a run */
    bool running;   /* still in the contest */
} cleat_autotune_candidate;

typedef struct cleat_autotune_bench {
    const cleat_autotune_request *request;
    cleat_store *store;
    size_t count;
    cleat_autotune_candidate candidates[CLEAT_TUNE_CANDIDATES]; /* [count] */
    cleat_graph *graphs[CLEAT_TUNE_CANDIDATES];                 /* [count]: the node alone */
    cleat_plan *plan;
    cleat_exec *exec;
} cleat_autotune_bench;

/* Those that are not `out`, on the same states, which are filled; borrows `request`. CLEAT_ERR_FIT: more than the limit. */
cleat_status cleat_autotune_bench_open(const cleat_autotune_request *request, const bool *out,
                                       cleat_autotune_bench *bench, cleat_error *error);
void cleat_autotune_bench_close(cleat_autotune_bench *bench);
/* The same values again in all inputs: a node may change them in place. */
cleat_status cleat_autotune_bench_fill(cleat_autotune_bench *bench, cleat_error *error);
/* Runs a burst of the i-th and notes it where it is the fastest. */
cleat_status cleat_autotune_bench_burst(cleat_autotune_bench *bench, size_t i, cleat_error *error);
/* After a run that creates what is missing (and may compile): what the next few say makes a burst. */
cleat_status cleat_autotune_bench_warm_up(cleat_autotune_bench *bench, size_t i, cleat_error *error);

/* Runs the variants by turns on the same tensors, and leaves the fastest run of each in result->candidates [count]:
 * whatever else the machine does can only make a run longer, and turns make it hit all alike. Those that are hopeless
 * after a run, or then after a few bursts, are not run again. Candidates that fail, other than the default, are left out
 * with their error. CLEAT_ERR_FIT: the node does not fit within the limit. */
cleat_status cleat_autotune_run(const cleat_autotune_request *request, cleat_tune_node *result, cleat_error *error);

#endif
