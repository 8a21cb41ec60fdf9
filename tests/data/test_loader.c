/* The loader: the same bytes in the same order for any number of threads, errors in batch order, and
 * termination at any moment. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/half.h"
#include "core/memory.h"
#include "fake.h"
#include "platform/processes.h"
#include "platform/threads.h"

enum { SAMPLES = 200, SLOTS = 9, SLOT_WORDS = 4096, GUARD = 0x5A5A5A5A };

static int64_t lengths[SAMPLES];
static uint32_t all[SAMPLES];
static const cleat_bucket buckets[2] = {{16, 12, 5}, {64, 3, 3}};

/* The trainer's side of the loader: host memory, offsets, and a wait that fails the test if a slot is filled
 * while its transfer is in flight. */
typedef struct consumer {
    fake_dataset fake;
    int32_t memory[SLOTS][SLOT_WORDS];
    void *slots[SLOTS];
    pthread_mutex_t lock;
    bool travelling[SLOTS];
    int waits;
    int fail_wait_at; /* index of the wait that fails, from 1; 0: none */
    cpu_set_t used;   /* CPUs that loader threads may run on */
    size_t max_slots;
    size_t slots_in_use;
    /* If not NULL, the loader gets the next number of threads after each batch, and another slot while there
     * is room. */
    cleat_loader *resized;
    const int *counts; /* [n_counts] */
    size_t n_counts, changes;
    pthread_t fillers[64]; /* threads that have filled a slot */
    int n_fillers;         /* number of these threads */
} consumer;

/* values [B, L] at word 8, followed by lengths [B]; bucket 1 does not require the matrix. */
static int64_t field_offset(void *user, size_t bucket, size_t field) {
    (void)user;
    int64_t b = buckets[bucket].micro_batch_size, l = buckets[bucket].length;
    const int64_t words[3] = {8, 8 + b * l, bucket == 1 ? -1 : 8 + b * l + b};
    return words[field] < 0 ? -1 : words[field] * 4;
}

static cleat_status slot_wait(void *user, size_t slot, cleat_error *error) {
    consumer *c = user;
    pthread_mutex_lock(&c->lock);
    c->travelling[slot] = false; /* a wait completes the transfer */
    bool fails = ++c->waits == c->fail_wait_at;
    int filler = 0;
    while (filler < c->n_fillers && !pthread_equal(c->fillers[filler], pthread_self())) ++filler;
    if (filler == c->n_fillers && filler < 64) c->fillers[c->n_fillers++] = pthread_self();
    cpu_set_t mine;
    if (sched_getaffinity(0, sizeof mine, &mine) == 0) CPU_OR(&c->used, &c->used, &mine);
    pthread_mutex_unlock(&c->lock);
    return fails ? cleat_fail(error, CLEAT_ERR_DEVICE, "the card has fallen off the bus") : CLEAT_OK;
}

static consumer *make_consumer(void) {
    consumer *c = calloc(1, sizeof *c);
    assert_non_null(c);
    for (uint32_t i = 0; i < SAMPLES; ++i) {
        lengths[i] = 1 + i * 2654435761u % 64;
        all[i] = i;
    }
    c->fake = fake_make(lengths, SAMPLES);
    c->fake.spin = 2000;
    pthread_mutex_init(&c->lock, NULL);
    for (int s = 0; s < SLOTS; ++s) {
        c->slots[s] = c->memory[s];
        for (int w = 0; w < SLOT_WORDS; ++w) c->memory[s][w] = GUARD;
    }
    return c;
}

static cleat_loader *make_loader(consumer *c, int workers, size_t slots, bool persistent) {
    cleat_loader_setup setup = {.dataset = &c->fake.base,
                                .buckets = buckets,
                                .n_buckets = 2,
                                .workers = workers,
                                .persistent = persistent,
                                .cpus = "any",
                                .slots = c->slots,
                                .n_slots = slots,
                                .max_slots = c->max_slots,
                                .field_offset = field_offset,
                                .slot_wait = slot_wait,
                                .user = c};
    cleat_loader *loader = NULL;
    cleat_error error = {0};
    if (cleat_loader_create(&setup, &loader, &error) != CLEAT_OK) fail_msg("%s", error.text);
    c->slots_in_use = slots;
    return loader;
}

static cleat_batches *make_batches(consumer *c, const cleat_rng_key *rng_key) {
    cleat_batches *batches = NULL;
    cleat_error error = {0};
    const cleat_batches_spec spec = {.dataset = &c->fake.base,
                                     .samples = all,
                                     .n_samples = SAMPLES,
                                     .buckets = buckets,
                                     .n_buckets = 2,
                                     .rng_key = rng_key};
    assert_int_equal(cleat_batches_create(&spec, &batches, &error), CLEAT_OK);
    return batches;
}

/* FNV-1a over all bytes that a batch has written. */
static void digest(uint64_t *hash, const void *data, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) *hash = (*hash ^ ((const unsigned char *)data)[i]) * 1099511628211u;
}

static void check_batch(const consumer *c, const cleat_loaded_batch *loaded, const cleat_rng_key *rng_key) {
    const cleat_micro_batch *micro_batch = loaded->micro_batch;
    const cleat_bucket *bucket = &buckets[micro_batch->bucket];
    const int32_t *words = c->memory[loaded->slot];
    for (int w = 0; w < 8; ++w) assert_int_equal(words[w], GUARD);
    for (int64_t b = 0; b < bucket->micro_batch_size; ++b) {
        const int32_t *values = words + 8 + b * bucket->length;
        int64_t length = b < (int64_t)micro_batch->count ? lengths[micro_batch->samples[b]] : 0;
        assert_int_equal(words[8 + bucket->micro_batch_size * bucket->length + b], length);
        for (int64_t i = 0; i < bucket->length; ++i)
            assert_int_equal(values[i], i < length ? fake_value(micro_batch->samples[b], i, rng_key) : -1);
    }
}

static void resize(consumer *c) {
    cleat_error error = {0};
    if (!c->resized) return;
    const int workers = c->counts[c->changes++ % c->n_counts];
    if (cleat_loader_set_workers(c->resized, workers, &error)) fail_msg("%s", error.text);
    assert_int_equal(cleat_loader_statistics(c->resized).workers, workers);
    if (c->slots_in_use < SLOTS) {
        if (cleat_loader_add_slot(c->resized, c->slots[c->slots_in_use], &error)) fail_msg("%s", error.text);
        ++c->slots_in_use;
    }
}

/* Runs one pass from batch `first`, holding up to `held` slots; returns the digest of all bytes. */
static uint64_t run_pass(consumer *c, cleat_loader *loader, const cleat_batches *batches, size_t first,
                         const cleat_rng_key *rng_key, size_t held) {
    cleat_error error = {0};
    size_t keep[SLOTS], kept = 0;
    uint64_t hash = 14695981039346656037u;
    assert_int_equal(cleat_loader_start(loader, batches, first, rng_key, &error), CLEAT_OK);
    for (size_t expected = first;; ++expected) {
        cleat_loaded_batch loaded;
        if (cleat_loader_next(loader, &loaded, &error) != CLEAT_OK) fail_msg("%s", error.text);
        if (!loaded.micro_batch) {
            assert_int_equal(expected, cleat_batches_count(batches));
            break;
        }
        assert_int_equal(loaded.index, expected);
        assert_ptr_equal(loaded.micro_batch, cleat_batches_get(batches, expected));
        pthread_mutex_lock(&c->lock);
        assert_false(c->travelling[loaded.slot]);
        c->travelling[loaded.slot] = true;
        pthread_mutex_unlock(&c->lock);
        check_batch(c, &loaded, rng_key);
        resize(c);
        int64_t words =
            buckets[loaded.micro_batch->bucket].micro_batch_size * (buckets[loaded.micro_batch->bucket].length + 1);
        digest(&hash, c->memory[loaded.slot] + 8, (size_t)words * 4);
        keep[kept++] = loaded.slot;
        if (kept == held) {
            cleat_loader_release(loader, keep[0]);
            memmove(keep, keep + 1, --kept * sizeof *keep);
        }
    }
    while (kept) cleat_loader_release(loader, keep[--kept]);
    return hash;
}

static void any_number_of_workers_gives_the_same_bytes(void **state) {
    (void)state;
    static const struct {
        int workers;
        size_t slots, held;
        bool persistent;
    } rows[] = {{0, 1, 1, true}, {0, 3, 2, false}, {1, 2, 1, true},  {1, 4, 2, false},
                {4, 9, 2, true}, {4, 9, 8, true},  {4, 2, 2, false}, {7, 5, 1, true}};
    uint64_t first_digest[3] = {0};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; ++r) {
        consumer *c = make_consumer();
        cleat_loader *loader = make_loader(c, rows[r].workers, rows[r].slots, rows[r].persistent);
        size_t handed_out = 0;
        for (uint32_t epoch = 0; epoch < 3; ++epoch) {
            const cleat_rng_key rng_key = {11, epoch};
            const size_t first = epoch == 2 ? 10 : 0;
            cleat_batches *batches = make_batches(c, &rng_key);
            uint64_t hash = run_pass(c, loader, batches, first, &rng_key, rows[r].held);
            handed_out += cleat_batches_count(batches) - first;
            if (!r) first_digest[epoch] = hash;
            assert_true(hash == first_digest[epoch]);
            cleat_batches_destroy(batches);
        }
        cleat_batches *batches = make_batches(c, NULL);
        run_pass(c, loader, batches, 0, NULL, rows[r].held);
        cleat_loader_stats stats = cleat_loader_statistics(loader);
        assert_int_equal(stats.batches, handed_out + cleat_batches_count(batches));
        assert_true(stats.fill_seconds > 0 && stats.wait_seconds > 0);
        cleat_loader_destroy(loader);
        cleat_batches_destroy(batches);
        free(c);
    }
    assert_true(first_digest[0] != first_digest[1]);
}

/* The number of threads changes after every batch, and slots are added: same bytes, same order, no batch
 * lost. */
static void threads_and_slots_change_during_a_pass(void **state) {
    (void)state;
    static const int counts[] = {5, 1, 3, 7, 2, 2, 6, 1, 1, 4};
    for (int persistent = 0; persistent <= 1; ++persistent) {
        uint64_t digests[2][2];
        for (int changing = 0; changing <= 1; ++changing) {
            consumer *c = make_consumer();
            c->max_slots = SLOTS;
            cleat_loader *loader = make_loader(c, 1, 2, persistent);
            c->resized = changing ? loader : NULL;
            c->counts = counts;
            c->n_counts = sizeof counts / sizeof *counts;
            for (uint32_t epoch = 0; epoch < 2; ++epoch) {
                const cleat_rng_key rng_key = {11, epoch};
                cleat_batches *batches = make_batches(c, &rng_key);
                digests[changing][epoch] = run_pass(c, loader, batches, 0, &rng_key, 1);
                cleat_batches_destroy(batches);
            }
            assert_int_equal(c->slots_in_use, changing ? SLOTS : 2);
            if (changing) assert_true(c->n_fillers > 1);
            cleat_loader_destroy(loader);
            free(c);
        }
        assert_memory_equal(digests[0], digests[1], sizeof digests[0]);
    }
}

/* The number of threads that fill batches in a pass. */
static int fillers_of_a_pass(consumer *c, cleat_loader *loader, const cleat_batches *batches) {
    c->n_fillers = 0;
    run_pass(c, loader, batches, 0, NULL, 1);
    return c->n_fillers;
}

static void threads_that_are_not_wanted_end(void **state) {
    (void)state;
    cleat_error error = {0};
    consumer *c = make_consumer();
    c->fake.spin = 20000; /* one thread alone cannot keep up */
    cleat_batches *batches = make_batches(c, NULL);
    cleat_loader *loader = make_loader(c, 6, SLOTS, true);
    int most = 0;
    for (int i = 0; i < 20 && most < 2; ++i) most = fillers_of_a_pass(c, loader, batches);
    assert_true(most > 1);
    assert_int_equal(cleat_loader_set_workers(loader, 1, &error), CLEAT_OK);
    assert_int_equal(fillers_of_a_pass(c, loader, batches), 1);
    assert_int_equal(cleat_loader_set_workers(loader, 6, &error), CLEAT_OK);
    most = 0;
    for (int i = 0; i < 20 && most < 2; ++i) most = fillers_of_a_pass(c, loader, batches);
    assert_true(most > 1);
    cleat_loader_destroy(loader);
    cleat_batches_destroy(batches);
    free(c);
}

static void thread_counts_that_cannot_be(void **state) {
    (void)state;
    cleat_error error = {0};
    consumer *c = make_consumer();
    cleat_loader *loader = make_loader(c, 2, 3, true);
    assert_int_equal(cleat_loader_set_workers(loader, 0, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_loader_set_workers(loader, 257, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_loader_add_slot(loader, c->slots[3], &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_loader_set_workers(loader, 5, &error), CLEAT_OK);
    assert_int_equal(cleat_loader_statistics(loader).workers, 5);
    cleat_loader_destroy(loader);
    loader = make_loader(c, 0, 3, true);
    assert_int_equal(cleat_loader_set_workers(loader, 2, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_loader_statistics(loader).workers, 0);
    cleat_loader_destroy(loader);
    free(c);
}

static void an_error_arrives_in_its_turn(void **state) {
    (void)state;
    for (int workers = 0; workers <= 4; workers += 2) {
        consumer *c = make_consumer();
        cleat_batches *batches = make_batches(c, NULL);
        cleat_loader *loader = make_loader(c, workers, 6, true);
        c->fake.bad_sample = cleat_batches_get(batches, 12)->samples[1];
        cleat_error error = {0};
        cleat_loaded_batch loaded;
        assert_int_equal(cleat_loader_start(loader, batches, 0, NULL, &error), CLEAT_OK);
        for (int i = 0; i < 12; ++i) {
            assert_int_equal(cleat_loader_next(loader, &loaded, &error), CLEAT_OK);
            cleat_loader_release(loader, loaded.slot);
        }
        for (int again = 0; again < 2; ++again) {
            memset(&error, 0, sizeof error);
            assert_int_equal(cleat_loader_next(loader, &loaded, &error), CLEAT_ERR_FORMAT);
            assert_int_equal(error.status, CLEAT_ERR_FORMAT);
            assert_non_null(strstr(error.text, "data.bin:7: sample"));
        }
        assert_int_equal(cleat_loader_next(loader, &loaded, NULL), CLEAT_ERR_FORMAT);
        cleat_loader_stop(loader);     /* threads may still be filling later batches */
        c->fake.bad_sample = SIZE_MAX; /* repaired: a new pass works */
        run_pass(c, loader, batches, 0, NULL, 1);

        c->waits = 0;
        c->fail_wait_at = 5;
        assert_int_equal(cleat_loader_start(loader, batches, 0, NULL, &error), CLEAT_OK);
        cleat_status status = CLEAT_OK;
        while (!status && (status = cleat_loader_next(loader, &loaded, &error)) == CLEAT_OK)
            cleat_loader_release(loader, loaded.slot);
        assert_int_equal(status, CLEAT_ERR_DEVICE);
        assert_non_null(strstr(error.text, "fallen off the bus"));
        cleat_loader_destroy(loader);
        cleat_batches_destroy(batches);
        free(c);
    }
}

static void ends_at_any_moment(void **state) {
    (void)state;
    for (int taken = 0; taken < 25; ++taken) {
        consumer *c = make_consumer();
        cleat_batches *batches = make_batches(c, NULL);
        cleat_loader *loader = make_loader(c, 1 + taken % 4, (size_t)(2 + taken % 5), taken % 2);
        cleat_error error = {0};
        assert_int_equal(cleat_loader_start(loader, batches, 0, NULL, &error), CLEAT_OK);
        cleat_loaded_batch loaded = {0};
        for (int i = 0; i < taken; ++i) {
            assert_int_equal(cleat_loader_next(loader, &loaded, &error), CLEAT_OK);
            if (i + 1 < taken) cleat_loader_release(loader, loaded.slot); /* the last slot stays held */
        }
        if (taken % 3 == 0) {
            cleat_loader_stop(loader);
            assert_int_equal(cleat_loader_next(loader, &loaded, &error), CLEAT_ERR_ARGUMENT);
        }
        if (taken % 3 == 1) { /* another pass while a slot of the previous one is still held */
            assert_int_equal(cleat_loader_start(loader, batches, 0, NULL, &error), CLEAT_OK);
            cleat_loaded_batch other;
            assert_int_equal(cleat_loader_next(loader, &other, &error), CLEAT_OK);
            assert_int_equal(other.index, 0);
            if (taken) assert_int_not_equal(other.slot, loaded.slot);
        }
        cleat_loader_destroy(loader);
        cleat_batches_destroy(batches);
        free(c);
    }
    cleat_loader_destroy(NULL);
}

static void refuses_bad_use(void **state) {
    (void)state;
    consumer *c = make_consumer();
    cleat_error error = {0};
    for (int workers = 0; workers <= 2; workers += 2) {
        cleat_loader *loader = make_loader(c, workers, 2, true);
        cleat_batches *batches = make_batches(c, NULL);
        cleat_loaded_batch loaded;
        assert_int_equal(cleat_loader_next(loader, &loaded, &error), CLEAT_ERR_ARGUMENT);
        assert_int_equal(cleat_loader_start(loader, batches, 1000, NULL, &error), CLEAT_ERR_ARGUMENT);
        assert_int_equal(cleat_loader_start(loader, batches, 0, NULL, &error), CLEAT_OK);
        assert_int_equal(cleat_loader_next(loader, &loaded, &error), CLEAT_OK);
        assert_int_equal(cleat_loader_next(loader, &loaded, &error), CLEAT_OK);
        /* both slots held */
        assert_int_equal(cleat_loader_next(loader, &loaded, &error), CLEAT_ERR_ARGUMENT);
        assert_non_null(strstr(error.text, "release"));
        cleat_loader_release(loader, loaded.slot);
        cleat_loader_release(loader, loaded.slot); /* released twice: no effect */
        cleat_loader_release(loader, 77);
        assert_int_equal(cleat_loader_next(loader, &loaded, &error), CLEAT_OK);
        assert_int_equal(loaded.index, 2);
        const cleat_bucket other[3] = {{20, 9, 9}, {50, 9, 9}, {64, 9, 9}};
        cleat_batches *foreign = NULL;
        const cleat_batches_spec spec = {
            .dataset = &c->fake.base, .samples = all, .n_samples = SAMPLES, .buckets = other, .n_buckets = 3};
        assert_int_equal(cleat_batches_create(&spec, &foreign, &error), CLEAT_OK);
        assert_int_equal(cleat_loader_start(loader, foreign, 0, NULL, &error), CLEAT_ERR_ARGUMENT);
        cleat_batches_destroy(foreign);
        cleat_loader_destroy(loader);
        cleat_batches_destroy(batches);
    }
    cleat_loader *loader = NULL;
    cleat_loader_setup setup = {.dataset = &c->fake.base, .buckets = buckets, .n_buckets = 2};
    assert_int_equal(cleat_loader_create(&setup, &loader, &error), CLEAT_ERR_ARGUMENT);
    setup.slots = c->slots;
    setup.n_slots = 2;
    setup.field_offset = field_offset;
    setup.workers = -1;
    assert_int_equal(cleat_loader_create(&setup, &loader, &error), CLEAT_ERR_ARGUMENT);
    setup.workers = 100000;
    assert_int_equal(cleat_loader_create(&setup, &loader, &error), CLEAT_ERR_ARGUMENT);
    assert_null(loader);
    assert_int_equal(cleat_loader_slots(0, 2, 1), 2);
    assert_int_equal(cleat_loader_slots(4, 2, 2), 10);
    free(c);
}

static cleat_dtype matrix_as_halves(void *user, size_t bucket, size_t field) {
    (void)user;
    return field < 2 ? CLEAT_I32 : bucket == 0 ? CLEAT_BF16 : CLEAT_F16;
}

static cleat_dtype integers_as_halves(void *user, size_t bucket, size_t field) {
    (void)user, (void)bucket, (void)field;
    return CLEAT_F16;
}

/* The field `matrix` [B, L, 2] of every batch is rounded, as is its padding of 3; other fields are unchanged,
 * and nothing behind them is written. */
static void floats_are_rounded_to_halves(void **state) {
    (void)state;
    consumer *c = make_consumer();
    cleat_loader_setup setup = {.dataset = &c->fake.base,
                                .buckets = buckets,
                                .n_buckets = 2,
                                .workers = 2,
                                .slots = c->slots,
                                .n_slots = 3,
                                .field_offset = field_offset,
                                .field_storage = integers_as_halves};
    cleat_loader *loader = NULL;
    cleat_error error = {0};
    assert_int_equal(cleat_loader_create(&setup, &loader, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "values"));
    setup.field_storage = matrix_as_halves;
    assert_int_equal(cleat_loader_create(&setup, &loader, &error), CLEAT_OK);
    cleat_batches *batches = make_batches(c, NULL);
    assert_int_equal(cleat_loader_start(loader, batches, 0, NULL, &error), CLEAT_OK);
    cleat_loaded_batch loaded;
    size_t seen = 0;
    while (cleat_loader_next(loader, &loaded, &error) == CLEAT_OK && loaded.micro_batch) {
        const cleat_bucket *bucket = &buckets[0];
        const int64_t elements = 2 * bucket->length, at = field_offset(NULL, 0, 2) / 4;
        const uint16_t *halves = (const uint16_t *)(c->memory[loaded.slot] + at);
        check_batch(c, &loaded, NULL);
        for (int64_t b = 0; loaded.micro_batch->bucket == 0 && b < bucket->micro_batch_size; ++b) {
            float *matrix = malloc((size_t)elements * sizeof *matrix);
            uint16_t *expected = malloc((size_t)elements * sizeof *expected);
            void *slots[3] = {NULL, NULL, matrix};
            if (b < (int64_t)loaded.micro_batch->count)
                assert_int_equal(cleat_dataset_fill(&c->fake.base, loaded.micro_batch->samples[b], bucket->length, NULL,
                                                    slots, NULL),
                                 CLEAT_OK);
            else
                cleat_dataset_fill_empty(&c->fake.base, bucket->length, slots);
            cleat_to_bf16(matrix, (size_t)elements, expected);
            assert_memory_equal(halves + b * elements, expected, (size_t)elements * sizeof *expected);
            free(matrix);
            free(expected);
        }
        if (loaded.micro_batch->bucket == 0)
            assert_int_equal(c->memory[loaded.slot][at + bucket->micro_batch_size * bucket->length], GUARD);
        cleat_loader_release(loader, loaded.slot);
        ++seen;
    }
    assert_int_equal(seen, cleat_batches_count(batches));
    cleat_loader_destroy(loader);
    cleat_batches_destroy(batches);
    free(c);
}

static void creation_survives_failing_allocations(void **state) {
    (void)state;
    consumer *c = make_consumer();
    cleat_status status = CLEAT_ERR_MEMORY;
    long n = 1;
    for (; status == CLEAT_ERR_MEMORY; ++n) {
        cleat_loader_setup setup = {.dataset = &c->fake.base,
                                    .buckets = buckets,
                                    .n_buckets = 2,
                                    .workers = 2,
                                    .slots = c->slots,
                                    .n_slots = 3,
                                    .field_offset = field_offset,
                                    .field_storage = matrix_as_halves};
        cleat_loader *loader = NULL;
        cleat_error error = {0};
        cleat_fail_allocation(n);
        status = cleat_loader_create(&setup, &loader, &error);
        cleat_fail_allocation(0);
        if (status) {
            assert_int_equal(status, CLEAT_ERR_MEMORY);
            assert_null(loader);
        }
        cleat_loader_destroy(loader);
    }
    assert_int_equal(status, CLEAT_OK);
    assert_true(n > 8);
    free(c);
}

static void stays_inside_the_allowed_cpus(void **state) {
    (void)state;
    consumer *c = make_consumer();
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &before)) ++cpu;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    char list[32];
    snprintf(list, sizeof list, "%d-4095", cpu); /* larger than the allowed set */
    for (int i = 0; i < 2; ++i) {
        cleat_loader_setup setup = {.dataset = &c->fake.base,
                                    .buckets = buckets,
                                    .n_buckets = 2,
                                    .workers = 2,
                                    .cpus = i ? "100000" : list,
                                    .slots = c->slots,
                                    .n_slots = 3,
                                    .field_offset = field_offset,
                                    .slot_wait = slot_wait,
                                    .user = c};
        cleat_loader *loader = NULL;
        cleat_error error = {0};
        CPU_ZERO(&c->used);
        assert_int_equal(cleat_loader_create(&setup, &loader, &error), CLEAT_OK);
        cleat_batches *batches = make_batches(c, NULL);
        run_pass(c, loader, batches, 0, NULL, 1);
        assert_true(CPU_EQUAL(&c->used, &one));
        cleat_loader_destroy(loader);
        cleat_batches_destroy(batches);
    }
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    free(c);
}

static void goes_where_the_card_is(void **state) {
    (void)state;
    consumer *c = make_consumer();
    cpu_set_t before, last;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    int cpu = CPU_SETSIZE - 1;
    while (!CPU_ISSET(cpu, &before)) --cpu;
    CPU_ZERO(&last);
    CPU_SET(cpu, &last);
    char list[16];
    snprintf(list, sizeof list, "%d", cpu);
    cleat_loader_setup setup = {.dataset = &c->fake.base,
                                .buckets = buckets,
                                .n_buckets = 2,
                                .workers = 2,
                                .cpus = list,
                                .slots = c->slots,
                                .n_slots = 3,
                                .field_offset = field_offset,
                                .slot_wait = slot_wait,
                                .user = c};
    cleat_loader *loader = NULL;
    cleat_error error = {0};
    assert_int_equal(cleat_loader_create(&setup, &loader, &error), CLEAT_OK);
    cleat_batches *batches = make_batches(c, NULL);
    run_pass(c, loader, batches, 0, NULL, 1);
    assert_true(CPU_EQUAL(&c->used, &last));
    cpu_set_t after;
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after)); /* the calling thread keeps its affinity */
    cleat_loader_destroy(loader);
    cleat_batches_destroy(batches);
    free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_workers_gives_the_same_bytes),
        cmocka_unit_test(threads_and_slots_change_during_a_pass),
        cmocka_unit_test(threads_that_are_not_wanted_end),
        cmocka_unit_test(thread_counts_that_cannot_be),
        cmocka_unit_test(an_error_arrives_in_its_turn),
        cmocka_unit_test(ends_at_any_moment),
        cmocka_unit_test(refuses_bad_use),
        cmocka_unit_test(floats_are_rounded_to_halves),
        cmocka_unit_test(creation_survives_failing_allocations),
        cmocka_unit_test(stays_inside_the_allowed_cpus),
        cmocka_unit_test(goes_where_the_card_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
