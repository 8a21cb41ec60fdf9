/* The training data of a run: the dataset, the samples of its splits, the batches of the epoch in
 * progress. */
#ifndef CLEAT_SRC_RUN_DATA_H
#define CLEAT_SRC_RUN_DATA_H

#include "cleat/loader.h"
#include "cleat/models.h"
#include "fit/buckets.h"
#include "fit/workload.h"

typedef struct cleat_run_data {
    cleat_dataset *dataset;
    /* [train_count], [val_count]: samples of the splits; the training split is limited to data.limit */
    uint32_t *train, *val;
    size_t train_count, val_count;
    cleat_lengths lengths; /* length buckets, with the number of training samples in each */
    cleat_batches *pass;   /* batches of the epoch in progress; NULL between epochs */
    cleat_rng_key rng_key; /* key of that epoch */
    /* As in cleat_batches_spec, with the samples of a global batch on all devices; NULL: this process
     * computes all of them. */
    void (*part)(void *user, int64_t samples, int64_t *first, int64_t *count);
    void *part_user;
    int64_t effective_batch;
} cleat_run_data;

/* Opens profile->data.path. `fitted`: checkpoint folder whose fitted preprocessing is used; NULL: it is
 * fitted to the data. CLEAT_ERR_NOT_FOUND if there are no training samples. The caller closes *data with
 * cleat_run_data_close, also on failure. */
cleat_status cleat_run_data_open(cleat_run_data *data, cleat_model *model, const cleat_profile *profile,
                                 const char *fitted, cleat_error *error);
/* Generates `samples` synthetic training samples of the longest length bucket, for a run that measures times only. */
cleat_status cleat_run_data_make(cleat_run_data *data, cleat_model *model, const cleat_profile *profile, size_t samples,
                                 cleat_error *error);
void cleat_run_data_close(cleat_run_data *data);

/* Chooses the length buckets and counts their samples. CLEAT_ERR_ARGUMENT: a sample is too long for every
 * bucket. */
cleat_status cleat_run_data_count(cleat_run_data *data, const cleat_model *model, const cleat_profile *profile,
                                  cleat_error *error);

/* cleat_run_data_begin_epoch creates the batches of epoch `epoch` (counted from 0),
 * cleat_run_data_end_epoch frees them. */
cleat_status cleat_run_data_begin_epoch(cleat_run_data *data, const cleat_workload *work, uint64_t seed, int64_t epoch,
                                        cleat_error *error);
void cleat_run_data_end_epoch(cleat_run_data *data);

#endif
