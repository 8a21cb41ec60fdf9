/* The loader: threads fill batches into slots, and the consumer receives them in order.
 *
 * A thread claims the next batch and a free slot in one critical section. Batches are therefore claimed in
 * order, and the earliest batch that has not been handed out is always finished or being filled, so that no
 * circular wait can occur. Threads wait on two condition variables only. The contents of a batch depend on
 * its samples and on the RNG key of the pass, never on the thread; so the number of threads and of slots may
 * change at any time. A surplus thread finishes its batch and ends; no caller waits for it. */
#include "data/loader.h"

#include "core/clock.h"
#include "core/half.h"
#include "core/memory.h"
#include "platform/threads.h"

typedef enum slot_state { SLOT_FREE, SLOT_FILLING, SLOT_READY, SLOT_HELD } slot_state;
typedef enum thread_state { THREAD_NONE, THREAD_RUNNING, THREAD_ENDED } thread_state;

typedef struct loader_thread {
    cleat_loader *loader;
    pthread_t id;
    thread_state state; /* ENDED: to be joined */
} loader_thread;

struct cleat_loader {
    cleat_loader_setup setup;
    cleat_bucket *buckets; /* [n_buckets] */
    void **slots;          /* [max_slots], setup.n_slots in use */
    int64_t *offsets;      /* [n_buckets, n_fields]; -1: field not needed */
    cleat_dtype *storage;  /* [n_buckets, n_fields]; CLEAT_F16, CLEAT_BF16: f32 fields that are rounded */
    /* [max_slots] of [sample_floats]: fields of a sample before rounding; NULL if none is rounded */
    float **samples;
    int64_t sample_floats;
    size_t max_slots;
    size_t n_fields;
    cleat_pinning *pinning; /* NULL without threads */

    pthread_mutex_t lock;   /* protects everything below */
    pthread_cond_t work;    /* signalled when a batch can be claimed, or when the threads must end */
    pthread_cond_t done;    /* signalled when a batch is finished */
    loader_thread *threads; /* [CLEAT_MAX_WORKERS] those from `workers` on end after their batch */
    int workers;
    bool is_started; /* consumer only: threads are running */
    bool quit;
    bool said_unpinned;

    const cleat_batches *batches; /* of the current pass; NULL if there is none */
    bool random;
    cleat_rng_key rng_key;
    size_t next_claim, next_out, end; /* batches [next_out, next_claim) are being filled or ready */
    int filling;
    slot_state *state;   /* [max_slots] */
    size_t *slot_batch;  /* [max_slots] batch index, for slots that are not free */
    size_t failed_batch; /* the first batch that could not be filled, or `end` */
    cleat_error failure;
    cleat_loader_stats stats;
};

/* --- filling one batch (no lock held) ------------------------------------------------------------------------- */

static bool is_half(cleat_dtype dtype) {
    return dtype == CLEAT_F16 || dtype == CLEAT_BF16;
}

/* Addresses for the fields of sample b of a batch: in the slot, or in the buffer for fields that are
 * rounded. */
static void place_fields(const cleat_loader *loader, size_t bucket, size_t slot, int64_t b,
                         void *fields[CLEAT_MAX_FIELDS]) {
    float *sample = loader->samples[slot];
    for (size_t f = 0; f < loader->n_fields; ++f) {
        const cleat_field *field = cleat_dataset_field(loader->setup.dataset, f);
        int64_t length = loader->buckets[bucket].length, offset = loader->offsets[bucket * loader->n_fields + f];
        fields[f] = NULL;
        if (offset < 0) continue;
        if (is_half(loader->storage[bucket * loader->n_fields + f])) {
            fields[f] = sample;
            sample += cleat_field_elements(field, length);
        } else {
            fields[f] = (char *)loader->slots[slot] + offset + b * cleat_field_bytes(field, length);
        }
    }
}

static void round_fields(const cleat_loader *loader, size_t bucket, size_t slot, int64_t b,
                         void *const fields[CLEAT_MAX_FIELDS]) {
    for (size_t f = 0; f < loader->n_fields; ++f) {
        cleat_dtype storage = loader->storage[bucket * loader->n_fields + f];
        if (!fields[f] || !is_half(storage)) continue;
        int64_t count =
            cleat_field_elements(cleat_dataset_field(loader->setup.dataset, f), loader->buckets[bucket].length);
        char *place = (char *)loader->slots[slot] + loader->offsets[bucket * loader->n_fields + f];
        uint16_t *bits = (uint16_t *)(void *)place + b * count;
        if (storage == CLEAT_F16)
            cleat_to_f16(fields[f], (size_t)count, bits);
        else
            cleat_to_bf16(fields[f], (size_t)count, bits);
    }
}

/* *seconds: the time spent filling, without the wait for the slot's last upload. */
static cleat_status fill_slot(const cleat_loader *loader, size_t batch_index, size_t slot, double *seconds,
                              cleat_error *error) {
    const cleat_dataset *dataset = loader->setup.dataset;
    const cleat_micro_batch *micro_batch = cleat_batches_get(loader->batches, batch_index);
    const cleat_bucket *bucket = &loader->buckets[micro_batch->bucket];
    if (loader->setup.slot_wait) {
        cleat_status status = loader->setup.slot_wait(loader->setup.user, slot, error);
        if (status) return status;
    }
    const double start = cleat_seconds();
    for (int64_t b = 0; b < bucket->micro_batch_size; ++b) {
        void *fields[CLEAT_MAX_FIELDS];
        cleat_status status = CLEAT_OK;
        place_fields(loader, micro_batch->bucket, slot, b, fields);
        if (b >= (int64_t)micro_batch->count)
            cleat_dataset_fill_empty(dataset, bucket->length, fields);
        else
            status = cleat_dataset_fill(dataset, micro_batch->samples[b], bucket->length,
                                        loader->random ? &loader->rng_key : NULL, fields, error);
        if (status) return status;
        round_fields(loader, micro_batch->bucket, slot, b, fields);
    }
    *seconds = cleat_seconds() - start;
    return CLEAT_OK;
}

/* --- the pass (lock held) ------------------------------------------------------------------------------------- */

static bool find_free_slot(const cleat_loader *loader, size_t *slot) {
    for (size_t i = 0; i < loader->setup.n_slots; ++i)
        if (loader->state[i] == SLOT_FREE) {
            *slot = i;
            return true;
        }
    return false;
}

static bool find_batch(const cleat_loader *loader, size_t micro_batch, size_t *slot) {
    for (size_t i = 0; i < loader->setup.n_slots; ++i)
        if (loader->state[i] == SLOT_READY && loader->slot_batch[i] == micro_batch) {
            *slot = i;
            return true;
        }
    return false;
}

static bool can_claim(const cleat_loader *loader, size_t *slot) {
    return loader->batches && loader->next_claim < loader->end && loader->failed_batch == loader->end &&
           find_free_slot(loader, slot);
}

/* Claims the next batch into `slot`, fills it with the lock released, and records the result. */
static void fill_next(cleat_loader *loader, size_t slot) {
    size_t micro_batch = loader->next_claim++;
    loader->state[slot] = SLOT_FILLING;
    loader->slot_batch[slot] = micro_batch;
    ++loader->filling;
    pthread_mutex_unlock(&loader->lock);

    cleat_error error = {0};
    double spent = 0;
    cleat_status status = fill_slot(loader, micro_batch, slot, &spent, &error);
    const double end = cleat_seconds();
    if (loader->setup.filled) loader->setup.filled(loader->setup.user, micro_batch, end - spent, end);

    pthread_mutex_lock(&loader->lock);
    --loader->filling;
    loader->stats.fill_seconds += spent;
    loader->state[slot] = status ? SLOT_FREE : SLOT_READY;
    if (status && micro_batch < loader->failed_batch) {
        loader->failed_batch = micro_batch;
        loader->failure = error;
        loader->failure.status = status;
    }
    pthread_cond_broadcast(&loader->done);
}

static void *worker(void *argument) {
    loader_thread *self = argument;
    cleat_loader *loader = self->loader;
    bool pinned = cleat_pinning_apply(loader->pinning);
    pthread_mutex_lock(&loader->lock);
    if (!pinned && !loader->said_unpinned) {
        loader->said_unpinned = true;
        cleat_log(CLEAT_LOG_INFO, "loader: threads cannot be bound to CPUs on this system");
    }
    while (!loader->quit && self - loader->threads < loader->workers) {
        size_t slot;
        if (can_claim(loader, &slot))
            fill_next(loader, slot);
        else
            pthread_cond_wait(&loader->work, &loader->lock);
    }
    self->state = THREAD_ENDED;
    pthread_mutex_unlock(&loader->lock);
    return NULL;
}

/* Ends the pass: no further batch is claimed, fills in progress are completed, and ready batches are
 * dropped. */
static void end_pass(cleat_loader *loader) {
    loader->end = loader->next_claim; /* prevents further claims */
    while (loader->filling) pthread_cond_wait(&loader->done, &loader->lock);
    for (size_t i = 0; i < loader->setup.n_slots; ++i)
        if (loader->state[i] == SLOT_READY) loader->state[i] = SLOT_FREE;
    loader->batches = NULL;
}

static thread_state state_of(loader_thread *thread) {
    pthread_mutex_lock(&thread->loader->lock);
    const thread_state state = thread->state;
    pthread_mutex_unlock(&thread->loader->lock);
    return state;
}

static void join_threads(cleat_loader *loader) {
    pthread_mutex_lock(&loader->lock);
    loader->quit = true;
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->lock);
    for (int i = 0; i < CLEAT_MAX_WORKERS; ++i) {
        if (state_of(&loader->threads[i]) != THREAD_NONE) pthread_join(loader->threads[i].id, NULL);
        loader->threads[i].state = THREAD_NONE;
    }
    loader->is_started = loader->quit = false;
}

/* Returns the error of pthread_create, 0 on success. A thread that is still running keeps running. */
static int start_thread(loader_thread *thread) {
    const thread_state state = state_of(thread);
    if (state == THREAD_RUNNING) return 0;
    if (state == THREAD_ENDED) pthread_join(thread->id, NULL);
    thread->state = THREAD_RUNNING;
    int code = pthread_create(&thread->id, NULL, worker, thread);
    if (code != 0) thread->state = THREAD_NONE;
    return code;
}

/* Starts the missing threads; *started: the number of running threads afterwards. */
static cleat_status start_threads(cleat_loader *loader, int *started, cleat_error *error) {
    loader->is_started = true;
    for (*started = 0; *started < loader->workers; ++*started) {
        int code = start_thread(&loader->threads[*started]);
        if (code != 0)
            return cleat_fail(error, CLEAT_ERR_MEMORY,
                              "only %d of %d loader threads could be started (error %d); reduce num_workers", *started,
                              loader->workers, code);
    }
    return CLEAT_OK;
}

static void set_count(cleat_loader *loader, int workers) {
    pthread_mutex_lock(&loader->lock);
    loader->workers = workers;
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->lock);
}

size_t cleat_loader_slots(int workers, int prefetch_factor, size_t held) {
    size_t threads = workers > 1 ? (size_t)workers : 1;
    size_t ahead = prefetch_factor > 1 ? (size_t)prefetch_factor : 1;
    return (workers > 0 ? threads * ahead : 1) + held;
}

static cleat_status check_setup(const cleat_loader_setup *setup, cleat_error *error) {
    if (!setup->dataset || !setup->n_buckets || !setup->n_slots || !setup->field_offset)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "a loader requires a dataset, buckets, slots and field offsets");
    if (setup->workers < 0 || setup->workers > CLEAT_MAX_WORKERS)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "num_workers is %d; it must be 0 to %d", setup->workers,
                          CLEAT_MAX_WORKERS);
    if (cleat_dataset_fields(setup->dataset) > CLEAT_MAX_FIELDS)
        return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "the dataset has more than %d fields", CLEAT_MAX_FIELDS);
    return CLEAT_OK;
}

/* The buffer of slot `i` for the fields that are rounded, if any. */
static cleat_status allocate_sample(cleat_loader *loader, size_t i, cleat_error *error) {
    if (loader->sample_floats == 0) return CLEAT_OK;
    loader->samples[i] = cleat_alloc((size_t)loader->sample_floats, sizeof *loader->samples[i]);
    return loader->samples[i] ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a slot of the loader");
}

/* Determines which fields are rounded, and allocates the buffers for them. */
static cleat_status read_field_storage(cleat_loader *loader, cleat_error *error) {
    const cleat_loader_setup *setup = &loader->setup;
    for (size_t b = 0; b < setup->n_buckets; ++b) {
        int64_t floats = 0;
        for (size_t f = 0; f < loader->n_fields; ++f) {
            const cleat_field *field = cleat_dataset_field(setup->dataset, f);
            cleat_dtype storage = setup->field_storage ? setup->field_storage(setup->user, b, f) : field->dtype;
            if (storage != field->dtype && (!is_half(storage) || field->dtype != CLEAT_F32))
                return cleat_fail(error, CLEAT_ERR_ARGUMENT, "field %s cannot be stored as %s", field->name,
                                  cleat_dtype_name(storage));
            loader->storage[b * loader->n_fields + f] = storage;
            if (is_half(storage)) floats += cleat_field_elements(field, setup->buckets[b].length);
        }
        if (floats > loader->sample_floats) loader->sample_floats = floats;
    }
    if (loader->sample_floats == 0) return CLEAT_OK;
    for (size_t i = 0; i < setup->n_slots; ++i) {
        cleat_status status = allocate_sample(loader, i, error);
        if (status) return status;
    }
    return CLEAT_OK;
}

static cleat_status read_field_offsets(cleat_loader *loader, cleat_error *error) {
    for (size_t b = 0; b < loader->setup.n_buckets; ++b)
        for (size_t f = 0; f < loader->n_fields; ++f) {
            int64_t offset = loader->setup.field_offset(loader->setup.user, b, f);
            if (offset >= 0 && offset % 4 != 0)
                return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                                  "field %s of bucket %zu is at byte %lld, which is not aligned to 4",
                                  cleat_dataset_field(loader->setup.dataset, f)->name, b, (long long)offset);
            loader->offsets[b * loader->n_fields + f] = offset;
        }
    return CLEAT_OK;
}

static cleat_status allocate(cleat_loader *loader, cleat_error *error) {
    const cleat_loader_setup *setup = &loader->setup;
    loader->buckets = cleat_alloc(setup->n_buckets, sizeof *loader->buckets);
    loader->slots = cleat_alloc(loader->max_slots, sizeof *loader->slots);
    loader->samples = cleat_alloc(loader->max_slots, sizeof *loader->samples);
    loader->offsets = cleat_alloc(setup->n_buckets * loader->n_fields, sizeof *loader->offsets);
    loader->storage = cleat_alloc(setup->n_buckets * loader->n_fields, sizeof *loader->storage);
    loader->state = cleat_alloc(loader->max_slots, sizeof *loader->state);
    loader->slot_batch = cleat_alloc(loader->max_slots, sizeof *loader->slot_batch);
    if (!loader->buckets || !loader->slots || !loader->samples || !loader->offsets || !loader->storage ||
        !loader->state || !loader->slot_batch)
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a loader");
    for (size_t i = 0; i < setup->n_buckets; ++i) loader->buckets[i] = setup->buckets[i];
    for (size_t i = 0; i < setup->n_slots; ++i) loader->slots[i] = setup->slots[i];
    return CLEAT_OK;
}

cleat_status cleat_loader_create(const cleat_loader_setup *setup, cleat_loader **loader, cleat_error *error) {
    cleat_status status = check_setup(setup, error);
    if (status) return status;
    cleat_loader *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a loader");
    made->setup = *setup;
    made->workers = setup->workers;
    made->max_slots = setup->max_slots > setup->n_slots ? setup->max_slots : setup->n_slots;
    made->n_fields = cleat_dataset_fields(setup->dataset);
    made->threads = cleat_alloc(CLEAT_MAX_WORKERS, sizeof *made->threads);
    if (!made->threads) {
        cleat_free(made);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a loader");
    }
    for (int i = 0; i < CLEAT_MAX_WORKERS; ++i) made->threads[i].loader = made;
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->work, NULL);
    pthread_cond_init(&made->done, NULL);
    status = allocate(made, error);
    if (!status) status = read_field_offsets(made, error);
    if (!status) status = read_field_storage(made, error);
    if (!status && setup->workers > 0) {
        status = cleat_pinning_create(setup->cpus, &made->pinning, error);
        if (!status)
            cleat_log(CLEAT_LOG_INFO, "loader: %d threads on CPUs %s, %zu slots", setup->workers,
                      cleat_pinning_list(made->pinning), setup->n_slots);
    }
    if (status) {
        cleat_loader_destroy(made);
        return status;
    }
    *loader = made;
    return CLEAT_OK;
}

void cleat_loader_destroy(cleat_loader *loader) {
    if (!loader) return;
    cleat_loader_stop(loader);
    join_threads(loader);
    cleat_pinning_destroy(loader->pinning);
    pthread_cond_destroy(&loader->done);
    pthread_cond_destroy(&loader->work);
    pthread_mutex_destroy(&loader->lock);
    cleat_free(loader->threads);
    cleat_free(loader->slot_batch);
    cleat_free(loader->state);
    for (size_t i = 0; loader->samples && i < loader->max_slots; ++i) cleat_free(loader->samples[i]);
    cleat_free(loader->samples);
    cleat_free(loader->storage);
    cleat_free(loader->offsets);
    cleat_free(loader->slots);
    cleat_free(loader->buckets);
    cleat_free(loader);
}

cleat_status cleat_loader_start(cleat_loader *loader, const cleat_batches *batches, size_t first,
                                const cleat_rng_key *rng_key, cleat_error *error) {
    size_t count = cleat_batches_count(batches);
    if (first > count)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "a pass of %zu batches cannot start at %zu", count, first);
    for (size_t i = first; i < count; ++i) {
        const cleat_micro_batch *micro_batch = cleat_batches_get(batches, i);
        if (micro_batch->bucket >= loader->setup.n_buckets ||
            micro_batch->count > loader->buckets[micro_batch->bucket].micro_batch_size)
            return cleat_fail(
                error, CLEAT_ERR_ARGUMENT,
                "batch %zu (bucket %u, %u samples) was created with buckets other than those of the loader", i,
                micro_batch->bucket, micro_batch->count);
    }
    cleat_loader_stop(loader);
    int started = 0;
    cleat_status status = start_threads(loader, &started, error);
    if (status) {
        join_threads(loader);
        return status;
    }
    pthread_mutex_lock(&loader->lock);
    loader->batches = batches;
    loader->random = rng_key != NULL;
    if (rng_key) loader->rng_key = *rng_key;
    loader->next_claim = loader->next_out = first;
    loader->end = loader->failed_batch = count;
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->lock);
    return CLEAT_OK;
}

/* Waits for batch next_out (lock held). On success it is in *slot; *waited: it was not ready. */
static cleat_status await_batch(cleat_loader *loader, size_t *slot, bool *waited, cleat_error *error) {
    *waited = false;
    while (!find_batch(loader, loader->next_out, slot)) {
        if (loader->failed_batch == loader->next_out) {
            if (error) *error = loader->failure;
            return loader->failure.status;
        }
        size_t free_slot = 0;
        bool nothing_under_way = loader->next_claim == loader->next_out;
        if (nothing_under_way && !find_free_slot(loader, &free_slot))
            return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                              "the caller holds all %zu loader slots: release one before the next batch",
                              loader->setup.n_slots);
        *waited = true;
        if (loader->setup.workers == 0)
            fill_next(loader, free_slot);
        else
            pthread_cond_wait(&loader->done, &loader->lock);
    }
    return CLEAT_OK;
}

cleat_status cleat_loader_next(cleat_loader *loader, cleat_loaded_batch *loaded, cleat_error *error) {
    double start = cleat_seconds();
    pthread_mutex_lock(&loader->lock);
    cleat_status status = CLEAT_OK;
    bool over = false, waited = false;
    size_t slot = 0;
    if (!loader->batches) {
        status = cleat_fail(error, CLEAT_ERR_ARGUMENT, "the loader has no active pass: call cleat_loader_start");
    } else if (loader->next_out == loader->end) {
        over = true;
        *loaded = (cleat_loaded_batch){.index = loader->end};
    } else {
        status = await_batch(loader, &slot, &waited, error);
        if (!status) {
            *loaded = (cleat_loaded_batch){.micro_batch = cleat_batches_get(loader->batches, loader->next_out),
                                           .index = loader->next_out,
                                           .slot = slot,
                                           .waited = waited};
            loader->state[slot] = SLOT_HELD;
            ++loader->next_out;
            ++loader->stats.batches;
        }
    }
    loader->stats.wait_seconds += cleat_seconds() - start;
    pthread_mutex_unlock(&loader->lock);
    if (over && !loader->setup.persistent) join_threads(loader);
    return status;
}

void cleat_loader_release(cleat_loader *loader, size_t slot) {
    if (slot >= loader->setup.n_slots) return;
    pthread_mutex_lock(&loader->lock);
    if (loader->state[slot] == SLOT_HELD) loader->state[slot] = SLOT_FREE;
    pthread_cond_signal(&loader->work);
    pthread_mutex_unlock(&loader->lock);
}

void cleat_loader_stop(cleat_loader *loader) {
    pthread_mutex_lock(&loader->lock);
    if (loader->batches) end_pass(loader);
    pthread_mutex_unlock(&loader->lock);
}

cleat_status cleat_loader_add_slot(cleat_loader *loader, void *slot, cleat_error *error) {
    const size_t i = loader->setup.n_slots;
    if (i >= loader->max_slots)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "the loader has room for %zu slots", loader->max_slots);
    cleat_status status = allocate_sample(loader, i, error);
    if (status) return status;
    pthread_mutex_lock(&loader->lock);
    loader->slots[i] = slot;
    loader->state[i] = SLOT_FREE;
    ++loader->setup.n_slots;
    pthread_cond_signal(&loader->work);
    pthread_mutex_unlock(&loader->lock);
    return CLEAT_OK;
}

cleat_status cleat_loader_set_workers(cleat_loader *loader, int workers, cleat_error *error) {
    const int before = loader->workers;
    int started = 0;
    if (before == 0 || workers < 1 || workers > CLEAT_MAX_WORKERS)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "the loader has %d threads; it cannot have %d", before, workers);
    set_count(loader, workers);
    if (!loader->is_started) return CLEAT_OK;
    cleat_status status = start_threads(loader, &started, error);
    if (status) set_count(loader, started > 0 ? started : before);
    return status;
}

cleat_loader_stats cleat_loader_statistics(cleat_loader *loader) {
    pthread_mutex_lock(&loader->lock);
    cleat_loader_stats stats = loader->stats;
    stats.workers = loader->workers;
    pthread_mutex_unlock(&loader->lock);
    return stats;
}
