/* Batches, and the loader's threads.
 *
 * A batch stacks the entries of samples of about the same length, padded to the length of their BUCKET;
 * the loader fills batches on its threads, in order. Letters: B slots of a batch, L padded length.
 *
 * Threads: batches do not change once they are made: any number of threads may read them. A loader has one
 * consumer: one thread at a time calls its functions. Of the setup, slot_wait is called by the thread that
 * fills the slot, one of the loader's own if it has any; the others by the thread that creates the loader. */
#ifndef CLEAT_LOADER_H
#define CLEAT_LOADER_H

#include "cleat/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- batches -------------------------------------------------------------------------------------------------- */

/* Samples up to `length` (and above the bucket before) are padded to `length`. An optimizer step takes
 * `global_batch_size` of them, whatever the card; they are run as micro-batches of at most
 * `micro_batch_size` slots. */
typedef struct cleat_bucket {
    int64_t length;
    int64_t global_batch_size;
    int64_t micro_batch_size; /* 1 .. global_batch_size */
} cleat_bucket;

/* A micro-batch. */
typedef struct cleat_micro_batch {
    uint32_t bucket;
    uint32_t count;          /* samples, 1 .. batch of the bucket; slots from here on are empty */
    uint32_t global_batch;   /* index of its window in the pass */
    uint32_t first;          /* samples of its window that come before it */
    const uint32_t *samples; /* [count] */
} cleat_micro_batch;

/* The samples of one optimizer step: consecutive micro-batches of one bucket, whose gradients add up. */
typedef struct cleat_global_batch {
    size_t first, micro_batches; /* micro-batches first .. first + micro_batches - 1 of the pass */
    int64_t samples;
    int64_t items; /* cleat_dataset_items summed over the samples: before any random cut of a rng_key */
} cleat_global_batch;

/* All micro-batches of one pass, in order. */
typedef struct cleat_batches cleat_batches;

/* What bucket lengths are chosen for. All is borrowed, during the call. */
typedef struct cleat_buckets_spec {
    const cleat_dataset *dataset;
    const uint32_t *samples; /* [n_samples] indices; NULL: all samples of the dataset */
    size_t n_samples;        /* not read where `samples` is NULL */
    size_t max_buckets;      /* 1 to 64; has no default */
    int64_t multiple;        /* every length is one of this, in elements; >= 1; has no default */
} cleat_buckets_spec;

/* Chooses at most `max_buckets` bucket lengths for these samples, each a multiple of `multiple` (the last one
 * covers the longest sample), so that the padded elements summed over the samples are as few as possible.
 * lengths [max_buckets], ascending; *n_lengths of them are set. CLEAT_ERR_ARGUMENT: no samples, or a number of the
 * spec is out of its range. */
CLEAT_API cleat_status cleat_buckets_choose(const cleat_buckets_spec *spec, int64_t *lengths, size_t *n_lengths,
                                            cleat_error *error);

/* What is laid out for one pass. All is borrowed, during the call. */
typedef struct cleat_batches_spec {
    const cleat_dataset *dataset;
    const uint32_t *samples;      /* [n_samples] indices */
    size_t n_samples;             /* 0: a pass without batches */
    const cleat_bucket *buckets;  /* [n_buckets] ascending lengths */
    size_t n_buckets;             /* >= 1 */
    const cleat_rng_key *rng_key; /* of the permutation; NULL: evaluation, in the given order */
} cleat_batches_spec;

/* Lays the samples out. With `rng_key` (training): a permutation of the samples, cut into global batches within
 * their buckets; the global batches are shuffled, and each is cut into as few micro-batches as the bucket's
 * micro_batch_size allows, which differ by at most one sample. The content and the order of the global batches
 * are a pure function of (samples, lengths, global_batch_size of the buckets, rng_key): micro_batch_size has no
 * part in it. `rng_key` NULL (evaluation): bucket by bucket, samples in the given order, every micro-batch is a
 * global batch. The last global batch of a bucket may be short; no sample is dropped. CLEAT_ERR_ARGUMENT names a
 * sample longer than the last bucket. */
CLEAT_API cleat_status cleat_batches_create(const cleat_batches_spec *spec, cleat_batches **batches,
                                            cleat_error *error);
CLEAT_API void cleat_batches_destroy(cleat_batches *batches);
CLEAT_API size_t cleat_batches_count(const cleat_batches *batches);
CLEAT_API const cleat_micro_batch *cleat_batches_get(const cleat_batches *batches, size_t index);
CLEAT_API size_t cleat_batches_global_batch_count(const cleat_batches *batches);
/* Window `index` of the pass; false behind the last one. */
CLEAT_API bool cleat_batches_global_batch(const cleat_batches *batches, size_t index, cleat_global_batch *global_batch);

/* --- loader --------------------------------------------------------------------------------------------------- */

typedef struct cleat_loader cleat_loader;

/* Everything pointed to must outlive the loader; only the arrays `buckets` and `slots` are copied. */
typedef struct cleat_loader_setup {
    const cleat_dataset *dataset;
    const cleat_bucket *buckets;
    size_t n_buckets;
    int workers; /* threads; 0: cleat_loader_next fills the batch itself */
    /* threads live from one pass to the next; false: they end with a pass that is read to its end */
    bool persistent;
    /* CPUs near the card, a list as in cleat_device_facts.pinning ("0-7"); NULL or "any": all allowed */
    const char *cpus;
    void *const *slots; /* [n_slots] host memory (pinned staging buffers); see cleat_loader_slots */
    size_t n_slots;
    /* Where field `field` of bucket `bucket` lies in a slot: its byte offset, aligned to 4, for [B, shape...]
     * with B = buckets[bucket].batch; -1: not wanted. Asked once, at creation. */
    int64_t (*field_offset)(void *user, size_t bucket, size_t field);
    /* The type in which a CLEAT_F32 field lies there: CLEAT_F32, or CLEAT_F16 or CLEAT_BF16, to which it
     * is rounded. Asked once too. NULL: each field in its own. */
    cleat_dtype (*field_storage)(void *user, size_t bucket, size_t field);
    /* Waits until slot `slot` may be overwritten (its last upload has left). Called by the thread that fills
     * it. NULL: it always may. */
    cleat_status (*slot_wait)(void *user, size_t slot, cleat_error *error);
    void *user;
} cleat_loader_setup;

/* A filled batch. The consumer owns its slot until cleat_loader_release. */
typedef struct cleat_loaded {
    const cleat_micro_batch *micro_batch; /* NULL: the pass is over */
    size_t index;                         /* of the batch in the pass */
    size_t slot;
} cleat_loaded;

typedef struct cleat_loader_stats {
    uint64_t batches;    /* handed out */
    double wait_seconds; /* time the consumer waited in cleat_loader_next */
    double fill_seconds; /* time spent filling batches, summed over threads */
} cleat_loader_stats;

/* The number of slots for `workers` threads to prefetch `prefetch_factor` batches each while the consumer
 * holds `held`. */
CLEAT_API size_t cleat_loader_slots(int workers, int prefetch_factor, size_t held);

/* Creates a loader; its threads start with the first pass. CLEAT_ERR_ARGUMENT: an inconsistent setup. The
 * caller destroys the loader. */
CLEAT_API cleat_status cleat_loader_create(const cleat_loader_setup *setup, cleat_loader **loader, cleat_error *error);
/* Stops a pass that is under way, joins the threads. Takes NULL. */
CLEAT_API void cleat_loader_destroy(cleat_loader *loader);

/* Starts a pass over batches [first, count), which must live until the pass is over or stopped. A pass that
 * is under way is stopped first. `rng_key` is copied (NULL: evaluation). The batches must have been made with
 * the buckets of the setup. */
CLEAT_API cleat_status cleat_loader_start(cleat_loader *loader, const cleat_batches *batches, size_t first,
                                          const cleat_rng_key *rng_key, cleat_error *error);
/* Hands out the next batch, in order whatever the number of threads; waits for it. After the last one
 * loaded->batch is NULL. A batch that could not be filled ends the pass: its error, with the text of the
 * thread that met it, is returned in its turn and from then on. Only bytes of wanted fields are written: the
 * rest of a slot is the caller's. Waiting with no slot free and none being filled is CLEAT_ERR_ARGUMENT (the
 * consumer holds them all). One consumer thread. */
CLEAT_API cleat_status cleat_loader_next(cleat_loader *loader, cleat_loaded *loaded, cleat_error *error);
/* Returns a slot to the loader, which fills it again after slot_wait. */
CLEAT_API void cleat_loader_release(cleat_loader *loader, size_t slot);
/* Ends the pass and waits for fills in progress. The consumer keeps the slots it holds until it releases
 * them. */
CLEAT_API void cleat_loader_stop(cleat_loader *loader);
CLEAT_API cleat_loader_stats cleat_loader_statistics(cleat_loader *loader);

#ifdef __cplusplus
}
#endif
#endif
