/* Internal interface of the kernel tuner (cleat_tune of cleat/bench.h): the benchmark of a node's variants
 * (autotune_bench.c). session/tuned_cache.h stores the results. */
#ifndef CLEAT_SRC_TUNE_H
#define CLEAT_SRC_TUNE_H

#include "cleat/bench.h"
#include "cleat/exec.h"
#include "graph/tuning.h"

/* --- a benchmark of variants ---------------------------------------------------------------------------------- */

typedef struct cleat_autotune_request {
    cleat_device *device;
    const cleat_node *node;
    const cleat_variant *variants[CLEAT_TUNE_CANDIDATES]; /* [count], all support the node; the first is the default */
    bool out[CLEAT_TUNE_CANDIDATES];                      /* excluded from the start */
    size_t count;
    int64_t limit;  /* bytes */
    double seconds; /* approximate time per candidate */
    /* Writes the values of an input of the node if they are known: integers must be valid for the kernels.
     * Other float inputs are filled with random values, other integer inputs with zeros. May be NULL. */
    void (*input)(void *user, const cleat_tensor *tensor, void *values);
    void *user;
} cleat_autotune_request;

/* Selects a candidate by its time: the default, unless another is faster by more than the variation between
 * measurements on different days. Writes chosen and why. */
void cleat_tune_select(cleat_tune_node *node);

/* The candidates of a request on the device, ready to run. */
typedef struct cleat_autotune_candidate {
    size_t index;
    int runs;       /* runs per burst */
    double fastest; /* seconds per run */
    bool running;   /* not yet eliminated */
} cleat_autotune_candidate;

typedef struct cleat_autotune_bench {
    const cleat_autotune_request *request;
    cleat_store *store;
    size_t count;
    cleat_autotune_candidate candidates[CLEAT_TUNE_CANDIDATES]; /* [count] */
    cleat_graph *graphs[CLEAT_TUNE_CANDIDATES];                 /* [count]; each contains only the node */
    cleat_plan *plan;
    cleat_exec *exec;
} cleat_autotune_bench;

/* Opens the candidates that are not in `out`; they share their states, which are filled. Borrows `request`.
 * CLEAT_ERR_FIT: they need more than the limit. */
cleat_status cleat_autotune_bench_open(const cleat_autotune_request *request, const bool *out,
                                       cleat_autotune_bench *bench, cleat_error *error);
void cleat_autotune_bench_close(cleat_autotune_bench *bench);
/* Restores the initial values of all inputs, because a node may change them in place. */
cleat_status cleat_autotune_bench_fill(cleat_autotune_bench *bench, cleat_error *error);
/* Runs a burst of candidate i and updates its fastest time. */
cleat_status cleat_autotune_bench_burst(cleat_autotune_bench *bench, size_t i, cleat_error *error);
/* Runs candidate i once, which creates missing objects and may compile; the next few runs determine its burst
 * length. */
cleat_status cleat_autotune_bench_warm_up(cleat_autotune_bench *bench, size_t i, cleat_error *error);

/* Runs the variants in turn on the same tensors and writes the fastest run of each to result->candidates
 * [count]. Other load on the machine can only lengthen a run, and taking turns exposes all candidates to it
 * equally. Candidates that are much slower after one run, or slower after a few bursts, are not run again.
 * Candidates that fail, except the default, are excluded and keep their error. CLEAT_ERR_FIT: the node does
 * not fit within the limit. */
cleat_status cleat_autotune_run(const cleat_autotune_request *request, cleat_tune_node *result, cleat_error *error);

#endif
