/* Global batches and micro-batches of length buckets: as equal as possible, no larger than requested, and as
 * few as possible. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fit/buckets.h"

static int64_t ceil_div(int64_t a, int64_t b) {
    return a / b + (a % b != 0);
}

static void splits_are_even(void **state) {
    (void)state;
    for (int64_t global_batch_size = 1; global_batch_size <= 60; ++global_batch_size)
        for (int64_t most = 1; most <= 70; ++most) {
            int64_t size = cleat_bucket_split(global_batch_size, most), pieces = ceil_div(global_batch_size, most);
            assert_true(size >= 1 && size <= most && size <= global_batch_size);
            assert_int_equal(ceil_div(global_batch_size, size), pieces);
            /* as few empty slots as possible */
            if (size > 1) assert_true(ceil_div(global_batch_size, size - 1) > pieces);
        }
    assert_int_equal(cleat_bucket_split(25, 8), 7);
}

static void global_batches_are_spread_and_cut(void **state) {
    (void)state;
    const cleat_lengths lengths = {.count = 4, .lengths = {8, 16, 24, 32}, .samples = {50, 48, 5, 0}};
    static const int64_t sizes[] = {25, 48, 5, 1}, eights[] = {7, 8, 5, 1};
    cleat_bucket whole[4], cut[4];
    cleat_lengths_global_batches(&lengths, 48, whole);
    for (int b = 0; b < 4; ++b) {
        assert_int_equal(whole[b].length, lengths.lengths[b]);
        assert_int_equal(whole[b].global_batch_size, sizes[b]);
        assert_int_equal(whole[b].micro_batch_size, sizes[b]);
    }
    /* every bucket's length is a sample's length */
    assert_int_equal(cleat_lengths_steps(&lengths, 48), 2 + 1 + 1 + 0);
    cleat_lengths_buckets(&lengths, 48, 0, 0, cut);
    assert_memory_equal(cut, whole, sizeof cut);
    cleat_lengths_buckets(&lengths, 48, 0, 8, cut);
    for (int b = 0; b < 4; ++b) {
        assert_int_equal(cut[b].global_batch_size, sizes[b]);
        assert_int_equal(cut[b].micro_batch_size, eights[b]);
    }
    static const int64_t thirds[] = {9, 16, 2, 1}, fives[] = {5, 4, 2, 1};
    cleat_lengths_buckets(&lengths, 48, 16, 5, cut);
    for (int b = 0; b < 4; ++b) {
        assert_int_equal(cut[b].global_batch_size, thirds[b]);
        assert_int_equal(cut[b].micro_batch_size, fives[b]);
    }
}

/* 50 samples in global batches of 25, each with 4 micro-batches of at most 7; a last global batch of 3
 * samples is one micro-batch. */
static void micro_batches_of_a_pass_are_counted(void **state) {
    (void)state;
    const cleat_bucket bucket = {.length = 8, .global_batch_size = 25, .micro_batch_size = 7};
    assert_int_equal(cleat_bucket_micro_batches(&bucket, 0), 0);
    assert_int_equal(cleat_bucket_micro_batches(&bucket, 3), 1);
    assert_int_equal(cleat_bucket_micro_batches(&bucket, 8), 2);
    assert_int_equal(cleat_bucket_micro_batches(&bucket, 50), 8);
    assert_int_equal(cleat_bucket_micro_batches(&bucket, 53), 9);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(splits_are_even),
                                       cmocka_unit_test(global_batches_are_spread_and_cut),
                                       cmocka_unit_test(micro_batches_of_a_pass_are_counted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
