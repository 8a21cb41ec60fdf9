/* Composition of global batches and micro-batches: bucket lengths, and the order of a pass. Pure
 * functions. */
#include "data/batches.h"

#include "core/memory.h"
#include "core/philox.h"

#include <stdlib.h>
#include <string.h>

/* Each random stream of this room has a seed constant that differs from all others, so that no stream repeats
 * another. */
static const uint64_t ORDER_SEED = 0x6F72646572u; /* "order" */

/* Index of the first bucket that holds `length`, or n_buckets if none does. */
static size_t bucket_of(const cleat_bucket *buckets, size_t n_buckets, int64_t length) {
    size_t bucket = 0;
    while (bucket < n_buckets && buckets[bucket].length < length) ++bucket;
    return bucket;
}

cleat_status cleat_batches_check_lengths(const cleat_dataset *dataset, const uint32_t *samples, size_t n_samples,
                                         int64_t longest, cleat_error *error) {
    for (size_t i = 0; i < n_samples; ++i) {
        if (samples[i] >= cleat_dataset_count(dataset))
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "sample %u is out of range in a dataset of %zu samples",
                              samples[i], cleat_dataset_count(dataset));
        int64_t length = cleat_dataset_length(dataset, samples[i]);
        if (length > longest)
            return cleat_fail(
                error, CLEAT_ERR_ARGUMENT,
                "sample %s has length %lld, but the last bucket ends at %lld; add a longer bucket or reduce max_length",
                cleat_dataset_id(dataset, samples[i]), (long long)length, (long long)longest);
    }
    return CLEAT_OK;
}

static cleat_status check_arguments(const cleat_dataset *dataset, const uint32_t *samples, size_t n_samples,
                                    const cleat_bucket *buckets, size_t n_buckets, cleat_error *error) {
    if (!n_buckets) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "at least one length bucket is required");
    if (n_samples > UINT32_MAX) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%zu samples are too many", n_samples);
    for (size_t i = 0; i < n_buckets; ++i) {
        if (buckets[i].length < 1 || buckets[i].micro_batch_size < 1 || buckets[i].micro_batch_size > UINT32_MAX)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "bucket %zu: length %lld and batch %lld must be positive", i,
                              (long long)buckets[i].length, (long long)buckets[i].micro_batch_size);
        if (buckets[i].global_batch_size < buckets[i].micro_batch_size || buckets[i].global_batch_size > UINT32_MAX)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                              "bucket %zu: a global batch of %lld samples is smaller than a micro-batch of %lld", i,
                              (long long)buckets[i].global_batch_size, (long long)buckets[i].micro_batch_size);
        if (i && buckets[i].length <= buckets[i - 1].length)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "bucket lengths must be in ascending order: %lld after %lld",
                              (long long)buckets[i].length, (long long)buckets[i - 1].length);
    }
    return cleat_batches_check_lengths(dataset, samples, n_samples, buckets[n_buckets - 1].length, error);
}

/* A global batch before it is split into micro-batches. */
typedef struct stretch {
    uint32_t bucket, count;
    const uint32_t *samples; /* [count] */
} stretch;

/* Sorts order [n_samples] by bucket into `samples`, stably, and cuts each bucket into global batches whole
 * [n_samples]. Returns their number. filled [n_buckets + 1] is scratch memory. */
static size_t cut_global_batches(const cleat_batches_spec *spec, const uint32_t *order, size_t *filled,
                                 uint32_t *samples, stretch *whole) {
    const cleat_bucket *buckets = spec->buckets;
    const size_t n_samples = spec->n_samples, n_buckets = spec->n_buckets;
    const bool evaluation = !spec->rng_key;
    size_t made = 0;
    memset(filled, 0, (n_buckets + 1) * sizeof *filled);
    for (size_t i = 0; i < n_samples; ++i)
        ++filled[bucket_of(buckets, n_buckets, cleat_dataset_length(spec->dataset, order[i])) + 1];
    for (size_t b = 0; b < n_buckets; ++b) filled[b + 1] += filled[b];
    for (size_t b = 0; b < n_buckets; ++b) {
        const int64_t whole_size =
            spec->global_batch_sizes ? spec->global_batch_sizes[b] : buckets[b].global_batch_size;
        size_t most = (size_t)(evaluation ? buckets[b].micro_batch_size : whole_size);
        for (size_t first = filled[b]; first < filled[b + 1]; first += most) {
            size_t left = filled[b + 1] - first;
            whole[made++] = (stretch){(uint32_t)b, (uint32_t)(left < most ? left : most), samples + first};
        }
    }
    for (size_t i = 0; i < n_samples; ++i) {
        size_t b = bucket_of(buckets, n_buckets, cleat_dataset_length(spec->dataset, order[i]));
        samples[filled[b]++] = order[i];
    }
    return made;
}

static cleat_status shuffle_global_batches(stretch *whole, size_t count, cleat_random *random, cleat_error *error) {
    uint32_t *order = cleat_alloc(count, sizeof *order);
    stretch *before = cleat_alloc(count, sizeof *before);
    cleat_status status = CLEAT_OK;
    if (!order || !before) {
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory to order %zu global batches", count);
        goto done;
    }
    for (size_t i = 0; i < count; ++i) order[i] = (uint32_t)i;
    cleat_random_shuffle(random, order, (uint32_t)count);
    if (count) memcpy(before, whole, count * sizeof *before);
    for (size_t i = 0; i < count; ++i) whole[i] = before[order[i]];
done:
    cleat_free(before);
    cleat_free(order);
    return status;
}

/* Appends a global batch, and its samples, or this device's part of them, as micro-batches. */
static void add_global_batch(cleat_batches *made, const cleat_batches_spec *spec, const stretch *whole) {
    const int64_t most = spec->buckets[whole->bucket].micro_batch_size;
    int64_t begin = 0, own = whole->count;
    if (spec->part) spec->part(spec->user, whole->count, &begin, &own);
    uint32_t pieces = (uint32_t)((own + most - 1) / most), first = (uint32_t)begin;
    cleat_global_batch *global_batch = &made->global_batches[made->global_batch_count];
    *global_batch = (cleat_global_batch){.first = made->count, .micro_batches = pieces, .samples = whole->count};
    for (uint32_t i = 0; i < whole->count; ++i)
        global_batch->items += cleat_dataset_items(spec->dataset, whole->samples[i]);
    for (uint32_t i = 0; i < pieces; ++i) {
        uint32_t count = (uint32_t)own / pieces + (i < (uint32_t)own % pieces);
        made->items[made->count++] = (cleat_micro_batch){.bucket = whole->bucket,
                                                         .count = count,
                                                         .global_batch = (uint32_t)made->global_batch_count,
                                                         .first = first,
                                                         .samples = whole->samples + first};
        first += count;
    }
    ++made->global_batch_count;
}

cleat_status cleat_batches_create(const cleat_batches_spec *spec, cleat_batches **batches, cleat_error *error) {
    const size_t n_samples = spec->n_samples;
    const cleat_rng_key *rng_key = spec->rng_key;
    cleat_status status =
        check_arguments(spec->dataset, spec->samples, n_samples, spec->buckets, spec->n_buckets, error);
    if (status) return status;
    cleat_batches *made = cleat_alloc(1, sizeof *made);
    uint32_t *order = cleat_alloc(n_samples, sizeof *order);
    size_t *filled = cleat_alloc(spec->n_buckets + 1, sizeof *filled);
    stretch *whole = cleat_alloc(n_samples, sizeof *whole);
    if (made) { /* there are at most as many global batches, and micro-batches, as samples */
        made->items = cleat_alloc(n_samples, sizeof *made->items);
        made->global_batches = cleat_alloc(n_samples, sizeof *made->global_batches);
        made->samples = cleat_alloc(n_samples, sizeof *made->samples);
    }
    if (!made || !order || !filled || !whole || !made->items || !made->global_batches || !made->samples) {
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for batches of %zu samples", n_samples);
        goto done;
    }
    if (n_samples) memcpy(order, spec->samples, n_samples * sizeof *order);
    cleat_random random = {0};
    if (rng_key) {
        random = cleat_random_stream(rng_key->seed ^ ORDER_SEED, rng_key->epoch, 0);
        cleat_random_shuffle(&random, order, (uint32_t)n_samples);
    }
    size_t global_batches = cut_global_batches(spec, order, filled, made->samples, whole);
    if (rng_key) status = shuffle_global_batches(whole, global_batches, &random, error);
    if (status) goto done;
    for (size_t w = 0; w < global_batches; ++w) add_global_batch(made, spec, &whole[w]);
    *batches = made;
    made = NULL;
done:
    cleat_batches_destroy(made);
    cleat_free(whole);
    cleat_free(filled);
    cleat_free(order);
    return status;
}

void cleat_batches_destroy(cleat_batches *batches) {
    if (!batches) return;
    cleat_free(batches->items);
    cleat_free(batches->global_batches);
    cleat_free(batches->samples);
    cleat_free(batches);
}

size_t cleat_batches_count(const cleat_batches *batches) {
    return batches->count;
}

const cleat_micro_batch *cleat_batches_get(const cleat_batches *batches, size_t index) {
    return index < batches->count ? &batches->items[index] : NULL;
}

size_t cleat_batches_global_batch_count(const cleat_batches *batches) {
    return batches->global_batch_count;
}

bool cleat_batches_global_batch(const cleat_batches *batches, size_t index, cleat_global_batch *global_batch) {
    if (index >= batches->global_batch_count) return false;
    *global_batch = batches->global_batches[index];
    return true;
}

/* Distinct lengths, rounded up, and the number of samples up to each of them. */
typedef struct steps {
    int64_t *length;   /* [count], ascending */
    uint64_t *samples; /* [count], cumulative */
    size_t count;
} steps;

static int compare_lengths(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

enum { MAX_STEPS = 2048 };

/* Rounds sorted lengths [n] up to multiples of `multiple`, or of a coarser multiple if that leaves more than
 * MAX_STEPS steps. */
static void find_steps(const int64_t *lengths, size_t n, int64_t multiple, steps *found) {
    for (;; multiple *= 2) {
        found->count = 0;
        bool fits = true;
        for (size_t i = 0; i < n && fits; ++i) {
            int64_t rounded = (lengths[i] + multiple - 1) / multiple * multiple;
            if (!found->count || found->length[found->count - 1] != rounded) {
                if ((fits = found->count < MAX_STEPS)) found->length[found->count++] = rounded;
            }
            if (fits) found->samples[found->count - 1] = i + 1;
        }
        if (fits) return;
    }
}

/* Dynamic programming. best[k][i]: fewest padded elements of steps 0..i in k + 1 buckets, the last of which
 * ends at step i. from[k][i]: the last step of the previous bucket, or -1. Both [buckets * MAX_STEPS]. */
static size_t choose(const steps *s, size_t buckets, double *best, int32_t *from, int64_t *lengths) {
    for (size_t k = 0; k < buckets; ++k)
        for (size_t i = 0; i < s->count; ++i) {
            double *cost = &best[k * MAX_STEPS + i];
            *cost = (double)s->samples[i] * (double)s->length[i];
            from[k * MAX_STEPS + i] = -1;
            for (size_t j = 0; k && j < i; ++j) {
                double split =
                    best[(k - 1) * MAX_STEPS + j] + (double)(s->samples[i] - s->samples[j]) * (double)s->length[i];
                if (split < *cost) {
                    *cost = split;
                    from[k * MAX_STEPS + i] = (int32_t)j;
                }
            }
        }
    size_t n = 0;
    int32_t step = (int32_t)s->count - 1;
    for (size_t k = buckets; k-- > 0 && step >= 0;) {
        lengths[n++] = s->length[step];
        step = from[k * MAX_STEPS + (size_t)step];
    }
    for (size_t i = 0; i < n / 2; ++i) {
        int64_t swapped = lengths[i];
        lengths[i] = lengths[n - 1 - i];
        lengths[n - 1 - i] = swapped;
    }
    return n;
}

cleat_status cleat_buckets_choose(const cleat_buckets_spec *spec, int64_t *lengths, size_t *n_lengths,
                                  cleat_error *error) {
    const uint32_t *samples = spec->samples;
    const size_t max_buckets = spec->max_buckets;
    const int64_t multiple = spec->multiple;
    size_t n = samples ? spec->n_samples : cleat_dataset_count(spec->dataset);
    if (!n || !max_buckets || max_buckets > 64 || multiple < 1)
        return cleat_fail(
            error, CLEAT_ERR_ARGUMENT,
            "invalid buckets: samples (%zu), 1 to 64 buckets (%zu) and a positive multiple (%lld) are required", n,
            max_buckets, (long long)multiple);
    cleat_status status = CLEAT_OK;
    int64_t *sorted = cleat_alloc(n, sizeof *sorted);
    steps found = {.length = cleat_alloc(MAX_STEPS, sizeof *found.length),
                   .samples = cleat_alloc(MAX_STEPS, sizeof *found.samples)};
    double *best = cleat_alloc(max_buckets * MAX_STEPS, sizeof *best);
    int32_t *from = cleat_alloc(max_buckets * MAX_STEPS, sizeof *from);
    if (!sorted || !found.length || !found.samples || !best || !from) {
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory to choose buckets for %zu samples", n);
        goto done;
    }
    for (size_t i = 0; i < n; ++i) {
        int64_t length = cleat_dataset_length(spec->dataset, samples ? samples[i] : i);
        sorted[i] = length > 0 ? length : 1;
    }
    qsort(sorted, n, sizeof *sorted, compare_lengths);
    find_steps(sorted, n, multiple, &found);
    *n_lengths = choose(&found, max_buckets, best, from, lengths);
done:
    cleat_free(from);
    cleat_free(best);
    cleat_free(found.samples);
    cleat_free(found.length);
    cleat_free(sorted);
    return status;
}
