/* The search for micro-batches: the largest that fit, and whether recomputation of activations pays. */
#ifndef CLEAT_SRC_FIT_H
#define CLEAT_SRC_FIT_H

#include "fit/buckets.h"
#include "fit/workload.h"

typedef struct cleat_fit_request {
    const cleat_profile *profile; /* its effective batch and gradient_checkpointing are used */
    const cleat_model *model;
    cleat_purpose purpose;
    const cleat_lengths *lengths;
    const cleat_device_facts *facts;
    /* NULL: unknown; only memory then decides about recomputation. */
    const cleat_rates *rates;
    const cleat_tuning_table *tuning; /* kernels measured on the card; NULL: the default ones */
    int64_t limit;                    /* maximum bytes of a plan; 0: no limit */
    int64_t most;                     /* maximum samples of a micro-batch; 0: the whole global batch */
    /* Maximum samples of a micro-batch, for each bucket; NULL or a list with another count: no such limit. */
    const cleat_int_list *batches;
    /* `most` or `batches` was requested explicitly, so smaller micro-batches must not be used. */
    bool exactly;
    /* Training on several devices: samples of a global batch that this one computes; 0: all of them. */
    int64_t part;
    bool host_norm; /* as in cleat_workload_spec */
} cleat_fit_request;

/* The request for a profile with its own batch_size and the limit of cleat_fit_limit. All arguments are
 * borrowed. */
cleat_fit_request cleat_fit_request_for(const cleat_profile *profile, const cleat_model *model, cleat_purpose purpose,
                                        const cleat_lengths *lengths, const cleat_device_facts *facts,
                                        const cleat_rates *rates);

/* The parts of the requested workload, without buckets and recomputation. Borrows what the request
 * borrows. */
cleat_workload_spec cleat_fit_workload(const cleat_fit_request *request);

/* The lengths of the profile's data; if the data do not exist, one full global batch of the longest
 * length. */
cleat_status cleat_fit_lengths(const cleat_profile *profile, cleat_model *model, cleat_lengths *lengths,
                               bool *data_known, cleat_error *error);

/* Bytes that a plan may use: run.max_memory_usage times the free memory, or times all memory if the free
 * memory is unknown. */
int64_t cleat_fit_limit(const cleat_device_facts *facts, const cleat_profile *profile);

/* The result for one strategy: all activations stored, or recomputed in groups of segments. */
typedef struct cleat_fit_result {
    cleat_workload *work; /* owned; NULL: it does not fit */
    double step_seconds;  /* estimate for an optimizer step of the longest bucket; 0 without rates */
    double pass_seconds;  /* estimate for one pass over the samples; 0 without rates */
    int64_t min_bytes;    /* bytes that one sample of the longest bucket needs */
    cleat_error why;      /* the reason if it does not fit */
} cleat_fit_result;

void cleat_fit_result_clear(cleat_fit_result *fitted);

/* Fits with recomputed groups of `recompute` segments (0: stored). Also returns CLEAT_OK if nothing fits. */
cleat_status cleat_fit_one_way(const cleat_fit_request *request, int recompute, cleat_fit_result *fitted,
                               cleat_error *error);

/* Finds the group size that needs the least memory at the longest bucket; 0 if the model has fewer than
 * two segments; CLEAT_RECOMPUTE_CHEAP if the profile sets it. */
cleat_status cleat_fit_group(const cleat_fit_request *request, int *recompute, cleat_error *error);

/* Tries both strategies, as far as gradient_checkpointing allows, and returns the better one in chosen->work
 * (the caller destroys it). `other` (may be NULL) receives the alternative, `why` [why_size] the reason as a
 * sentence. CLEAT_ERR_FIT: neither fits; the message gives the missing bytes, the cause, and what would fit;
 * other->min_bytes is set. */
cleat_status cleat_fit_search(const cleat_fit_request *request, cleat_fit_result *chosen, cleat_fit_result *other,
                              char *why, size_t why_size, cleat_error *error);

/* A card that also draws the desktop freezes it while a kernel runs, and Windows resets the card after two seconds.
 * Micro-batches of GPUs are cut until no launch is estimated to take longer, where the profile leaves them open. */
#define CLEAT_MAX_LAUNCH_SECONDS 0.2

/* The longest launch of a plan as estimated; a node with several counts as one, because one of them takes most of its
 * time. `*node`: its name, borrowed from the plan. */
cleat_status cleat_fit_longest_launch(const cleat_plan *plan, const cleat_rates *rates, double *seconds,
                                      const char **node, cleat_error *error);

/* Number of micro-batches of a full global batch of the bucket. */
int64_t cleat_fit_micro_batches(const cleat_bucket *bucket);

/* Appends to the message, after "does not fit", sentences about what would fit (shortage.c). */
void cleat_fit_explain(const cleat_fit_request *request, const cleat_fit_result *smallest, cleat_error *error);

#endif
