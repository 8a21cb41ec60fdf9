/* Choosing length buckets, and sizing their batches. */
#include "fit/buckets.h"

enum { AUTO_BUCKETS = 6, BUCKET_MULTIPLE = 8 };

static cleat_status choose(const cleat_profile *profile, const cleat_dataset *dataset, cleat_lengths *chosen,
                           cleat_error *error) {
    const cleat_int_list *given = &profile->data.buckets;
    if (given->count == CLEAT_AUTO)
        return cleat_buckets_choose(dataset, NULL, 0, AUTO_BUCKETS, BUCKET_MULTIPLE, chosen->lengths, &chosen->count,
                                    error);
    for (int64_t i = 0; i < given->count; ++i) chosen->lengths[i] = given->values[i];
    chosen->count = (size_t)given->count;
    return CLEAT_OK;
}

cleat_status cleat_lengths_choose(const cleat_profile *profile, const cleat_dataset *dataset, const uint32_t *samples,
                                  size_t n_samples, cleat_lengths *chosen, cleat_error *error) {
    cleat_lengths made = {.count = 0};
    cleat_status status = choose(profile, dataset, &made, error);
    if (status != CLEAT_OK) return status;
    for (size_t i = 0; i < n_samples; ++i) {
        size_t bucket = 0;
        while (bucket < made.count && made.lengths[bucket] < cleat_dataset_length(dataset, samples[i])) ++bucket;
        if (bucket < made.count) ++made.samples[bucket]; /* a longer sample is an error of cleat_batches_create */
    }
    *chosen = made;
    return CLEAT_OK;
}

void cleat_lengths_buckets(const cleat_lengths *lengths, int64_t batch, cleat_bucket *buckets) {
    for (size_t i = 0; i < lengths->count; ++i) {
        int64_t samples = lengths->samples[i] > 0 ? lengths->samples[i] : 1;
        int64_t batches = (samples + batch - 1) / batch;
        buckets[i] = (cleat_bucket){.length = lengths->lengths[i], .batch = (samples + batches - 1) / batches};
    }
}
