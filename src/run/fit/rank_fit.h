/* One device of a data-parallel run: the micro-batches that fit its memory, and its compute time. */
#ifndef CLEAT_SRC_RANK_FIT_H
#define CLEAT_SRC_RANK_FIT_H

#include "cleat/distributed_plan.h"
#include "fit/fit.h"
#include "fit/row_tables.h"

/* Common to all ranks; borrowed. */
typedef struct cleat_rank_setup {
    const cleat_profile *profile;
    const cleat_model *model;
    const cleat_lengths *lengths; /* their samples are not used */
} cleat_rank_setup;

typedef struct cleat_rank_fit {
    bool fits;
    char reason[512]; /* as cleat_fit_report.reason */
    cleat_dtype storage;
    bool recompute;
    int64_t bytes, limit;                /* planned; usable */
    int64_t gradient_bytes;              /* of the flat f32 gradient that ranks exchange, tables included */
    int tables;                          /* whose gradient is exchanged by rows */
    cleat_row_table table[CLEAT_TABLES]; /* [tables] */
    char table_names[CLEAT_TABLES][CLEAT_PLAN_NAME];
    /* [tables, lengths->count]: row numbers in the micro-batches of a step: an upper bound of the rows
     * touched. */
    int64_t numbers[CLEAT_TABLES][CLEAT_BUCKETS];
    cleat_fit_bucket buckets[CLEAT_BUCKETS]; /* [lengths->count] global_batch_size: the samples of this rank */
    /* Estimates, [lengths->count]; 0 for a bucket without samples. */
    double seconds[CLEAT_BUCKETS];  /* forward and backward passes of the rank's samples, and the update */
    double backward[CLEAT_BUCKETS]; /* backward pass of the last micro-batch */
} cleat_rank_fit;

/* Fits samples[b] >= 0 samples of each bucket [lengths->count] to a device with these facts and rates. CLEAT_OK is
 * returned even if they do not fit: see fit->fits. CLEAT_ERR_ARGUMENT: no samples. */
cleat_status cleat_rank_fit_make(const cleat_rank_setup *setup, const cleat_device_facts *facts,
                                 const cleat_rates *rates, const int64_t *samples, cleat_rank_fit *fit,
                                 cleat_error *error);

#endif
