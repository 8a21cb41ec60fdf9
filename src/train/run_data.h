/* What a run trains on: the dataset, the samples of its splits, the batches of the epoch in progress. */
#ifndef CLEAT_SRC_RUN_DATA_H
#define CLEAT_SRC_RUN_DATA_H

#include "cleat/loader.h"
#include "cleat/models.h"
#include "fit/buckets.h"
#include "fit/workload.h"

typedef struct cleat_run_data {
    cleat_dataset *dataset;
    uint32_t *train, *val; /* [train_count], [val_count]: samples of the splits, train cut to data.limit */
    size_t train_count, val_count;
    cleat_lengths lengths; /* the length buckets, and how many training samples fall into each */
    cleat_batches *pass;   /* of the epoch in progress; NULL between two */
    cleat_rng_key rng_key; /* of that epoch */
} cleat_run_data;

/* Opens profile->data.path; `fitted` is the checkpoint folder whose fitted preprocessing is used, NULL: it is fitted.
 * CLEAT_ERR_NOT_FOUND where there is nothing to train on. On failure *data is closed by cleat_run_data_close. */
cleat_status cleat_run_data_open(cleat_run_data *data, cleat_model *model, const cleat_profile *profile,
                                 const char *fitted, cleat_error *error);
void cleat_run_data_close(cleat_run_data *data);

/* Chooses the length buckets and counts their samples. CLEAT_ERR_ARGUMENT: a sample is too long for all of them. */
cleat_status cleat_run_data_count(cleat_run_data *data, const cleat_model *model, const cleat_profile *profile,
                                  cleat_error *error);

/* Lays out the batches of epoch `epoch` (the first is 0), and frees them. */
cleat_status cleat_run_data_begin_epoch(cleat_run_data *data, const cleat_workload *work, uint64_t seed, int64_t epoch,
                                        cleat_error *error);
void cleat_run_data_end_epoch(cleat_run_data *data);

#endif
