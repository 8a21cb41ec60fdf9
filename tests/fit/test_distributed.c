/* The plan of several devices, on made-up cards: against all shares of all device subsets, each fitted
 * separately; memory; unused devices; networks; 64 devices; errors. */
/* ctest: quick no-memcheck */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "fit/allreduce.h"
#include "fit/rank_fit.h"
#include "made_up_gpu.h"

enum { DEVICES = 3, BATCH = 12 };

static const int64_t MIB = 1048576;

static const char profile_text[] = "[model]\ntype = rna_transformer\nd_model = 128\nheads = 4\nlayers = 4\nd_ff = 512\n"
                                   "dropout = 0.1\n[data]\npath = /nonexistent\nmax_length = 400\n"
                                   "[train]\neffective_batch_size = 12\nprecision = f32\n[run]\nmax_memory_usage = 1\n";

/* Devices of any memory and any speed relative to the first. */
typedef struct lot {
    cleat_device_facts facts[CLEAT_PLAN_DEVICES];
    cleat_rates rates[CLEAT_PLAN_DEVICES];
    cleat_distributed_device devices[CLEAT_PLAN_DEVICES];
    int count;
} lot;

static void add(lot *l, double speed, int64_t memory) {
    const int d = l->count++;
    l->facts[d] = made_up_gpu(memory);
    l->rates[d] =
        (cleat_rates){.flops = 5e12 * speed, .bytes = 2e11 * speed, .launch_seconds = 1e-6, .source = "a test"};
    l->devices[d] = (cleat_distributed_device){
        .name = "card", .facts = &l->facts[d], .rates = &l->rates[d], .watts = 100, .price_per_hour = 0.5};
}

static cleat_profile *profile_with(const char *set) {
    cleat_profile *profile = NULL;
    cleat_error error = {0};
    if (cleat_profile_create(&profile, &error) != CLEAT_OK ||
        cleat_profile_read_text(profile, "test", profile_text, strlen(profile_text), &error) != CLEAT_OK ||
        (set && cleat_profile_set(profile, set, &error) != CLEAT_OK) ||
        cleat_profile_check(profile, &error) != CLEAT_OK)
        fail_msg("%s", error.text);
    return profile;
}

static cleat_network network_of(const char *text) {
    cleat_network network;
    assert_int_equal(cleat_network_parse(text, &network, NULL), CLEAT_OK);
    return network;
}

static void plan(const cleat_profile *profile, const lot *l, const char *network, cleat_distributed_report *report) {
    const cleat_network parsed = network_of(network);
    cleat_error error = {0};
    memset(report, 0, sizeof *report);
    if (cleat_fit_distributed(profile, l->count, l->devices, &parsed, report, &error) != CLEAT_OK)
        fail_msg("%s", error.text);
    assert_int_equal(report->count, l->count);
}

static void assert_near(double value, double wanted, double part) {
    if (!(fabs(value - wanted) <= part * fabs(wanted))) fail_msg("%.9g, expected %.9g within %g", value, wanted, part);
}

/* Invariants of every plan. */
static void check_report(const cleat_distributed_report *report) {
    int64_t samples = 0;
    int used = 0;
    double slowest = 0, alone = 0;
    for (int d = 0; d < report->count; ++d) {
        const cleat_distributed_rank *rank = &report->ranks[d];
        assert_true(rank->share >= 0 && (rank->fits || rank->share == 0));
        samples += rank->share;
        if (rank->share == 0) continue;
        ++used;
        slowest = fmax(slowest, rank->seconds);
        alone += 1 / rank->alone_seconds;
        assert_true(rank->bytes > 0 && rank->bytes <= rank->limit);
        assert_true(rank->micro_batch_size * rank->micro_batches >= rank->share);
        assert_true(rank->micro_batch_size * (rank->micro_batches - 1) < rank->share);
        assert_true(rank->seconds <= rank->alone_seconds);
    }
    assert_int_equal(used, report->used);
    if (used == 0) return;
    assert_int_equal(samples, report->global_batch_size);
    assert_near(report->step_seconds, slowest + (used > 1 ? report->exchange.exposed_seconds : 0), 1e-12);
    assert_near(report->efficiency, 1 / report->step_seconds / alone, 1e-12);
    assert_true(report->efficiency < 1.5); /* smaller batches may fill rounds of work-groups better */
    for (int d = 0; d < report->count; ++d)
        assert_true(!report->ranks[d].fits || report->ranks[d].other_seconds >= report->step_seconds * (1 - 1e-6));
}

/* --- against all shares ------------------------------------------------------------------------------------------- */

/* The time of n samples on a device, from the function behind `cleat plan --card`. */
static double seconds_of(const cleat_profile *profile, const lot *l, int d, int64_t n) {
    cleat_fit_report report;
    cleat_profile *part = NULL;
    assert_int_equal(cleat_profile_clone(profile, &part, NULL), CLEAT_OK);
    part->train.effective_batch_size = n;
    assert_int_equal(cleat_fit_describe(part, &l->facts[d], &l->rates[d], NULL, 0, &report, NULL), CLEAT_OK);
    cleat_profile_destroy(part);
    if (!report.fits) return INFINITY;
    return (report.recompute ? &report.recomputed : &report.stored)->step_seconds;
}

/* The shortest step of all shares, with the exposed communication of the plan for the same number of devices. */
typedef struct table {
    double seconds[DEVICES][BATCH + 1], backward[DEVICES][BATCH + 1];
    int64_t bytes;
} table;

static void fill_table(const cleat_profile *profile, const lot *l, table *t) {
    cleat_model *model = NULL;
    const cleat_lengths lengths = {.count = 1, .lengths = {400}, .samples = {BATCH}};
    assert_int_equal(cleat_profile_create_model(profile, &model, NULL), CLEAT_OK);
    const cleat_rank_setup setup = {profile, model, &lengths};
    for (int d = 0; d < DEVICES; ++d)
        for (int64_t n = 1; n <= BATCH; ++n) {
            cleat_rank_fit fit;
            assert_int_equal(cleat_rank_fit_make(&setup, &l->facts[d], &l->rates[d], &n, &fit, NULL), CLEAT_OK);
            t->seconds[d][n] = seconds_of(profile, l, d, n);
            t->backward[d][n] = fit.backward[0];
            t->bytes = fit.gradient_bytes;
            assert_near(fit.seconds[0], t->seconds[d][n], 1e-12);
            assert_true(fit.backward[0] > 0 && fit.backward[0] < fit.seconds[0]);
        }
    cleat_model_destroy(model);
}

static double step_of(const table *t, const cleat_network *network, const int64_t shares[DEVICES]) {
    double slowest = 0, backward = INFINITY;
    int used = 0;
    for (int d = 0; d < DEVICES; ++d) {
        if (shares[d] == 0) continue;
        ++used;
        slowest = fmax(slowest, t->seconds[d][shares[d]]);
        backward = fmin(backward, t->backward[d][shares[d]]);
    }
    return slowest + cleat_exchange_estimate(used, &(cleat_gradient_load){.bytes = t->bytes}, network, true, backward)
                         .exposed_seconds;
}

static double least_step(const table *t, const cleat_network *network, int64_t best[DEVICES]) {
    double least = INFINITY;
    for (int64_t a = 0; a <= BATCH; ++a)
        for (int64_t b = 0; a + b <= BATCH; ++b) {
            const int64_t shares[DEVICES] = {a, b, BATCH - a - b};
            const double seconds = step_of(t, network, shares);
            if (seconds >= least) continue;
            least = seconds;
            memcpy(best, shares, sizeof shares);
        }
    return least;
}

static void no_shares_are_faster(void **state) {
    static const double speeds[][DEVICES] = {{1, 1, 1}, {1, 0.5, 0.2}, {0.2, 1, 1}, {1, 0.05, 0.01}, {0.3, 0.2, 0.1}};
    static const char *const networks[] = {"1Mb", "100Mb", "1Gb", "10Gb", "25Gb,5us", "pcie3", "memory", "9999GB,0us"};
    cleat_profile *profile = profile_with(NULL);
    int left_out = 0, all = 0;
    (void)state;
    for (size_t s = 0; s < sizeof speeds / sizeof speeds[0]; ++s) {
        lot l = {.count = 0};
        table t;
        for (int d = 0; d < DEVICES; ++d) add(&l, speeds[s][d], 1000 * MIB);
        fill_table(profile, &l, &t);
        for (size_t n = 0; n < sizeof networks / sizeof networks[0]; ++n) {
            static cleat_distributed_report report;
            const cleat_network network = network_of(networks[n]);
            int64_t best[DEVICES] = {0}, shares[DEVICES];
            const double least = least_step(&t, &network, best);
            plan(profile, &l, networks[n], &report);
            check_report(&report);
            for (int d = 0; d < DEVICES; ++d) shares[d] = report.ranks[d].share;
            print_message("%g %g %g over %s: %lld %lld %lld, %.6g s; best %lld %lld %lld, %.6g s\n", speeds[s][0],
                          speeds[s][1], speeds[s][2], networks[n], (long long)shares[0], (long long)shares[1],
                          (long long)shares[2], report.step_seconds, (long long)best[0], (long long)best[1],
                          (long long)best[2], least);
            assert_near(step_of(&t, &network, shares), report.step_seconds, 1e-12);
            assert_true(report.step_seconds <= 1.001 * least);
            left_out += report.used < DEVICES;
            all += report.used == DEVICES;
        }
    }
    assert_true(left_out > 5 && all > 5);
    cleat_profile_destroy(profile);
}

/* --- networks ----------------------------------------------------------------------------------------------------- */

static void more_bandwidth_is_never_slower(void **state) {
    static cleat_distributed_report report;
    cleat_profile *profile = profile_with(NULL);
    lot l = {.count = 0};
    double before = INFINITY;
    int used = 0;
    (void)state;
    for (int d = 0; d < 4; ++d) add(&l, d < 2 ? 1 : 0.4, 1000 * MIB);
    for (double megabits = 1; megabits < 1e6; megabits *= 2) {
        char text[32];
        snprintf(text, sizeof text, "%.0fMb,1us", megabits);
        plan(profile, &l, text, &report);
        check_report(&report);
        assert_true(report.step_seconds <= before * (1 + 1e-3));
        assert_true(report.used >= used);
        before = report.step_seconds;
        used = report.used;
    }
    assert_int_equal(used, 4);
    plan(profile, &l, "1kb", &report);
    assert_int_equal(report.used, 1);
    assert_true(report.exchange.ranks > 1 && report.exchange.seconds > 1); /* of several devices, if they were chosen */
    cleat_profile_destroy(profile);
}

static void sixty_four_devices(void **state) {
    static cleat_distributed_report report;
    cleat_profile *profile = profile_with("train.effective_batch_size = 640");
    lot l = {.count = 0};
    (void)state;
    for (int d = 0; d < CLEAT_PLAN_DEVICES; ++d) add(&l, d % 2 ? 1 : 0.5, 1000 * MIB);
    plan(profile, &l, "100GB,1us", &report);
    check_report(&report);
    assert_int_equal(report.used, CLEAT_PLAN_DEVICES);
    for (int d = 2; d < CLEAT_PLAN_DEVICES; ++d) {
        int64_t change = report.ranks[d].share - report.ranks[d - 2].share;
        assert_true(change == 0 || change == -1); /* equal devices: the earlier ones get one more sample */
        assert_true(report.ranks[d].other_seconds == report.ranks[d % 2].other_seconds);
    }
    assert_true(report.watts == 6400 && report.price_per_hour == 32);
    cleat_profile_destroy(profile);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static void each_device_plans_its_own_micro_batches(void **state) {
    static cleat_distributed_report report;
    cleat_profile *profile = profile_with("train.gradient_checkpointing = false");
    lot l = {.count = 0};
    (void)state;
    add(&l, 1, 1000 * MIB);
    add(&l, 1, 40 * MIB);
    plan(profile, &l, "100GB,1us", &report);
    check_report(&report);
    assert_int_equal(report.used, 2);
    assert_int_equal(report.ranks[0].micro_batches, 1);
    assert_true(report.ranks[1].micro_batches > 1);
    assert_true(report.ranks[1].share <= report.ranks[0].share);
    cleat_profile_destroy(profile);
}

static void a_device_that_is_too_small_is_left_out(void **state) {
    static cleat_distributed_report report;
    cleat_profile *profile = profile_with(NULL);
    lot l = {.count = 0};
    (void)state;
    add(&l, 1, 2 * MIB);
    add(&l, 1, 1000 * MIB);
    plan(profile, &l, "100GB,1us", &report);
    check_report(&report);
    assert_int_equal(report.used, 1);
    assert_false(report.ranks[0].fits);
    if (!strstr(report.ranks[0].reason, "largest buffer")) fail_msg("%s", report.ranks[0].reason);
    assert_int_equal(report.ranks[1].share, BATCH);
    assert_true(isinf(report.ranks[1].other_seconds));
    assert_int_equal(report.exchange.ranks, 0);
    l.count = 1;
    plan(profile, &l, "memory", &report);
    assert_int_equal(report.used, 0);
    assert_true(report.step_seconds == 0 && report.price_per_hour == -1);
    cleat_profile_destroy(profile);
}

/* --- one device, several lengths ---------------------------------------------------------------------------------- */

static void one_device_is_as_without_others(void **state) {
    static cleat_distributed_report report;
    static const char *const sets[] = {NULL, "data.buckets = 40, 120, 400", "train.batch_size = 5"};
    (void)state;
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; ++i) {
        cleat_profile *profile = profile_with(sets[i]);
        lot l = {.count = 0};
        cleat_fit_report single;
        add(&l, 1, 1000 * MIB);
        plan(profile, &l, "memory", &report);
        check_report(&report);
        assert_int_equal(cleat_fit_describe(profile, &l.facts[0], &l.rates[0], NULL, 0, &single, NULL), CLEAT_OK);
        assert_near(report.step_seconds, single.stored.step_seconds, 1e-12);
        assert_near(report.samples_per_second, single.stored.samples_per_second, 1e-9);
        assert_int_equal(report.ranks[0].bytes, single.bytes);
        assert_int_equal(report.ranks[0].micro_batches, single.stored.micro_batches);
        assert_int_equal(report.length, 400);
        assert_false(report.data_known);
        /* also with two of them */
        add(&l, 1, 1000 * MIB);
        plan(profile, &l, "9999GB,0us", &report);
        check_report(&report);
        assert_int_equal(report.used, 2);
        cleat_profile_destroy(profile);
    }
}

/* --- errors ------------------------------------------------------------------------------------------------------- */

static void invalid_requests_are_refused(void **state) {
    static cleat_distributed_report report;
    const cleat_network network = network_of("1Gb");
    cleat_profile *profile = profile_with(NULL);
    cleat_error error = {0};
    lot l = {.count = 0};
    (void)state;
    for (int d = 0; d <= BATCH; ++d) add(&l, 1, 1000 * MIB);
    memset(&report, 7, sizeof report);
    assert_int_equal(cleat_fit_distributed(profile, 0, l.devices, &network, &report, &error), CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_fit_distributed(profile, CLEAT_PLAN_DEVICES + 1, l.devices, &network, &report, &error),
                     CLEAT_ERR_ARGUMENT);
    assert_int_equal(cleat_fit_distributed(profile, BATCH + 1, l.devices, &network, &report, &error),
                     CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "13 devices"));
    assert_non_null(strstr(error.text, "effective_batch_size"));
    l.rates[1].flops = 0;
    assert_int_equal(cleat_fit_distributed(profile, 2, l.devices, &network, &report, &error), CLEAT_ERR_ARGUMENT);
    l.rates[1].flops = 5e12;
    assert_int_equal(report.count, 0x07070707); /* unchanged on failure */
    int failed = 0;
    for (long n = 1; n < 4000; n += 1 + n / 8) {
        cleat_fail_allocation(n);
        failed += cleat_fit_distributed(profile, 2, l.devices, &network, &report, &error) == CLEAT_ERR_MEMORY;
    }
    cleat_fail_allocation(0);
    assert_true(failed > 20);
    cleat_profile_destroy(profile);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_shares_are_faster),
        cmocka_unit_test(more_bandwidth_is_never_slower),
        cmocka_unit_test(sixty_four_devices),
        cmocka_unit_test(each_device_plans_its_own_micro_batches),
        cmocka_unit_test(a_device_that_is_too_small_is_left_out),
        cmocka_unit_test(one_device_is_as_without_others),
        cmocka_unit_test(invalid_requests_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
