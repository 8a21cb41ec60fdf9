/* Batches, and the loader, which fills them on its threads and returns them in order.
 *
 * A batch stacks the fields of samples of similar length, padded to the length of their bucket. Letters: B
 * slots of a batch, L padded length.
 *
 * Threads: batches are immutable after creation; any number of threads may read them. A loader has one
 * consumer: only one thread at a time may call its functions. The callbacks slot_wait and filled are called
 * by the thread that fills the slot (one of the loader's threads if it has any), the other callbacks by the
 * thread that creates the loader. */
#ifndef CLEAT_LOADER_H
#define CLEAT_LOADER_H

#include "cleat/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- batches -------------------------------------------------------------------------------------------------- */

/* A bucket holds the samples longer than the previous bucket's length and not longer than `length`; they are
 * padded to `length`. An optimizer step takes `global_batch_size` of them on every device, and runs them as
 * micro-batches of at most `micro_batch_size` slots. */
typedef struct cleat_bucket {
    int64_t length;
    int64_t global_batch_size;
    int64_t micro_batch_size; /* 1 .. global_batch_size */
} cleat_bucket;

/* A micro-batch: the samples of one run of a graph. */
typedef struct cleat_micro_batch {
    uint32_t bucket;
    uint32_t count;          /* samples, 1 .. micro_batch_size of the bucket; later slots are empty */
    uint32_t global_batch;   /* index of its global batch in the pass */
    uint32_t first;          /* number of samples of its global batch that precede it */
    const uint32_t *samples; /* [count] */
} cleat_micro_batch;

/* A global batch: the samples of one optimizer step, as consecutive micro-batches of one bucket whose
 * gradients are summed. */
typedef struct cleat_global_batch {
    size_t first, micro_batches; /* micro-batches first .. first + micro_batches - 1 of the pass */
    int64_t samples;
    int64_t items; /* cleat_dataset_items summed over the samples, before any random crop */
} cleat_global_batch;

/* All micro-batches of one pass, in order. */
typedef struct cleat_batches cleat_batches;

/* Input of cleat_buckets_choose. Everything is borrowed for the duration of the call. */
typedef struct cleat_buckets_spec {
    const cleat_dataset *dataset;
    const uint32_t *samples; /* [n_samples] indices; NULL: all samples of the dataset */
    size_t n_samples;        /* ignored if `samples` is NULL */
    size_t max_buckets;      /* 1 to 64; has no default */
    int64_t multiple;        /* every length is a multiple of this, in elements; >= 1; has no default */
} cleat_buckets_spec;

/* Chooses at most `max_buckets` bucket lengths, each a multiple of `multiple`, that minimise the number of
 * padded elements summed over the samples. The last length covers the longest sample. lengths [max_buckets]
 * receives *n_lengths values in ascending order. CLEAT_ERR_ARGUMENT: no samples, or a value of `spec` is out
 * of range. */
CLEAT_API cleat_status cleat_buckets_choose(const cleat_buckets_spec *spec, int64_t *lengths, size_t *n_lengths,
                                            cleat_error *error);

/* Input of cleat_batches_create: one pass over the data. Everything is borrowed for the duration of the
 * call. */
typedef struct cleat_batches_spec {
    const cleat_dataset *dataset;
    const uint32_t *samples;      /* [n_samples] indices */
    size_t n_samples;             /* 0: a pass without batches */
    const cleat_bucket *buckets;  /* [n_buckets] ascending lengths */
    size_t n_buckets;             /* >= 1 */
    const cleat_rng_key *rng_key; /* key of the permutation; NULL: evaluation, in the given order */
    /* Training on several devices: [n_buckets] samples of a global batch on all devices together; the
     * buckets' global_batch_size is then this device's part. NULL: global_batch_size of the buckets. */
    const int64_t *global_batch_sizes;
    /* The part of a global batch of `samples` samples that this device computes: *count samples from *first
     * on. NULL: all of them. Must be a pure function. */
    void (*part)(void *user, int64_t samples, int64_t *first, int64_t *count);
    void *user;
} cleat_batches_spec;

/* Divides the samples of one pass into micro-batches.
 *
 * With `rng_key` (training), the samples are permuted and cut into global batches within their buckets. The
 * global batches are shuffled, and each is cut into the smallest number of micro-batches that the bucket's
 * micro_batch_size allows; the sizes of these differ by at most one sample. The content and order of the
 * global batches are a pure function of (samples, bucket lengths, global_batch_size of the buckets, rng_key)
 * and do not depend on micro_batch_size or `part`. Only the micro-batches of `part` are made, so a global
 * batch may have none.
 *
 * With `rng_key` NULL (evaluation), buckets follow one another, samples keep the given order, and every
 * micro-batch is a global batch.
 *
 * The last global batch of a bucket may be smaller; no sample is dropped. CLEAT_ERR_ARGUMENT: a sample is
 * longer than the last bucket; the message names it. The caller owns *batches (cleat_batches_destroy). */
CLEAT_API cleat_status cleat_batches_create(const cleat_batches_spec *spec, cleat_batches **batches,
                                            cleat_error *error);
CLEAT_API void cleat_batches_destroy(cleat_batches *batches);
CLEAT_API size_t cleat_batches_count(const cleat_batches *batches);
CLEAT_API const cleat_micro_batch *cleat_batches_get(const cleat_batches *batches, size_t index);
CLEAT_API size_t cleat_batches_global_batch_count(const cleat_batches *batches);
/* Writes global batch `index` of the pass; false past the last one. */
CLEAT_API bool cleat_batches_global_batch(const cleat_batches *batches, size_t index, cleat_global_batch *global_batch);

/* --- loader --------------------------------------------------------------------------------------------------- */

typedef struct cleat_loader cleat_loader;

/* Settings of a loader. Everything pointed to must outlive the loader, except for the arrays `buckets` and
 * `slots`, which are copied. */
typedef struct cleat_loader_setup {
    const cleat_dataset *dataset;
    const cleat_bucket *buckets;
    size_t n_buckets;
    int workers; /* number of threads; 0: cleat_loader_next fills the batch in the calling thread */
    /* true: the threads persist between passes; false: they end when a pass has been read to its end */
    bool persistent;
    /* CPUs near the device, as a list in the form of cleat_device_facts.pinning ("0-7"); NULL or "any": all
     * allowed CPUs. */
    const char *cpus;
    void *const *slots; /* [n_slots] host memory (pinned staging buffers); see cleat_loader_slots */
    size_t n_slots;
    size_t max_slots; /* room for cleat_loader_add_slot; 0: none */
    /* Returns the byte offset of field `field` of bucket `bucket` within a slot, a multiple of 4, or -1 if
     * the field is not needed. The field is [B, shape...] with B = buckets[bucket].micro_batch_size. Called
     * at creation only. */
    int64_t (*field_offset)(void *user, size_t bucket, size_t field);
    /* Returns the type in which a CLEAT_F32 field is stored in the slot: CLEAT_F32, or CLEAT_F16 or
     * CLEAT_BF16, to which values are rounded. Called at creation only. NULL: every field keeps its dtype. */
    cleat_dtype (*field_storage)(void *user, size_t bucket, size_t field);
    /* Waits until slot `slot` may be overwritten, that is until its last upload is complete. Called by the
     * thread that fills the slot. NULL: slots may be overwritten as soon as they are released. */
    cleat_status (*slot_wait)(void *user, size_t slot, cleat_error *error);
    /* Reports that batch `index` of the pass was filled, from `start` to `end` (seconds of a monotonic clock,
     * without slot_wait). Called by the thread that fills the slot. NULL: no report. */
    void (*filled)(void *user, size_t index, double start, double end);
    void *user;
} cleat_loader_setup;

/* A filled micro-batch. The consumer owns its slot until cleat_loader_release. */
typedef struct cleat_loaded_batch {
    const cleat_micro_batch *micro_batch; /* NULL: end of the pass */
    size_t index;                         /* index of the micro-batch in the pass */
    size_t slot;
    bool waited; /* the micro-batch was not ready when it was asked for */
} cleat_loaded_batch;

typedef struct cleat_loader_stats {
    uint64_t batches;    /* returned to the consumer */
    double wait_seconds; /* time that the consumer waited in cleat_loader_next */
    /* time spent filling batches, summed over threads; without the waits for uploads from their slots */
    double fill_seconds;
    int workers; /* threads now */
    /* Of training batches, except the first one of each pass; counted by the feed of a session, else 0. Dry: the
     * batch was not ready when the consumer asked for it, and when it came the device had nothing left to do. A
     * queue that is empty for another reason (the host read results, or is slow itself) does not count. */
    uint64_t hand_overs, dry_hand_overs;
} cleat_loader_stats;

/* Number of slots that `workers` threads require to prefetch `prefetch_factor` batches each while the
 * consumer holds `held` slots. */
CLEAT_API size_t cleat_loader_slots(int workers, int prefetch_factor, size_t held);

/* Creates a loader; its threads start with the first pass. The caller destroys the loader.
 * CLEAT_ERR_ARGUMENT: the setup is inconsistent. */
CLEAT_API cleat_status cleat_loader_create(const cleat_loader_setup *setup, cleat_loader **loader, cleat_error *error);
/* Stops a pass in progress and joins the threads. Accepts NULL. */
CLEAT_API void cleat_loader_destroy(cleat_loader *loader);

/* Starts a pass over the micro-batches from index `first` to the end of `batches`, which must outlive the
 * pass and must have been created with the buckets of the setup. A pass in progress is stopped first.
 * `rng_key` is copied (NULL: evaluation). */
CLEAT_API cleat_status cleat_loader_start(cleat_loader *loader, const cleat_batches *batches, size_t first,
                                          const cleat_rng_key *rng_key, cleat_error *error);
/* Waits for the next micro-batch and returns it. The order does not depend on the number of threads. After
 * the last one, loaded->micro_batch is NULL. If a micro-batch cannot be filled, the pass ends: its error,
 * with the message of the thread that failed, is returned in place of that batch and by every later call.
 * Only the bytes of requested fields are written; the rest of a slot belongs to the caller.
 * CLEAT_ERR_ARGUMENT: no pass is active, or no slot is free or being filled because the consumer holds all of
 * them. */
CLEAT_API cleat_status cleat_loader_next(cleat_loader *loader, cleat_loaded_batch *loaded, cleat_error *error);
/* Returns a slot to the loader, which refills it after slot_wait. */
CLEAT_API void cleat_loader_release(cleat_loader *loader, size_t slot);
/* Ends the pass and waits for fills in progress. The consumer keeps the slots that it holds until it releases
 * them. */
CLEAT_API void cleat_loader_stop(cleat_loader *loader);
/* Changes the number of threads (at least 1, of a loader that has threads), also in a pass; the order and the bytes
 * of the batches do not depend on it. A surplus thread finishes its batch; the call does not wait for it.
 * Called by the consumer's thread. CLEAT_ERR_MEMORY: a thread could not be started; the others remain. */
CLEAT_API cleat_status cleat_loader_set_workers(cleat_loader *loader, int workers, cleat_error *error);
/* Adds a slot, up to setup.max_slots, also in a pass; see cleat_loader_setup.slots. Called by the consumer's
 * thread. */
CLEAT_API cleat_status cleat_loader_add_slot(cleat_loader *loader, void *slot, cleat_error *error);
/* May be called from any thread. */
CLEAT_API cleat_loader_stats cleat_loader_statistics(cleat_loader *loader);

#ifdef __cplusplus
}
#endif
#endif
