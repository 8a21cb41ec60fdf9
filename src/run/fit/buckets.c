/* Chooses length buckets, and computes their global batches and micro-batches. */
#include "fit/buckets.h"

enum { AUTO_BUCKETS = 6, BUCKET_MULTIPLE = 8 };

static cleat_status choose(const cleat_profile *profile, int64_t fixed, const cleat_dataset *dataset,
                           cleat_lengths *chosen, cleat_error *error) {
    const cleat_int_list *given = &profile->data->buckets;
    if (fixed > 0) {
        chosen->lengths[chosen->count++] = fixed;
        return CLEAT_OK;
    }
    const cleat_buckets_spec spec = {.dataset = dataset, .max_buckets = AUTO_BUCKETS, .multiple = BUCKET_MULTIPLE};
    if (given->count == CLEAT_AUTO) return cleat_buckets_choose(&spec, chosen->lengths, &chosen->count, error);
    for (int64_t i = 0; i < given->count; ++i) chosen->lengths[i] = given->values[i];
    chosen->count = (size_t)given->count;
    return CLEAT_OK;
}

cleat_status cleat_lengths_choose(const cleat_profile *profile, int64_t fixed, const cleat_dataset *dataset,
                                  const uint32_t *samples, size_t n_samples, cleat_lengths *chosen,
                                  cleat_error *error) {
    cleat_lengths made = {.count = 0};
    cleat_status status = choose(profile, fixed, dataset, &made, error);
    if (status) return status;
    for (size_t i = 0; i < n_samples; ++i) {
        size_t bucket = 0;
        while (bucket < made.count && made.lengths[bucket] < cleat_dataset_length(dataset, samples[i])) ++bucket;
        /* cleat_batches_create reports a longer sample as an error. */
        if (bucket < made.count) ++made.samples[bucket];
    }
    *chosen = made;
    return CLEAT_OK;
}

int64_t cleat_bucket_split(int64_t global_batch_size, int64_t most) {
    return cleat_ceil_div(global_batch_size, cleat_ceil_div(global_batch_size, most));
}

void cleat_lengths_global_batches(const cleat_lengths *lengths, int64_t effective, cleat_bucket *buckets) {
    for (size_t i = 0; i < lengths->count; ++i) {
        int64_t global_batch_size = cleat_bucket_split(lengths->samples[i] > 0 ? lengths->samples[i] : 1, effective);
        buckets[i] = (cleat_bucket){.length = lengths->lengths[i],
                                    .global_batch_size = global_batch_size,
                                    .micro_batch_size = global_batch_size};
    }
}

int64_t cleat_lengths_steps(const cleat_lengths *lengths, int64_t effective) {
    int64_t steps = 0;
    for (size_t i = 0; i < lengths->count; ++i) steps += cleat_ceil_div(lengths->samples[i], effective);
    return steps;
}

int64_t cleat_bucket_micro_batches(const cleat_bucket *bucket, int64_t samples) {
    int64_t full = samples / bucket->global_batch_size, rest = samples % bucket->global_batch_size;
    return full * cleat_ceil_div(bucket->global_batch_size, bucket->micro_batch_size) +
           cleat_ceil_div(rest, bucket->micro_batch_size);
}

void cleat_lengths_buckets(const cleat_lengths *lengths, int64_t effective, int64_t part, int64_t most,
                           cleat_bucket *buckets) {
    cleat_lengths_global_batches(lengths, effective, buckets);
    for (size_t i = 0; i < lengths->count; ++i) {
        int64_t own = buckets[i].global_batch_size;
        if (part > 0) own = cleat_ceil_div(own * part, effective);
        buckets[i].global_batch_size = own;
        buckets[i].micro_batch_size = most > 0 ? cleat_bucket_split(own, most) : own;
    }
}
