/* Length buckets: the padded lengths a run uses, and how many samples a window and a micro-batch of each has. */
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

/* `fixed` alone where it is above 0 (cleat_model_fixed_length); else the profile's lengths, or ones chosen for the whole dataset;
 * counts `samples` [n_samples]. */
cleat_status cleat_lengths_choose(const cleat_profile *profile, int64_t fixed, const cleat_dataset *dataset,
                                  const uint32_t *samples, size_t n_samples, cleat_lengths *chosen, cleat_error *error);

/* The windows of an effective batch: of each bucket at most `effective` samples, spread evenly, so that 50 samples at
 * 48 a step are two windows of 25. They do not depend on a card. buckets [lengths->count], `batch` the whole window. */
void cleat_lengths_global_batches(const cleat_lengths *lengths, int64_t effective, cleat_bucket *buckets);

/* How many windows there are of all buckets: optimizer steps an epoch. */
int64_t cleat_lengths_steps(const cleat_lengths *lengths, int64_t effective);

/* The size of even micro-batches of at most `most` (>= 1) samples: a window of 25 with at most 8 at a time is 4 of
 * them, of 7 slots. */
int64_t cleat_bucket_split(int64_t global_batch_size, int64_t most);

/* Micro-batches of a pass over `samples` samples that fall into the bucket: of its full windows, and of the last one,
 * which may be smaller. */
int64_t cleat_bucket_micro_batches(const cleat_bucket *bucket, int64_t samples);

/* The same windows in micro-batches of at most `most` samples; 0: whole. */
void cleat_lengths_buckets(const cleat_lengths *lengths, int64_t effective, int64_t most, cleat_bucket *buckets);

#endif
