/* Estimated all-reduce: hand-calculated times, the best algorithm, networks as text, overlap with the
 * backward pass. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "fit/allreduce.h"

static cleat_network parse(const char *text) {
    cleat_network network;
    cleat_error error = {0};
    if (cleat_network_parse(text, &network, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return network;
}

static void expect_near(double value, double expected) {
    if (!(fabs(value - expected) <= 1e-12 * fabs(expected))) fail_msg("%.17g instead of %.17g", value, expected);
}

/* --- networks ----------------------------------------------------------------------------------------------------- */

static void texts_are_read(void **state) {
    static const struct {
        const char *text;
        double bytes, latency, host;
    } rows[] = {
        {"1Gb", 125e6, 50e-6, 12e9},        {"25Gb,5us", 3.125e9, 5e-6, 12e9}, {"100Mb,1ms", 12.5e6, 1e-3, 12e9},
        {"2.5GB,800ns", 2.5e9, 8e-7, 12e9}, {"64kb,0.5s", 8000, 0.5, 12e9},    {"940Mb,0us", 117.5e6, 0, 12e9},
        {"memory", 5e9, 2e-6, 0},           {"pcie3", 5e9, 2e-6, 12e9},        {"pcie4,1us", 5e9, 1e-6, 24e9},
        {"pcie5", 5e9, 2e-6, 48e9},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        cleat_network network = parse(rows[i].text);
        assert_string_equal(network.name, rows[i].text);
        expect_near(network.bytes_per_second, rows[i].bytes);
        expect_near(network.latency_seconds, rows[i].latency);
        expect_near(network.host_bytes_per_second, rows[i].host);
    }
}

static void other_texts_are_refused(void **state) {
    static const char *const texts[] = {"",       "1",       "Gb",      "1Gx",    "1gb",        "0Gb",
                                        "-1Gb",   "1.2.3Gb", "1Gb,",    "1Gb,5",  "1Gb,5uss",   "1Gb,-5us",
                                        "1Gb,us", "pcie2",   "pcie3,x", "1Gb,,1", "1Gb,5us,5s", "1 Gb",
                                        "nanGb",  "1e9Gb",   "memory5", "0.Gb",   ".Gb"};
    (void)state;
    char longest[200];
    memset(longest, '1', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    for (size_t i = 0; i <= sizeof texts / sizeof texts[0]; ++i) {
        const char *text = i < sizeof texts / sizeof texts[0] ? texts[i] : longest;
        cleat_network network = {.bytes_per_second = -7};
        cleat_error error = {0};
        if (cleat_network_parse(text, &network, &error) != CLEAT_ERR_ARGUMENT) fail_msg("accepted: '%s'", text);
        assert_non_null(strstr(error.text, "10Gb,30us"));
        assert_true(network.bytes_per_second == -7);
    }
}

/* The model's own times give its network again, for any algorithm; noise changes it little. */
static void a_network_is_found_from_its_times(void **state) {
    static const char *const networks[] = {"1Gb,50us", "1.1GB,30us", "25Gb,5us", "5GB,0us", "1GB,1ms"};
    static const int ranks[] = {2, 3, 4, 7, 8, 64};
    enum { SIZES = 7 };
    cleat_allreduce_time times[SIZES];
    (void)state;
    for (size_t n = 0; n < sizeof networks / sizeof *networks; ++n)
        for (size_t r = 0; r < sizeof ranks / sizeof *ranks; ++r)
            for (int noisy = 0; noisy < 2; ++noisy) {
                const cleat_network wanted = parse(networks[n]);
                cleat_network found, read;
                cleat_error error = {0};
                double worst;
                for (int i = 0; i < SIZES; ++i) {
                    const int64_t bytes = INT64_C(65536) << 2 * i;
                    const cleat_allreduce way = cleat_allreduce_best(ranks[r], bytes, &wanted);
                    times[i] = (cleat_allreduce_time){bytes, cleat_allreduce_seconds(way, ranks[r], bytes, &wanted)};
                    if (noisy) times[i].seconds *= i % 2 ? 1.02 : 0.98;
                }
                assert_int_equal(cleat_network_fit(ranks[r], SIZES, times, &found, &worst, &error), CLEAT_OK);
                const double limit = noisy ? 0.1 : 1e-6, latency_limit = noisy ? 0.05 * times[0].seconds : 1e-12;
                if (fabs(found.bytes_per_second / wanted.bytes_per_second - 1) > limit ||
                    fabs(found.latency_seconds - wanted.latency_seconds) > latency_limit)
                    fail_msg("%s, %d ranks: found %g s, %g B/s", networks[n], ranks[r], found.latency_seconds,
                             found.bytes_per_second);
                assert_true(noisy ? worst > 0.01 && worst < 0.05 : worst < 1e-6);
                read = parse(found.name); /* three digits, in tenths of a microsecond */
                assert_true(fabs(read.bytes_per_second / found.bytes_per_second - 1) < 0.006);
                assert_true(fabs(read.latency_seconds - found.latency_seconds) <= 0.51e-7);
            }
}

static void times_of_no_network_are_refused(void **state) {
    static const cleat_allreduce_time rows[][2] = {
        {{65536, 1e-3}, {65536, 1e-3}}, /* one size */
        {{65536, 1e-3}, {1048576, 0}},  /* no time */
        {{65536, 1e-3}, {1048576, INFINITY}}, {{0, 1e-3}, {1048576, 1e-2}},
        {{65536, 1}, {1048576, 1e-9}}, /* the larger one takes less time */
    };
    cleat_network network = {.bytes_per_second = -7};
    double worst = -1;
    cleat_error error = {0};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
        if (cleat_network_fit(2, 2, rows[i], &network, &worst, &error) != CLEAT_ERR_ARGUMENT) fail_msg("row %zu", i);
    const cleat_allreduce_time good[] = {{65536, 1e-3}, {1048576, 1e-2}};
    assert_int_equal(cleat_network_fit(1, 2, good, &network, &worst, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_network_fit(2, 1, good, &network, &worst, &error), CLEAT_ERR_ARGUMENT);
    assert_true(network.bytes_per_second == -7 && worst == -1);
    assert_int_equal(cleat_network_fit(2, 2, good, &network, &worst, &error), CLEAT_OK);
}

/* --- one all-reduce ----------------------------------------------------------------------------------------------- */

/* 100 MB over 1 GB/s with 1 ms: a single message takes 101 ms. */
static void times_are_those_calculated_by_hand(void **state) {
    const cleat_network network = parse("1GB,1ms");
    static const struct {
        int ranks;
        double ring, tree, doubling, halving; /* seconds */
    } rows[] = {
        {1, 0, 0, 0, 0},
        /* 2 x (1 + 50) ms; all of it there and back; 101 ms; 2 ms + 100 ms */
        {2, 0.102, 0.202, 0.101, 0.102},
        /* 4 x (1 + 33.3..) ms; two levels: 4 x 101 ms; as two ranks, and 2 x 101 ms */
        {3, 0.004 + 0.4 / 3, 0.404, 0.303, 0.102 + 0.202},
        /* 6 x (1 + 25); 4 x 101; 2 x 101; 4 + 150 */
        {4, 0.156, 0.404, 0.202, 0.154},
        /* 126 x (1 + 1.5625); 12 x 101; 6 x 101; 12 + 2 x 63/64 x 100 */
        {64, 0.322875, 1.212, 0.606, 0.012 + 0.196875},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        const int ranks = rows[i].ranks;
        expect_near(cleat_allreduce_seconds(CLEAT_ALLREDUCE_RING, ranks, 100000000, &network), rows[i].ring);
        expect_near(cleat_allreduce_seconds(CLEAT_ALLREDUCE_TREE, ranks, 100000000, &network), rows[i].tree);
        expect_near(cleat_allreduce_seconds(CLEAT_ALLREDUCE_HALVING, ranks, 100000000, &network), rows[i].halving);
        expect_near(cleat_allreduce_seconds(CLEAT_ALLREDUCE_DOUBLING, ranks, 100000000, &network), rows[i].doubling);
    }
}

static void the_best_way_is_the_fastest(void **state) {
    const cleat_network network = parse("1GB,1ms");
    (void)state;
    for (int ranks = 1; ranks <= 64; ++ranks)
        for (int64_t bytes = 1; bytes <= INT64_C(1) << 32; bytes *= 16) {
            const double best =
                cleat_allreduce_seconds(cleat_allreduce_best(ranks, bytes, &network), ranks, bytes, &network);
            for (int way = 0; way < CLEAT_ALLREDUCES; ++way)
                assert_true(best <= cleat_allreduce_seconds((cleat_allreduce)way, ranks, bytes, &network));
        }
    /* Latency only: 3 + 2 sequential messages instead of 16. Bandwidth only: a ring of three ranks. */
    assert_int_equal(cleat_allreduce_best(9, 1, &network), CLEAT_ALLREDUCE_DOUBLING);
    assert_int_equal(cleat_allreduce_best(3, 1 << 30, &network), CLEAT_ALLREDUCE_RING);
    assert_int_equal(cleat_allreduce_best(64, 10 << 20, &network), CLEAT_ALLREDUCE_HALVING);
    assert_string_equal(cleat_allreduce_name(CLEAT_ALLREDUCE_RING), "ring");
    assert_string_equal(cleat_allreduce_name(CLEAT_ALLREDUCES), "");
    assert_string_equal(cleat_allreduce_name((cleat_allreduce)-1), "");
}

/* In a ring, more bandwidth or less latency never takes longer; more ranks or bytes never take less time. */
static void times_are_monotone(void **state) {
    (void)state;
    for (int way = 0; way < CLEAT_ALLREDUCES; ++way)
        for (int ranks = 2; ranks <= 64; ++ranks) {
            double before = INFINITY;
            for (double rate = 1e6; rate < 1e12; rate *= 2) {
                const cleat_network network = {.bytes_per_second = rate, .latency_seconds = 1e-5};
                const cleat_network slower = {.bytes_per_second = rate, .latency_seconds = 2e-5};
                double seconds = cleat_allreduce_seconds((cleat_allreduce)way, ranks, 50000000, &network);
                assert_true(seconds < before);
                assert_true(seconds < cleat_allreduce_seconds((cleat_allreduce)way, ranks, 50000000, &slower));
                before = seconds;
            }
        }
    const cleat_network network = parse("10Gb");
    for (int ranks = 1; ranks < 64; ++ranks)
        assert_true(cleat_allreduce_seconds(CLEAT_ALLREDUCE_RING, ranks, 50000000, &network) <
                    cleat_allreduce_seconds(CLEAT_ALLREDUCE_RING, ranks + 1, 50000000, &network));
}

/* --- overlap ------------------------------------------------------------------------------------------------------ */

static cleat_exchange estimate(int ranks, int64_t bytes, const cleat_network *network, bool copied, double backward) {
    return cleat_exchange_estimate(ranks, &(cleat_gradient_load){.bytes = bytes}, network, copied, backward);
}

/* Equal buckets: the slowest stage determines the rate, and the others count once. If the exchange is the
 * bottleneck, it starts with the first bucket; if backward is, only the last bucket is exposed. */
static double calculated(const cleat_exchange *exchange, double reduce, double copy, double backward) {
    const double once = reduce + 2 * copy, all = (exchange->buckets - 1) * fmax(reduce, copy) + once;
    return fmax(once, backward / exchange->buckets + all - backward);
}

static void exposed_time_is_that_of_the_slowest_stage(void **state) {
    const cleat_network network = {.bytes_per_second = 1e9, .latency_seconds = 1e-4, .host_bytes_per_second = 4e9};
    (void)state;
    for (int ranks = 2; ranks <= 8; ++ranks)
        for (int64_t bytes = 1000; bytes < 1000000000; bytes *= 3)
            for (double backward = 0; backward < 2; backward = backward * 3 + 1e-3)
                for (int copied = 0; copied <= 1; ++copied) {
                    cleat_exchange e = estimate(ranks, bytes, &network, copied, backward);
                    int64_t bucket = (bytes + e.buckets - 1) / e.buckets;
                    double reduce = cleat_allreduce_seconds(e.way, ranks, bucket, &network);
                    double expected = calculated(&e, reduce, copied ? (double)bucket / 4e9 : 0, backward);
                    assert_true(fabs(e.exposed_seconds - expected) < 1e-9);
                    assert_true(e.exposed_seconds <= e.seconds + 1e-9);
                }
}

static void buckets_are_not_below_a_mebibyte(void **state) {
    const cleat_network network = parse("1Gb");
    (void)state;
    assert_int_equal(estimate(2, 100, &network, true, 1).buckets, 1);
    assert_int_equal(estimate(2, 1 << 20, &network, true, 1).buckets, 1);
    assert_int_equal(estimate(2, 3 << 20, &network, true, 1).buckets, 3);
    assert_int_equal(estimate(2, 8 << 20, &network, true, 1).buckets, 8);
    assert_int_equal(estimate(2, 800 << 20, &network, true, 1).buckets, 8);
    assert_true(estimate(1, 800 << 20, &network, true, 1).exposed_seconds == 0);
    assert_true(estimate(2, 0, &network, true, 1).exposed_seconds == 0);
    /* All but the last bucket is hidden: 8 buckets of 1 MiB in 10 s of backward. */
    cleat_exchange hidden = estimate(2, 8 << 20, &network, false, 10);
    expect_near(hidden.exposed_seconds, 50e-6 + 1048576 / 125e6);
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

/* 1 GB/s, 1 ms; the table [1000, 250] has 1000 bytes per row and marks of 128 bytes. */
static void tables_are_exchanged_by_rows(void **state) {
    const cleat_network network = parse("1GB,1ms");
    static const struct {
        int ranks;
        int64_t most, any;
        cleat_row_way way;
        double seconds, sent;
    } rows[] = {
        {2, 100, 200, CLEAT_ROWS_OWN, 1.1e-3, 100000 + 128},     /* one message of 100 rows */
        {2, 100, 100, CLEAT_ROWS_UNION, 1.1e-3, 100000 + 128},   /* the same rows: recursive doubling */
        {4, 100, 400, CLEAT_ROWS_OWN, 3.3e-3, 300000 + 3 * 128}, /* 3 messages of 100 rows; sent: 2 x 3/4 x 400 */
        {4, 100, 150, CLEAT_ROWS_UNION, 2 * 1.15e-3, 1.5 * 150000 + 3 * 128}, /* */
        {4, 900, 1000, CLEAT_ROWS_WHOLE, 2 * 2e-3, 1.5 * 1000000 + 3 * 128},  /* */
        {2, 0, 0, CLEAT_ROWS_UNION, 1e-3, 128},                               /* only the latency */
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        const cleat_gradient_load load = {.tables = 1, .table = {{1000, 250, rows[i].most, rows[i].any}}};
        const cleat_exchange e = cleat_exchange_estimate(rows[i].ranks, &load, &network, false, 5);
        assert_int_equal(e.table_ways[0], rows[i].way);
        assert_int_equal(e.table_ways[0], cleat_row_sum_way(rows[i].ranks, 1000, rows[i].most, rows[i].any));
        assert_int_equal(e.buckets, 0);
        expect_near(e.seconds, rows[i].seconds);
        expect_near(e.exposed_seconds, rows[i].seconds); /* backward hides no part of a table */
        assert_int_equal(e.table_bytes[0], (int64_t)rows[i].sent);
        assert_int_equal(e.sent_bytes, e.table_bytes[0]);
    }
}

/* More rows never cost less, so the maximum of rows gives the maximum of bytes. */
static void bytes_of_tables_are_monotone(void **state) {
    const cleat_network network = parse("1GB,1ms");
    (void)state;
    for (int ranks = 2; ranks <= 8; ++ranks)
        for (int64_t most = 0; most <= 40; ++most) {
            int64_t before = 0;
            for (int64_t any = most; any <= ranks * most && any <= 40; ++any) {
                cleat_gradient_load load = {.tables = 1, .table = {{40, 8, most, any}}};
                const int64_t sent = cleat_exchange_estimate(ranks, &load, &network, false, 0).sent_bytes;
                assert_true(sent >= before);
                before = sent;
                if (most == 0 || any > ranks * (most - 1)) continue;
                load.table[0].most = most - 1;
                if (any >= most)
                    assert_true(cleat_exchange_estimate(ranks, &load, &network, false, 0).sent_bytes <= sent);
            }
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_read),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(a_network_is_found_from_its_times),
        cmocka_unit_test(times_of_no_network_are_refused),
        cmocka_unit_test(times_are_those_calculated_by_hand),
        cmocka_unit_test(the_best_way_is_the_fastest),
        cmocka_unit_test(times_are_monotone),
        cmocka_unit_test(exposed_time_is_that_of_the_slowest_stage),
        cmocka_unit_test(buckets_are_not_below_a_mebibyte),
        cmocka_unit_test(tables_are_exchanged_by_rows),
        cmocka_unit_test(bytes_of_tables_are_monotone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
