/* Windows and micro-batches of length buckets: even, no larger than asked for, and as few as that allows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fit/buckets.h"

static int64_t divide_up(int64_t a, int64_t b) {
    return a / b + (a % b != 0);
}

static void splits_are_even(void **state) {
    (void)state;
    for (int64_t window = 1; window <= 60; ++window)
        for (int64_t most = 1; most <= 70; ++most) {
            int64_t size = cleat_bucket_split(window, most), pieces = divide_up(window, most);
            assert_true(size >= 1 && size <= most && size <= window);
            assert_int_equal(divide_up(window, size), pieces);
            if (size > 1) assert_true(divide_up(window, size - 1) > pieces); /* no empty slot too many */
        }
    assert_int_equal(cleat_bucket_split(25, 8), 7);
}

static void windows_are_spread_and_cut(void **state) {
    (void)state;
    const cleat_lengths lengths = {.count = 4, .lengths = {8, 16, 24, 32}, .samples = {50, 48, 5, 0}};
    static const int64_t windows[] = {25, 48, 5, 1}, eights[] = {7, 8, 5, 1};
    cleat_bucket whole[4], cut[4];
    cleat_lengths_windows(&lengths, 48, whole);
    for (int b = 0; b < 4; ++b) {
        assert_int_equal(whole[b].length, lengths.lengths[b]);
        assert_int_equal(whole[b].window, windows[b]);
        assert_int_equal(whole[b].batch, windows[b]);
    }
    assert_int_equal(cleat_lengths_steps(&lengths, 48),
                     2 + 1 + 1 + 0); /* nothing is trained at a length that no sample has */
    cleat_lengths_buckets(&lengths, 48, 0, cut);
    assert_memory_equal(cut, whole, sizeof cut);
    cleat_lengths_buckets(&lengths, 48, 8, cut);
    for (int b = 0; b < 4; ++b) {
        assert_int_equal(cut[b].window, windows[b]);
        assert_int_equal(cut[b].batch, eights[b]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(splits_are_even), cmocka_unit_test(windows_are_spread_and_cut)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
