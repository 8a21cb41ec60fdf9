/* Length buckets: the padded lengths a run uses, and how many slots a batch of each has. */
#ifndef CLEAT_SRC_FIT_BUCKETS_H
#define CLEAT_SRC_FIT_BUCKETS_H

#include "cleat/data.h"
#include "cleat/fit.h"
#include "cleat/profile.h"

typedef struct cleat_lengths {
    size_t count;
    int64_t lengths[CLEAT_BUCKETS]; /* ascending */
    int64_t samples[CLEAT_BUCKETS]; /* how many samples fall into each */
} cleat_lengths;

/* The profile's lengths, or ones chosen for the whole dataset; counts `samples` [n_samples]. */
cleat_status cleat_lengths_choose(const cleat_profile *profile, const cleat_dataset *dataset, const uint32_t *samples,
                                  size_t n_samples, cleat_lengths *chosen, cleat_error *error);

/* At most `batch` slots a bucket, and no more than spreading its samples evenly over its batches needs: 5 chains of 400 residues are a
 * batch of 5, not 16 slots of which 11 are padding. buckets [lengths->count]. */
void cleat_lengths_buckets(const cleat_lengths *lengths, int64_t batch, cleat_bucket *buckets);

#endif
