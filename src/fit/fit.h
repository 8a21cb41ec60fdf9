/* The search for micro-batches: the largest that fit, and whether recomputing activations pays. */
#ifndef CLEAT_SRC_FIT_H
#define CLEAT_SRC_FIT_H

#include "fit/buckets.h"
#include "fit/workload.h"

typedef struct cleat_fit_request {
    const cleat_profile *profile; /* effective batch, gradient_checkpointing */
    const cleat_model *model;
    cleat_purpose purpose;
    const cleat_lengths *lengths;
    const cleat_device_facts *facts;
    const cleat_rates *rates;         /* NULL: not known; then recomputing is a matter of memory only */
    const cleat_tuning_table *tuning; /* kernels that were measured on the card; NULL: the default ones */
    int64_t limit;                    /* bytes that may be planned; 0: no limit */
    int64_t most;                     /* samples a micro-batch at most; 0: the whole window */
    const cleat_int_list
        *batches; /* samples a micro-batch of each bucket at most; NULL, or of another count: not said */
    bool exactly; /* somebody asked for `most` or `batches`: less is not what they asked for */
} cleat_fit_request;

/* A request for a profile as it stands: its batch_size, and the limit of cleat_fit_limit. */
cleat_fit_request cleat_fit_request_for(const cleat_profile *profile, const cleat_model *model, cleat_purpose purpose,
                                        const cleat_lengths *lengths, const cleat_device_facts *facts,
                                        const cleat_rates *rates);

/* The lengths of the data a profile names, or where they are not there one full window of the longest length. */
cleat_status cleat_fit_lengths(const cleat_profile *profile, cleat_model *model, cleat_lengths *lengths,
                               bool *data_known, cleat_error *error);

/* Bytes that may be used: run.max_memory_usage of what is free, or of all where nobody tells what is free. */
int64_t cleat_fit_limit(const cleat_device_facts *facts, const cleat_profile *profile);

/* One way of running the profile: all activations stored, or recomputed in groups of segments. */
typedef struct cleat_fitted {
    cleat_workload *work; /* NULL: does not fit */
    double step_seconds;  /* estimates (0 without rates): an optimizer step of the longest bucket, ... */
    double pass_seconds;  /* ... and one pass over the samples */
    int64_t min_bytes;    /* what one sample of the longest bucket needs */
    cleat_error why;      /* where it does not fit */
} cleat_fitted;

void cleat_fitted_clear(cleat_fitted *fitted);

/* Fits with recompute groups of `recompute` segments (0: stored). CLEAT_OK also where nothing fits. */
cleat_status cleat_fit_one_way(const cleat_fit_request *request, int recompute, cleat_fitted *fitted,
                               cleat_error *error);

/* The group size that needs the least memory at the longest bucket; 0 where the model has no two segments. */
cleat_status cleat_fit_group(const cleat_fit_request *request, int *recompute, cleat_error *error);

/* Both ways as far as gradient_checkpointing asks for them, and the better one in chosen->work (the caller destroys
 * it). `other` (may be NULL) is the way not taken, `why` [why_size] a sentence. CLEAT_ERR_FIT: neither fits; the text says short by how
 * much, because of what, and what would fit; other->min_bytes is set. */
cleat_status cleat_fit_search(const cleat_fit_request *request, cleat_fitted *chosen, cleat_fitted *other, char *why,
                              size_t why_size, cleat_error *error);

/* Samples / micro-batches of a bucket's full window. */
int64_t cleat_fit_micro_batches(const cleat_bucket *bucket);

/* What would fit where nothing does, as sentences behind "does not fit" (shortage.c). */
void cleat_fit_explain(const cleat_fit_request *request, const cleat_fitted *smallest, cleat_error *error);

#endif
