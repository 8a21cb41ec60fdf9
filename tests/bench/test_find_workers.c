/* The worker finder: choice and verdict from given numbers; measurements with samples that sleep. */
/* ctest: device cost=11 with=slow_samples.c wrap=cleat_dataset_fill */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cleat/bench.h"
#include "slow_samples.h"
#include "train/tiny.h"

/* --- the choice ----------------------------------------------------------------------------------------------- */

static cleat_worker_search search_of(double demand, int cpus, size_t count, const cleat_worker_point *points) {
    cleat_worker_search search = {.demand = demand, .demand_step_ms = 10, .cpus = cpus, .count = count};
    memcpy(search.points, points, count * sizeof *points);
    cleat_worker_search_select(&search);
    return search;
}

#define POINT(threads, loader, training)                                                                               \
    { .workers = threads, .supply = loader, .samples_per_second = training }

static void expect(const cleat_worker_search *search, int chosen, const char *verdict) {
    assert_int_equal(search->chosen, chosen);
    if (strncmp(search->verdict, verdict, strlen(verdict)) != 0) fail_msg("'%s'", search->verdict);
}

static void smallest_within_two_percent(void **state) {
    (void)state;
    const cleat_worker_point points[] = {POINT(8, 900, 500), POINT(4, 800, 495), POINT(2, 480, 489),
                                         POINT(0, 240, 160)};
    const cleat_worker_search search = search_of(520, 8, 4, points);
    expect(&search, 4, "device-bound: 4 threads supply 800 samples/s, the device alone processes 520, training 495");
}

static void loader_bound(void **state) {
    (void)state;
    const cleat_worker_point points[] = {POINT(0, 100, 80), POINT(1, 100, 99), POINT(2, 200, 195), POINT(4, 310, 300)};
    cleat_worker_search search = search_of(520, 4, 4, points);
    expect(&search, 4, "loader-bound: 4 threads supply 310 samples/s, the device alone processes 520, training 300;");
    assert_non_null(strstr(search.verdict, "more CPUs"));
    search = search_of(520, 16, 4, points);
    assert_null(strstr(search.verdict, "more CPUs"));
}

static void shared_cpus(void **state) {
    (void)state;
    const cleat_worker_point points[] = {POINT(1, 900, 300), POINT(2, 1500, 280)};
    const cleat_worker_search search = search_of(520, 2, 2, points);
    expect(&search, 1,
           "shared resources: 1 thread supplies 900 samples/s, the device alone processes 520, training 300");
}

/* Real training cannot be faster than the device: the measured demand is too low. */
static void noise(void **state) {
    (void)state;
    const cleat_worker_point points[] = {POINT(1, 900, 600)};
    const cleat_worker_search search = search_of(520, 2, 1, points);
    assert_true(search.demand == 600);
    expect(&search, 1, "device-bound: 1 thread supplies 900 samples/s, the device alone processes 600, training 600");
}

/* --- measurements --------------------------------------------------------------------------------------------- */

static int seen;

static void count_point(void *user, const cleat_worker_point *point) {
    assert_int_equal(((const int *)user)[seen++], point->workers);
}

static void sleeping_samples_need_threads(void **state) {
    static const int counts[] = {0, 1, 2, 4, 8};
    const tiny *t = *state;
    cleat_worker_search search;
    cleat_error error = {0};
    const cleat_worker_search_options options = {
        .counts = counts, .n_counts = 5, .seconds = 0.2, .point = count_point, .user = (void *)counts};
    cleat_profile *profile = tiny_profile(t, NULL);
    slow_samples_ns = 10000000;
    cleat_status status = cleat_find_workers(profile, &options, &search, &error);
    slow_samples_ns = 0;
    cleat_profile_destroy(profile);
    if (status) fail_msg("%s", error.text);
    assert_int_equal(seen, 5);
    assert_int_equal(search.count, 5);
    double best = 0;
    for (size_t i = 0; i < 5; ++i) {
        const cleat_worker_point *point = &search.points[i];
        assert_true(point->supply > 0 && point->samples_per_second > 0 && point->step_ms > 0 && point->fill_ms > 0);
        assert_true(point->batch_ms_p50 <= point->batch_ms_p95 && point->batch_ms_p95 <= point->batch_ms_max);
        assert_int_equal(point->beyond_cpus, point->workers > search.cpus);
        if (point->samples_per_second > best) best = point->samples_per_second;
    }
    assert_true(search.points[4].supply > search.points[1].supply); /* eight threads, one thread */
    assert_true(search.points[4].samples_per_second > search.points[1].samples_per_second);
    assert_true(search.points[1].dry_share > 0.1);
    assert_true(search.chosen >= 2);
    for (size_t i = 0; i < 5; ++i)
        if (search.points[i].workers == search.chosen) assert_true(search.points[i].samples_per_second * 1.02 >= best);
}

static void impossible_numbers(void **state) {
    static const int counts[][1] = {{-1}, {200}};
    const tiny *t = *state;
    cleat_worker_search search;
    cleat_profile *profile = tiny_profile(t, NULL);
    for (int i = 0; i < 2; ++i) {
        cleat_error error = {0};
        const cleat_worker_search_options options = {.counts = counts[i], .n_counts = 1};
        assert_int_equal(cleat_find_workers(profile, &options, &search, &error), CLEAT_ERR_ARGUMENT);
        assert_non_null(strstr(error.text, "0 to 127"));
    }
    cleat_profile_destroy(profile);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smallest_within_two_percent),
        cmocka_unit_test(loader_bound),
        cmocka_unit_test(shared_cpus),
        cmocka_unit_test(noise),
        cmocka_unit_test(sleeping_samples_need_threads),
        cmocka_unit_test(impossible_numbers),
    };
    tiny_require_device();
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
