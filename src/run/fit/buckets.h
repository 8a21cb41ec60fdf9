/* Length buckets: the padded lengths of a run, and the size of the global batches and micro-batches of
 * each. */
#ifndef CLEAT_SRC_FIT_BUCKETS_H
#define CLEAT_SRC_FIT_BUCKETS_H

#include "cleat/data.h"
#include "cleat/fit.h"
#include "cleat/profile.h"

static inline int64_t cleat_ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

typedef struct cleat_lengths {
    size_t count;
    int64_t lengths[CLEAT_BUCKETS]; /* ascending */
    int64_t samples[CLEAT_BUCKETS]; /* [count] number of samples in each bucket */
} cleat_lengths;

/* Chooses the padded lengths: only `fixed` if it is above 0 (cleat_model_fixed_length), else the lengths of
 * the profile, else lengths that suit the whole dataset. Counts the samples [n_samples] in each bucket. */
cleat_status cleat_lengths_choose(const cleat_profile *profile, int64_t fixed, const cleat_dataset *dataset,
                                  const uint32_t *samples, size_t n_samples, cleat_lengths *chosen, cleat_error *error);

/* Computes the global batches of an effective batch size: in each bucket at most `effective` samples, spread
 * evenly, so that 50 samples at 48 per step give two global batches of 25. They do not depend on a card.
 * Fills buckets [lengths->count]; micro_batch_size is set to the whole global batch. */
void cleat_lengths_global_batches(const cleat_lengths *lengths, int64_t effective, cleat_bucket *buckets);

/* Number of global batches of all buckets, that is, optimizer steps per epoch. */
int64_t cleat_lengths_steps(const cleat_lengths *lengths, int64_t effective);

/* Size of the micro-batches when a global batch is cut evenly into pieces of at most `most` (>= 1) samples: a
 * global batch of 25 with at most 8 samples at a time becomes 4 micro-batches of 7 slots. */
int64_t cleat_bucket_split(int64_t global_batch_size, int64_t most);

/* Number of micro-batches in a pass over `samples` samples of the bucket: those of its full global batches
 * and those of the last one, which may be smaller. */
int64_t cleat_bucket_micro_batches(const cleat_bucket *bucket, int64_t samples);

/* As cleat_lengths_global_batches, cut into micro-batches of at most `most` samples; 0: not cut. `part`: samples of
 * `effective` that this device computes; its buckets have that share of each global batch. 0: all of them. */
void cleat_lengths_buckets(const cleat_lengths *lengths, int64_t effective, int64_t part, int64_t most,
                           cleat_bucket *buckets);

#endif
