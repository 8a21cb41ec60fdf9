/* Lanes: a lane's intervals are disjoint or nested, and none moves by more than the resolution. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/philox.h"
#include "trace/lanes.h"

enum { MAX_INTERVALS = 60 };

static cleat_lanes assign(cleat_interval *intervals, size_t count, int64_t resolution) {
    cleat_lanes lanes = {0};
    for (size_t i = 0; i < count; ++i) intervals[i].index = i;
    assert_int_equal(cleat_lanes_assign(intervals, count, resolution, &lanes, NULL), CLEAT_OK);
    return lanes;
}

/* The result for the interval with the original number `index`. */
static const cleat_interval *find(const cleat_interval *intervals, size_t count, size_t index) {
    for (size_t i = 0; i < count; ++i)
        if (intervals[i].index == index) return &intervals[i];
    fail_msg("interval %zu is lost", index);
    return NULL;
}

static void expect(const cleat_interval *intervals, size_t count, size_t index, int lane, int64_t start) {
    const cleat_interval *found = find(intervals, count, index);
    assert_int_equal(found->lane, lane);
    assert_int_equal(found->start, start);
}

static void test_nested_and_apart(void **state) {
    (void)state;
    cleat_interval intervals[] = {{.start = 20, .end = 30},
                                  {.start = 0, .end = 20},
                                  {.start = 5, .end = 10},
                                  {.start = 10, .end = 20},
                                  {.start = 30, .end = 30}};
    cleat_lanes lanes = assign(intervals, 5, 0);
    assert_int_equal(lanes.count, 1);
    assert_int_equal(lanes.clamped, 0);
}

static void test_overlaps(void **state) {
    (void)state;
    cleat_interval small[] = {{.start = 0, .end = 102}, {.start = 100, .end = 200}, {.start = 50, .end = 100}};
    cleat_lanes lanes = assign(small, 3, 2);
    assert_int_equal(lanes.count, 1);
    assert_int_equal(lanes.clamped, 1);
    expect(small, 3, 1, 0, 102);
    cleat_interval large[] = {{.start = 0, .end = 103}, {.start = 100, .end = 200}, {.start = 200, .end = 300}};
    lanes = assign(large, 3, 2);
    assert_int_equal(lanes.count, 2);
    assert_int_equal(lanes.clamped, 0);
    expect(large, 3, 1, 1, 100);
    expect(large, 3, 2, 0, 200);
}

static bool fits(const cleat_interval *a, const cleat_interval *b) {
    bool apart = a->end <= b->start || b->end <= a->start;
    bool nested = (a->start <= b->start && b->end <= a->end) || (b->start <= a->start && a->end <= b->end);
    return apart || nested;
}

static void check_random(uint32_t seed) {
    cleat_interval intervals[MAX_INTERVALS], given[MAX_INTERVALS];
    cleat_random random = cleat_random_stream(seed, 1, 2);
    size_t count = 1 + cleat_random_below(&random, MAX_INTERVALS), moved = 0;
    int64_t resolution = cleat_random_below(&random, 5);
    for (size_t i = 0; i < count; ++i) {
        intervals[i].start = cleat_random_below(&random, 200);
        intervals[i].end = intervals[i].start + cleat_random_below(&random, 40);
    }
    memcpy(given, intervals, sizeof given);
    cleat_lanes lanes = assign(intervals, count, resolution);
    for (size_t i = 0; i < count; ++i) {
        const cleat_interval *a = &intervals[i], *was = &given[a->index];
        assert_int_equal(a->end, was->end);
        assert_in_range(a->start - was->start, 0, resolution);
        assert_true(a->start <= a->end);
        assert_in_range(a->lane, 0, lanes.count - 1);
        moved += a->start != was->start;
        for (size_t k = 0; k < i; ++k)
            if (intervals[k].lane == a->lane && !fits(a, &intervals[k]))
                fail_msg("seed %u: [%lld, %lld] and [%lld, %lld] are on one lane", seed, (long long)a->start,
                         (long long)a->end, (long long)intervals[k].start, (long long)intervals[k].end);
    }
    assert_int_equal(moved, lanes.clamped);
}

static void test_random(void **state) {
    (void)state;
    for (uint32_t seed = 0; seed < 3000; ++seed) check_random(seed);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nested_and_apart), cmocka_unit_test(test_overlaps),
                                       cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
