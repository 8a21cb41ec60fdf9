/* Batches: nothing lost, nothing twice, order from (seed, epoch) only; bucket lengths against exhaustive
 * search; the dataset interface. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

enum { SAMPLES = 1000 };

static int64_t lengths[SAMPLES];
static uint32_t all[SAMPLES];
static fake_dataset fake;
static const cleat_bucket buckets[3] = {{16, 8}, {40, 3}, {100, 1}};

static int make_samples(void **state) {
    (void)state;
    for (uint32_t i = 0; i < SAMPLES; ++i) {
        lengths[i] = 1 + (i * 2654435761u >> 8) % 100;
        all[i] = i;
    }
    fake = fake_make(lengths, SAMPLES);
    return 0;
}

static cleat_batches *create(const cleat_draw *draw) {
    cleat_batches *batches = NULL;
    cleat_error error = {0};
    assert_int_equal(cleat_batches_create(&fake.base, all, SAMPLES, buckets, 3, draw, &batches, &error), CLEAT_OK);
    return batches;
}

/* Every sample once, in a batch of its own bucket, no more than one short batch a bucket. */
static void check_cover(const cleat_batches *batches) {
    bool seen[SAMPLES] = {false};
    size_t short_batches[3] = {0}, total = 0;
    for (size_t i = 0; i < cleat_batches_count(batches); ++i) {
        const cleat_batch *batch = cleat_batches_get(batches, i);
        assert_true(batch->bucket < 3 && batch->count >= 1 && batch->count <= buckets[batch->bucket].batch);
        short_batches[batch->bucket] += batch->count < buckets[batch->bucket].batch;
        for (uint32_t s = 0; s < batch->count; ++s) {
            int64_t length = lengths[batch->samples[s]];
            assert_true(length <= buckets[batch->bucket].length);
            assert_true(!batch->bucket || length > buckets[batch->bucket - 1].length);
            assert_false(seen[batch->samples[s]]);
            seen[batch->samples[s]] = true;
            ++total;
        }
    }
    assert_int_equal(total, SAMPLES);
    for (int b = 0; b < 3; ++b) assert_true(short_batches[b] <= 1);
}

static bool same(const cleat_batches *a, const cleat_batches *b) {
    if (cleat_batches_count(a) != cleat_batches_count(b)) return false;
    for (size_t i = 0; i < cleat_batches_count(a); ++i) {
        const cleat_batch *x = cleat_batches_get(a, i), *y = cleat_batches_get(b, i);
        if (x->bucket != y->bucket || x->count != y->count ||
            memcmp(x->samples, y->samples, x->count * sizeof *x->samples) != 0)
            return false;
    }
    return true;
}

static void training_order_depends_on_seed_and_epoch(void **state) {
    (void)state;
    const cleat_draw draws[4] = {{5, 0}, {5, 0}, {5, 1}, {6, 0}};
    cleat_batches *made[4];
    for (int i = 0; i < 4; ++i) {
        made[i] = create(&draws[i]);
        check_cover(made[i]);
    }
    assert_true(same(made[0], made[1]));
    assert_false(same(made[0], made[2]));
    assert_false(same(made[0], made[3]));
    size_t changes = 0; /* of bucket from one batch to the next: shuffled batches change often */
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
        const cleat_batch *before = cleat_batches_get(batches, i - 1), *batch = cleat_batches_get(batches, i);
        assert_true(before->bucket <= batch->bucket);
        if (before->bucket == batch->bucket) assert_true(before->samples[before->count - 1] < batch->samples[0]);
    }
    assert_null(cleat_batches_get(batches, cleat_batches_count(batches)));
    cleat_batches_destroy(batches);
    cleat_error error = {0};
    assert_int_equal(cleat_batches_create(&fake.base, NULL, 0, buckets, 3, NULL, &batches, &error), CLEAT_OK);
    assert_int_equal(cleat_batches_count(batches), 0);
    cleat_batches_destroy(batches);
}

static void refuses_bad_arguments(void **state) {
    (void)state;
    cleat_batches *batches = NULL;
    cleat_error error = {0};
    const cleat_bucket small[1] = {{50, 4}}, falling[2] = {{50, 4}, {20, 4}}, empty[1] = {{100, 0}};
    const uint32_t outside[1] = {SAMPLES};
    assert_int_equal(cleat_batches_create(&fake.base, all, SAMPLES, small, 1, NULL, &batches, &error),
                     CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "max_length"));
    assert_int_equal(cleat_batches_create(&fake.base, all, 1, falling, 2, NULL, &batches, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_batches_create(&fake.base, all, 1, empty, 1, NULL, &batches, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_batches_create(&fake.base, all, 1, buckets, 0, NULL, &batches, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_batches_create(&fake.base, outside, 1, buckets, 3, NULL, &batches, &error),
                     CLEAT_ERR_ARGUMENT);
    assert_null(batches);
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

static void chooses_the_best_buckets(void **state) {
    (void)state;
    enum { FEW = 40 };
    cleat_error error = {0};
    int64_t edges[8], best = INT64_MAX;
    size_t n;
    assert_int_equal(cleat_buckets_choose(&fake.base, all, FEW, 3, 4, edges, &n, &error), CLEAT_OK);
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

    assert_int_equal(cleat_buckets_choose(&fake.base, all, 1, 5, 16, edges, &n, &error), CLEAT_OK);
    assert_int_equal(n, 1);
    assert_int_equal(edges[0], (lengths[0] + 15) / 16 * 16);
    assert_int_equal(cleat_buckets_choose(&fake.base, NULL, 0, 8, 1, edges, &n, &error), CLEAT_OK);
    assert_int_equal(n, 8);
    assert_int_equal(edges[7], 100);
    assert_int_equal(cleat_buckets_choose(&fake.base, all, 0, 8, 1, edges, &n, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_buckets_choose(&fake.base, all, 1, 8, 0, edges, &n, &error), CLEAT_ERR_ARGUMENT);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_order_depends_on_seed_and_epoch),
        cmocka_unit_test(evaluation_order_is_fixed),
        cmocka_unit_test(refuses_bad_arguments),
        cmocka_unit_test(chooses_the_best_buckets),
        cmocka_unit_test(dataset_pads_and_checks),
    };
    return cmocka_run_group_tests(tests, make_samples, NULL);
}
