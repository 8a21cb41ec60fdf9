/* Internal layout of the batches of a pass. */
#ifndef CLEAT_SRC_BATCHES_H
#define CLEAT_SRC_BATCHES_H

#include "cleat/loader.h"

struct cleat_batches {
    cleat_micro_batch *items; /* [count]; their samples point into `samples` */
    size_t count;
    cleat_global_batch *global_batches; /* [global_batch_count] */
    size_t global_batch_count;
    uint32_t *samples; /* [n_samples] */
};

/* CLEAT_ERR_ARGUMENT: one of the samples [n_samples] is longer than `longest`, or out of range. */
cleat_status cleat_batches_check_lengths(const cleat_dataset *dataset, const uint32_t *samples, size_t n_samples,
                                         int64_t longest, cleat_error *error);

#endif
