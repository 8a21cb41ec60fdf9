/* Batches: every sample exactly once, an order that depends on (seed, epoch) only; global batches independent
 * of their division into micro-batches; bucket lengths against exhaustive search; the dataset interface. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

enum { SAMPLES = 1000 };

static int64_t lengths[SAMPLES];
static uint32_t all[SAMPLES];
static fake_dataset fake;
static const cleat_bucket buckets[3] = {{16, 8, 8}, {40, 3, 3}, {100, 1, 1}};

static int make_samples(void **state) {
    (void)state;
    for (uint32_t i = 0; i < SAMPLES; ++i) {
        lengths[i] = 1 + (i * 2654435761u >> 8) % 100;
        all[i] = i;
    }
    fake = fake_make(lengths, SAMPLES);
    return 0;
}

static cleat_status lay_out(const uint32_t *samples, size_t n_samples, const cleat_bucket *cut, size_t n_buckets,
                            const cleat_rng_key *rng_key, cleat_batches **batches, cleat_error *error) {
    const cleat_batches_spec spec = {.dataset = &fake.base,
                                     .samples = samples,
                                     .n_samples = n_samples,
                                     .buckets = cut,
                                     .n_buckets = n_buckets,
                                     .rng_key = rng_key};
    return cleat_batches_create(&spec, batches, error);
}

static cleat_batches *create(const cleat_rng_key *rng_key) {
    cleat_batches *batches = NULL;
    cleat_error error = {0};
    assert_int_equal(lay_out(all, SAMPLES, buckets, 3, rng_key, &batches, &error), CLEAT_OK);
    return batches;
}

/* Every sample occurs once, in a batch of its bucket, with at most one short batch per bucket. */
static void check_cover(const cleat_batches *batches) {
    bool seen[SAMPLES] = {false};
    size_t short_batches[3] = {0}, total = 0;
    for (size_t i = 0; i < cleat_batches_count(batches); ++i) {
        const cleat_micro_batch *micro_batch = cleat_batches_get(batches, i);
        assert_true(micro_batch->bucket < 3 && micro_batch->count >= 1 &&
                    micro_batch->count <= buckets[micro_batch->bucket].micro_batch_size);
        short_batches[micro_batch->bucket] += micro_batch->count < buckets[micro_batch->bucket].micro_batch_size;
        for (uint32_t s = 0; s < micro_batch->count; ++s) {
            int64_t length = lengths[micro_batch->samples[s]];
            assert_true(length <= buckets[micro_batch->bucket].length);
            assert_true(!micro_batch->bucket || length > buckets[micro_batch->bucket - 1].length);
            assert_false(seen[micro_batch->samples[s]]);
            seen[micro_batch->samples[s]] = true;
            ++total;
        }
    }
    assert_int_equal(total, SAMPLES);
    for (int b = 0; b < 3; ++b) assert_true(short_batches[b] <= 1);
}

static bool same(const cleat_batches *a, const cleat_batches *b) {
    if (cleat_batches_count(a) != cleat_batches_count(b)) return false;
    for (size_t i = 0; i < cleat_batches_count(a); ++i) {
        const cleat_micro_batch *x = cleat_batches_get(a, i), *y = cleat_batches_get(b, i);
        if (x->bucket != y->bucket || x->count != y->count ||
            memcmp(x->samples, y->samples, x->count * sizeof *x->samples) != 0)
            return false;
    }
    return true;
}

static void training_order_depends_on_seed_and_epoch(void **state) {
    (void)state;
    const cleat_rng_key draws[4] = {{5, 0}, {5, 0}, {5, 1}, {6, 0}};
    cleat_batches *made[4];
    for (int i = 0; i < 4; ++i) {
        made[i] = create(&draws[i]);
        check_cover(made[i]);
    }
    assert_true(same(made[0], made[1]));
    assert_false(same(made[0], made[2]));
    assert_false(same(made[0], made[3]));
    size_t changes = 0; /* changes of bucket between consecutive batches: shuffled batches change often */
    for (size_t i = 1; i < cleat_batches_count(made[0]); ++i)
        changes += cleat_batches_get(made[0], i)->bucket != cleat_batches_get(made[0], i - 1)->bucket;
    assert_true(changes > 50);
    for (int i = 0; i < 4; ++i) cleat_batches_destroy(made[i]);
}

static void evaluation_order_is_fixed(void **state) {
    (void)state;
    cleat_batches *batches = create(NULL);
    check_cover(batches);
    for (size_t i = 1; i < cleat_batches_count(batches); ++i) {
        const cleat_micro_batch *before = cleat_batches_get(batches, i - 1),
                                *micro_batch = cleat_batches_get(batches, i);
        assert_true(before->bucket <= micro_batch->bucket);
        if (before->bucket == micro_batch->bucket)
            assert_true(before->samples[before->count - 1] < micro_batch->samples[0]);
    }
    assert_null(cleat_batches_get(batches, cleat_batches_count(batches)));
    cleat_batches_destroy(batches);
    cleat_error error = {0};
    assert_int_equal(lay_out(NULL, 0, buckets, 3, NULL, &batches, &error), CLEAT_OK);
    assert_int_equal(cleat_batches_count(batches), 0);
    cleat_batches_destroy(batches);
}

static void refuses_bad_arguments(void **state) {
    (void)state;
    cleat_batches *batches = NULL;
    cleat_error error = {0};
    const cleat_bucket small[1] = {{50, 4, 4}}, falling[2] = {{50, 4, 4}, {20, 4, 4}}, empty[1] = {{100, 4, 0}},
                       too_wide[1] = {{100, 4, 5}};
    const uint32_t outside[1] = {SAMPLES};
    assert_int_equal(lay_out(all, SAMPLES, small, 1, NULL, &batches, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "max_length"));
    assert_int_equal(lay_out(all, 1, falling, 2, NULL, &batches, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(lay_out(all, 1, empty, 1, NULL, &batches, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(lay_out(all, 1, too_wide, 1, NULL, &batches, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(lay_out(all, 1, buckets, 0, NULL, &batches, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(lay_out(outside, 1, buckets, 3, NULL, &batches, &error), CLEAT_ERR_ARGUMENT);
    assert_null(batches);
}

/* --- global batches --- */

enum { BUCKETS = 3, MOST = 23 };
static const int64_t bucket_lengths[BUCKETS] = {16, 40, 100}, global_batch_sizes[BUCKETS] = {13, 7, 23};

/* Creates the same global batches in micro-batches of at most `most` samples. */
static cleat_batches *create_global_batches(int64_t most, const cleat_rng_key *rng_key) {
    cleat_bucket cut[BUCKETS];
    cleat_batches *batches = NULL;
    for (int b = 0; b < BUCKETS; ++b)
        cut[b] = (cleat_bucket){.length = bucket_lengths[b],
                                .global_batch_size = global_batch_sizes[b],
                                .micro_batch_size = most < global_batch_sizes[b] ? most : global_batch_sizes[b]};
    assert_int_equal(lay_out(all, SAMPLES, cut, BUCKETS, rng_key, &batches, NULL), CLEAT_OK);
    return batches;
}

/* Checks one global batch: its micro-batches are contiguous, in its bucket, as few and as equal as possible;
 * its statistics match its samples. Copies the samples. */
static int64_t check_global_batch(const cleat_batches *batches, size_t index, int64_t most, uint32_t *samples) {
    cleat_global_batch global_batch;
    assert_true(cleat_batches_global_batch(batches, index, &global_batch));
    assert_true(global_batch.micro_batches >= 1);
    const cleat_micro_batch *start = cleat_batches_get(batches, global_batch.first);
    uint32_t smallest = UINT32_MAX, largest = 0;
    int64_t items = 0, size = global_batch_sizes[start->bucket], slots = most < size ? most : size;
    uint32_t count = 0;
    for (size_t i = 0; i < global_batch.micro_batches; ++i) {
        const cleat_micro_batch *micro_batch = cleat_batches_get(batches, global_batch.first + i);
        assert_int_equal(micro_batch->global_batch, index);
        assert_int_equal(micro_batch->first, count);
        assert_int_equal(micro_batch->bucket, start->bucket);
        smallest = micro_batch->count < smallest ? micro_batch->count : smallest;
        largest = micro_batch->count > largest ? micro_batch->count : largest;
        for (uint32_t s = 0; s < micro_batch->count; ++s) {
            items += lengths[micro_batch->samples[s]];
            samples[count++] = micro_batch->samples[s];
        }
    }
    assert_true(smallest >= 1 && largest <= slots && largest - smallest <= 1);
    assert_int_equal(global_batch.micro_batches, (count + slots - 1) / slots);
    assert_int_equal(global_batch.samples, count);
    assert_int_equal(global_batch.items, items);
    assert_true(count <= size);
    return count;
}

static void global_batches_do_not_depend_on_the_cut(void **state) {
    (void)state;
    const cleat_rng_key rng_key = {7, 3};
    cleat_batches *whole = create_global_batches(MOST, &rng_key);
    size_t global_batches = cleat_batches_global_batch_count(whole);
    assert_int_equal(cleat_batches_count(whole), global_batches);
    size_t expected = 0, short_global_batches[BUCKETS] = {0}, in_bucket[BUCKETS] = {0};
    for (uint32_t i = 0; i < SAMPLES; ++i) ++in_bucket[lengths[i] <= 16 ? 0 : lengths[i] <= 40 ? 1 : 2];
    for (int b = 0; b < BUCKETS; ++b)
        expected += (in_bucket[b] + (size_t)global_batch_sizes[b] - 1) / (size_t)global_batch_sizes[b];
    assert_int_equal(global_batches, expected);
    for (int64_t most = 1; most <= MOST; ++most) {
        cleat_batches *cut = create_global_batches(most, &rng_key);
        bool seen[SAMPLES] = {false};
        size_t next = 0;
        assert_int_equal(cleat_batches_global_batch_count(cut), global_batches);
        for (size_t w = 0; w < global_batches; ++w) {
            uint32_t samples[MOST], others[MOST];
            cleat_global_batch global_batch;
            int64_t count = check_global_batch(cut, w, most, samples);
            assert_int_equal(check_global_batch(whole, w, MOST, others), count);
            assert_memory_equal(samples, others, (size_t)count * sizeof *samples);
            assert_true(cleat_batches_global_batch(cut, w, &global_batch));
            assert_int_equal(global_batch.first, next);
            next += global_batch.micro_batches;
            for (int64_t s = 0; s < count; ++s) {
                assert_false(seen[samples[s]]);
                seen[samples[s]] = true;
            }
            uint32_t bucket = cleat_batches_get(cut, global_batch.first)->bucket;
            short_global_batches[bucket] += most == 1 && count < global_batch_sizes[bucket];
        }
        assert_int_equal(next, cleat_batches_count(cut));
        for (uint32_t i = 0; i < SAMPLES; ++i) assert_true(seen[i]);
        cleat_batches_destroy(cut);
    }
    for (int b = 0; b < BUCKETS; ++b) assert_true(short_global_batches[b] <= 1);
    assert_int_equal(short_global_batches[0] + short_global_batches[1] + short_global_batches[2],
                     3); /* chosen to test each */
    cleat_batches_destroy(whole);
}

/* An evaluation does not accumulate: its batches are full, and each one is a global batch. */
static void evaluation_has_a_global_batch_each(void **state) {
    (void)state;
    cleat_batches *batches = create_global_batches(5, NULL);
    size_t short_batches = 0;
    assert_int_equal(cleat_batches_global_batch_count(batches), cleat_batches_count(batches));
    for (size_t i = 0; i < cleat_batches_count(batches); ++i) {
        cleat_global_batch global_batch;
        const cleat_micro_batch *micro_batch = cleat_batches_get(batches, i);
        assert_true(cleat_batches_global_batch(batches, i, &global_batch));
        assert_int_equal(global_batch.first, i);
        assert_int_equal(global_batch.micro_batches, 1);
        assert_int_equal(global_batch.samples, micro_batch->count);
        assert_int_equal(micro_batch->global_batch, i);
        assert_int_equal(micro_batch->first, 0);
        short_batches += micro_batch->count < 5;
    }
    assert_true(short_batches <= BUCKETS);
    cleat_global_batch untouched = {.samples = -7};
    assert_false(cleat_batches_global_batch(batches, cleat_batches_global_batch_count(batches), &untouched));
    assert_int_equal(untouched.samples, -7);
    cleat_batches_destroy(batches);
}

static int64_t padded(const int64_t *edges, size_t n, size_t samples) {
    int64_t total = 0;
    for (size_t i = 0; i < samples; ++i) {
        size_t b = 0;
        while (b < n && edges[b] < lengths[i]) ++b;
        if (b == n) return INT64_MAX;
        total += edges[b];
    }
    return total;
}

static cleat_status choose(const uint32_t *samples, size_t n_samples, size_t max_buckets, int64_t multiple,
                           int64_t *edges, size_t *n, cleat_error *error) {
    const cleat_buckets_spec spec = {.dataset = &fake.base,
                                     .samples = samples,
                                     .n_samples = n_samples,
                                     .max_buckets = max_buckets,
                                     .multiple = multiple};
    return cleat_buckets_choose(&spec, edges, n, error);
}

static void chooses_the_best_buckets(void **state) {
    (void)state;
    enum { FEW = 40 };
    cleat_error error = {0};
    int64_t edges[8], best = INT64_MAX;
    size_t n;
    assert_int_equal(choose(all, FEW, 3, 4, edges, &n, &error), CLEAT_OK);
    assert_int_equal(n, 3);
    for (int64_t a = 4; a <= 100; a += 4)
        for (int64_t b = a + 4; b <= 100; b += 4)
            for (int64_t c = b + 4; c <= 100; c += 4) {
                const int64_t tried[3] = {a, b, c};
                int64_t cost = padded(tried, 3, FEW);
                best = cost < best ? cost : best;
            }
    assert_int_equal(padded(edges, n, FEW), best);
    for (size_t i = 0; i < n; ++i) assert_int_equal(edges[i] % 4, 0);

    assert_int_equal(choose(all, 1, 5, 16, edges, &n, &error), CLEAT_OK);
    assert_int_equal(n, 1);
    assert_int_equal(edges[0], (lengths[0] + 15) / 16 * 16);
    assert_int_equal(choose(NULL, 0, 8, 1, edges, &n, &error), CLEAT_OK);
    assert_int_equal(n, 8);
    assert_int_equal(edges[7], 100);
    assert_int_equal(choose(all, 0, 8, 1, edges, &n, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(choose(all, 1, 8, 0, edges, &n, &error), CLEAT_ERR_ARGUMENT);
}

/* More distinct lengths than the search compares: they are rounded up to multiples of 4. */
static void many_lengths_are_rounded(void **state) {
    (void)state;
    enum { MANY = 5000, CHOSEN = 4 };
    static int64_t each[MANY];
    static uint32_t every[MANY];
    for (uint32_t i = 0; i < MANY; ++i) {
        each[i] = i + 1;
        every[i] = MANY - 1 - i;
    }
    fake_dataset many = fake_make(each, MANY);
    cleat_error error = {0};
    int64_t edges[CHOSEN];
    size_t n = 0;
    const cleat_buckets_spec spec = {
        .dataset = &many.base, .samples = every, .n_samples = MANY, .max_buckets = CHOSEN, .multiple = 1};
    assert_int_equal(cleat_buckets_choose(&spec, edges, &n, &error), CLEAT_OK);
    assert_int_equal(n, CHOSEN);
    for (int i = 0; i < CHOSEN; ++i) {
        assert_int_equal(edges[i] % 4, 0);
        assert_in_range(edges[i], MANY / CHOSEN * (i + 1) - 8, MANY / CHOSEN * (i + 1) + 8);
    }
}

static void dataset_pads_and_checks(void **state) {
    (void)state;
    const cleat_field *matrix = cleat_dataset_field(&fake.base, 2);
    assert_int_equal(cleat_dataset_find_field(&fake.base, "matrix"), 2);
    assert_int_equal(cleat_dataset_find_field(&fake.base, "absent"), -1);
    assert_null(cleat_dataset_field(&fake.base, 3));
    assert_int_equal(cleat_field_elements(matrix, 10), 20);
    assert_int_equal(cleat_field_bytes(cleat_dataset_field(&fake.base, 1), 10), 4);

    size_t sample = 0;
    while (lengths[sample] != 7) ++sample;
    int32_t values[10], length = 99;
    float rows[20];
    cleat_error error = {0};
    void *slots[3] = {values, &length, rows};
    assert_int_equal(cleat_dataset_fill(&fake.base, sample, 10, NULL, slots, &error), CLEAT_OK);
    assert_int_equal(values[6], fake_value(sample, 6, NULL));
    assert_int_equal(values[7], -1);
    assert_int_equal(length, 7);
    assert_true(rows[13] == 6 && rows[14] == 3 && rows[19] == 3);
    cleat_dataset_fill_empty(&fake.base, 10, slots);
    assert_true(values[0] == -1 && length == 0 && rows[0] == 3);
    slots[0] = slots[2] = NULL;
    assert_int_equal(cleat_dataset_fill(&fake.base, sample, 7, NULL, slots, &error), CLEAT_OK);
    assert_int_equal(length, 7);
    assert_int_equal(cleat_dataset_fill(&fake.base, sample, 6, NULL, slots, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_dataset_fill(&fake.base, SAMPLES, 6, NULL, slots, &error), CLEAT_ERR_ARGUMENT);
    assert_null(cleat_dataset_id(&fake.base, SAMPLES));
}

/* Purely by place, a set may hold out nothing although its share is three samples; equal places stay in one
 * split. */
static void small_sets_hold_out_their_share(void **state) {
    (void)state;
    static const struct {
        double places[8], val, test;
        const char *splits; /* T train, V validation, E test */
    } rows[] = {
        {{.9, .8, .1, .3, .35, .95, .5, .6}, .25, 0, "TTVTTTTT"},
        {{.9, .8, .7, .3, .35, .95, .5, .6}, .25, 0, "TTTVVTTT"},
        {{.9, .8, .7, .3, .3, .95, .5, .6}, .125, 0, "TTTVVTTT"},
        {{.9, .8, .7, .3, .35, .95, .5, .6}, .05, 0, "TTTTTTTT"},
        {{.9, .8, .7, .1, .35, .95, .5, .6}, .15, .15, "TTTEVTTT"},
        {{.9, .8, .7, .3, .35, .95, .5, .6}, .15, .13, "TTTVETTT"},
        {{.7, .7, .7, .7, .7, .7, .7, .7}, .25, 0, "TTTTTTTT"},
        {{INFINITY, INFINITY, INFINITY, INFINITY, .7, .8, .9, .6}, .25, 0, "TTTTTTTV"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_split splits[8];
        char text[9] = "";
        cleat_hashed_splits(rows[i].places, 8, rows[i].val, rows[i].test, splits);
        for (int s = 0; s < 8; ++s) text[s] = "TVE"[splits[s]];
        if (strcmp(text, rows[i].splits) != 0) fail_msg("row %zu: %s", i, text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_order_depends_on_seed_and_epoch),
        cmocka_unit_test(evaluation_order_is_fixed),
        cmocka_unit_test(refuses_bad_arguments),
        cmocka_unit_test(global_batches_do_not_depend_on_the_cut),
        cmocka_unit_test(evaluation_has_a_global_batch_each),
        cmocka_unit_test(chooses_the_best_buckets),
        cmocka_unit_test(many_lengths_are_rounded),
        cmocka_unit_test(dataset_pads_and_checks),
        cmocka_unit_test(small_sets_hold_out_their_share),
    };
    return cmocka_run_group_tests(tests, make_samples, NULL);
}
