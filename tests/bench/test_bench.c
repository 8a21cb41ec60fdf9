/* Benchmarks: the arithmetic of comparisons and the parsing of command output, with made-up numbers; on a
 * device, every workload alone, beside a command, and from a profile. Only the last test opens OpenCL in this
 * process, because the others fork. */
/* ctest: device slow cost=71 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "bench/bench.h"
#include "bench/steps.h"
#include "cleat/bench.h"
#include "cleat/card.h"
#include "core/memory.h"
#include "platform/files.h"
#include "platform/processes.h"
#include "session/rates.h"
#include "train/tiny.h"

static bool same(double a, double b) {
    return fabs(a - b) <= 1e-15 * fabs(b);
}

/* --- made-up numbers ------------------------------------------------------------------------------------------ */

static void assert_spread(cleat_spread s, double median, double min, double max) {
    if (!same(s.median, median) || !same(s.min, min) || !same(s.max, max))
        fail_msg("%.17g (%.17g - %.17g) instead of %g (%g - %g)", s.median, s.min, s.max, median, min, max);
}

static void spreads_are_exact(void **state) {
    (void)state;
    const double values[] = {14, 10, 12, 11};
    cleat_spread spread;
    assert_int_equal(cleat_spread_of(values, 1, &spread, NULL), CLEAT_OK);
    assert_spread(spread, 14, 14, 14);
    assert_int_equal(cleat_spread_of(values, 3, &spread, NULL), CLEAT_OK);
    assert_spread(spread, 12, 10, 14);
    assert_int_equal(cleat_spread_of(values, 4, &spread, NULL), CLEAT_OK);
    assert_spread(spread, 11.5, 10, 14);
}

/* The ratio of medians is not the median of ratios (0.5). */
static void ratios_are_exact(void **state) {
    (void)state;
    const double ours[] = {10, 14, 12}, theirs[] = {20, 10, 40};
    cleat_spread ratio;
    assert_int_equal(cleat_bench_ratio(ours, theirs, 3, &ratio, NULL), CLEAT_OK);
    assert_spread(ratio, 0.6, 0.3, 1.4);
    assert_int_equal(cleat_bench_ratio(ours, theirs, 1, &ratio, NULL), CLEAT_OK);
    assert_spread(ratio, 0.5, 0.5, 0.5);
}

static cleat_bench_output parse_output(const char *output) {
    cleat_bench_output parsed = {0};
    cleat_error error = {0};
    if (cleat_bench_parse_output(output, 2, &parsed, &error) != CLEAT_OK) fail_msg("'%s': %s", output, error.text);
    return parsed;
}

static void commands_are_understood(void **state) {
    (void)state;
    const struct {
        const char *output;
        double ms, rss;
        bool wall_time;
    } rows[] = {
        {"{\"ms\": 12}", 12, 0, false},
        {"{\"ms\": 12}\n\n  \n", 12, 0, false},
        {"warming up\n{\"ms\": 1}\n  {\"ms_per_step\": 12.5, \"ms\": 3, \"peak_rss_mb\": 551.5}\r\n", 12.5, 551.5,
         false},
        {"{\"ms\": 12, \"peak_rss_mb\": \"much\"}", 12, 0, false},
        {"", 2000, 0, true},
        {"done\n", 2000, 0, true},
        {"{\"ms\": 12}\nbye\n", 2000, 0, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_bench_output parsed = parse_output(rows[i].output);
        if (!same(parsed.ms, rows[i].ms) || parsed.wall_time != rows[i].wall_time ||
            !same(parsed.peak_rss_mb, rows[i].rss))
            fail_msg("row %zu: %g ms, %d, %g MB", i, parsed.ms, parsed.wall_time, parsed.peak_rss_mb);
    }
}

static void nonsense_is_refused(void **state) {
    (void)state;
    const char *const bad[] = {"{",
                               "{\"ms\": 12",
                               "{}",
                               "{\"ms\": \"12\"}",
                               "{\"ms\": 0}",
                               "{\"ms\": -3}",
                               "{\"ms\": null}",
                               "{\"ms\": 1e999}",
                               "{\"MS\": 12}",
                               "ready\n{\"seconds\": 12}\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        cleat_bench_output parsed = {.ms = 42};
        cleat_error error = {0};
        if (cleat_bench_parse_output(bad[i], 2, &parsed, &error) != CLEAT_ERR_FORMAT)
            fail_msg("'%s' was understood", bad[i]);
        assert_non_null(strstr(error.text, "ms_per_step"));
        assert_true(parsed.ms == 42);
    }
}

/* --- the list ------------------------------------------------------------------------------------------------- */

static void names_are_distinct(void **state) {
    (void)state;
    const char *const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    cleat_bench_info a, b;
    size_t count[2] = {0};
    for (size_t i = 0; cleat_bench_workload(i, &a); ++i) {
        if (strspn(a.name, plain) != strlen(a.name) || !a.name[0]) fail_msg("name '%s'", a.name);
        if (strspn(a.peer, plain) != strlen(a.peer)) fail_msg("peer '%s'", a.peer);
        assert_true(a.what[0]);
        ++count[a.kind == CLEAT_BENCH_MODEL];
        for (size_t j = 0; j < i && cleat_bench_workload(j, &b); ++j)
            if (strcmp(a.name, b.name) == 0 || (a.peer[0] && strcmp(a.peer, b.peer) == 0) ||
                strcmp(a.name, b.peer) == 0 || strcmp(a.peer, b.name) == 0)
                fail_msg("'%s' and '%s' can be confused", a.name, b.name);
    }
    assert_true(count[0] >= 40 && count[1] >= 3);
}

static const char *device(void) {
    const char *selector = getenv("CLEAT_TEST_DEVICE");
    return selector ? selector : "auto";
}

static cleat_bench_request request_of(const char *workload) {
    return (cleat_bench_request){.device = device(), .workload = workload, .repeats = 1, .own_process = true};
}

static void unknown_names_are_refused(void **state) {
    (void)state;
    cleat_bench_result result = {.steps = 42};
    cleat_bench_comparison comparison = {.rounds = 42};
    for (int own_process = 0; own_process < 2; ++own_process) {
        cleat_error error = {0};
        cleat_bench_request request = request_of("sgemm_102");
        request.own_process = own_process;
        assert_int_equal(cleat_bench(&request, &result, &error), CLEAT_ERR_NOT_FOUND);
        assert_non_null(strstr(error.text, "did you mean 'sgemm_1024'?"));
        request.workload = "nothing of the kind";
        assert_int_equal(cleat_bench(&request, &result, &error), CLEAT_ERR_NOT_FOUND);
        assert_null(strstr(error.text, "did you mean"));
        request.workload = "";
        assert_int_equal(cleat_bench(&request, &result, &error), CLEAT_ERR_NOT_FOUND);
        request.workload = "W44";
        assert_int_equal(cleat_bench_compare(&request, "touch /tmp/cleat-bench-must-not-run", 1, &comparison, &error),
                         CLEAT_ERR_NOT_FOUND);
        assert_non_null(strstr(error.text, "did you mean 'W4'?"));
    }
    assert_int_not_equal(access("/tmp/cleat-bench-must-not-run", F_OK), 0);
    assert_true(result.steps == 42 && comparison.rounds == 42);
}

/* --- on a device ---------------------------------------------------------------------------------------------- */

static bool device_is_there(void) {
    int code = 0;
    if (!CLEAT_FORKS) return true; /* without a device, the tests themselves are skipped */
    pid_t pid = fork();
    if (pid == 0) {
        tiny_require_device();
        _exit(0);
    }
    waitpid(pid, &code, 0);
    return pid > 0 && WIFEXITED(code) && WEXITSTATUS(code) == 0;
}

static bool positive(double value) {
    return value > 0 && isfinite(value);
}

static void assert_measured(const cleat_bench_result *r) {
    bool ok = positive(r->ms_min) && r->ms_median >= r->ms_min && r->ms_max >= r->ms_median && isfinite(r->ms_max) &&
              r->gflops >= 0 && isfinite(r->gflops) && positive(r->gbytes_per_second) && positive(r->share_of_peak) &&
              positive(r->peak.flops) && positive(r->peak.bytes) && r->device_bytes > 0 && positive(r->peak_rss_mb) &&
              r->steps >= 1 && r->device[0];
    if (!ok)
        fail_msg("%s: %g (%g - %g) ms, %g GFLOP/s, %g GB/s, %g of %g and %g, %lld bytes", r->workload, r->ms_median,
                 r->ms_min, r->ms_max, r->gflops, r->gbytes_per_second, r->share_of_peak, r->peak.flops, r->peak.bytes,
                 (long long)r->device_bytes);
    if (r->kind == CLEAT_BENCH_MODEL)
        ok = r->samples > 0 && same(r->samples_per_second, (double)r->samples / r->ms_median * 1e3) &&
             r->parameters > 0 && positive(r->loss);
    else
        ok = r->samples == 0 && r->samples_per_second == 0 && r->parameters == 0 && r->loss == 0;
    if (!ok)
        fail_msg("%s: %lld samples, %g a second, %lld parameters, loss %g", r->workload, (long long)r->samples,
                 r->samples_per_second, (long long)r->parameters, r->loss);
}

static cleat_bench_result bench(const cleat_bench_request *request) {
    cleat_bench_result result = {0};
    cleat_error error = {0};
    if (cleat_bench(request, &result, &error) != CLEAT_OK) fail_msg("%s: %s", request->workload, error.text);
    assert_measured(&result);
    return result;
}

static void every_workload_runs(void **state) {
    (void)state;
    cleat_bench_info info;
    for (size_t i = 0; cleat_bench_workload(i, &info); ++i) {
        cleat_bench_request request = request_of(info.name);
        cleat_bench_result result = bench(&request);
        assert_string_equal(result.workload, info.name);
        assert_int_equal(result.kind, info.kind);
    }
}

/* Work as counted by cleat: 2 m n k for a product and for each of its gradients; parameters of the models. */
static void stats_are_those_of_the_work(void **state) {
    (void)state;
    const char *const products[] = {"sgemm_256", "sgemm256", "sgemm_256_dx", "sgemm_256_dw"};
    for (int i = 0; i < 4; ++i) {
        cleat_bench_request request = request_of(products[i]);
        cleat_bench_result r = bench(&request);
        assert_true(fabs(r.gflops * r.ms_median * 1e6 - 2.0 * 256 * 256 * 256) < 1);
        assert_false(r.memory_bound);
        double share = r.gflops * 1e9 / r.peak.flops;
        assert_true(fabs(r.share_of_peak - share) < 1e-9 * share);
    }
    cleat_bench_request request = request_of("grad_norm_4m");
    cleat_bench_result norm = bench(&request);
    assert_true(fabs(norm.gbytes_per_second * norm.ms_median * 1e6 - 16e6) < 1);
    request = request_of("W4");
    request.repeats = 2;
    cleat_bench_result dense = bench(&request);
    assert_int_equal(dense.steps, 2);
    assert_int_equal(dense.parameters, 65 * 512 + 513 * 512 + 513 * 256 + 257 * 2);
    assert_int_equal(dense.samples, 512);
    assert_true(dense.loss < 1); /* two classes: initially ln 2 */
}

/* The loss of a repeated batch decreases. */
static void steps_train(void **state) {
    (void)state;
    cleat_bench_request request = request_of("W4");
    double first = bench(&request).loss;
    request.repeats = 30;
    double last = bench(&request).loss;
    if (!(last < first)) fail_msg("loss %g, then %g", first, last);
}

static void seconds_are_kept(void **state) {
    (void)state;
    cleat_bench_request request = request_of("sgemm_256");
    request.repeats = 0;
    request.seconds = 1e-6;
    assert_true(bench(&request).steps >= 5);
}

/* --- beside a command ----------------------------------------------------------------------------------------- */

static cleat_bench_comparison compare(const char *workload, const char *command, int64_t rounds) {
    cleat_bench_request request = request_of(workload);
    cleat_bench_comparison comparison = {0};
    cleat_error error = {0};
    if (cleat_bench_compare(&request, command, rounds, &comparison, &error) != CLEAT_OK)
        fail_msg("%s: %s", command, error.text);
    assert_measured(&comparison.ours);
    assert_int_equal(comparison.rounds, rounds);
    assert_true(positive(comparison.ours_rss_mb));
    return comparison;
}

static void turns_are_taken(void **state) {
    char command[2 * TINY_PATH + 64], path[TINY_PATH];
    snprintf(command, sizeof command, "echo \"$WORKLOAD\" >>'%s'; echo '{\"ms\": 12, \"peak_rss_mb\": 7}'",
             tiny_path(*state, "turns", path));
    cleat_bench_comparison c = compare("sgemm_256", command, 3);
    assert_spread(c.theirs_ms, 12, 12, 12);
    assert_true(c.ours_ms.min > 0 && c.ours_ms.min <= c.ours_ms.median && c.ours_ms.median <= c.ours_ms.max);
    assert_spread(c.ratio, c.ours_ms.median / 12, c.ours_ms.min / 12, c.ours_ms.max / 12);
    assert_true(!c.wall_time && c.theirs_rss_mb == 7);
    size_t size;
    char *turns = tiny_read(path, &size);
    assert_string_equal(turns, "sgemm256\nsgemm256\nsgemm256\n");
    cleat_free(turns);
}

static void wall_time_counts(void **state) {
    (void)state;
    cleat_bench_comparison c = compare("sgemm_256", "sleep 0.05", 2);
    assert_true(c.wall_time && c.theirs_ms.min >= 50 && c.theirs_rss_mb == 0);
}

static void assert_refused(const char *command, int64_t rounds, cleat_status wanted, const char *text) {
    cleat_bench_request request = request_of("sgemm_256");
    cleat_bench_comparison comparison = {.rounds = 42};
    cleat_error error = {0};
    cleat_status status = cleat_bench_compare(&request, command, rounds, &comparison, &error);
    if (status != wanted || !strstr(error.text, text) || comparison.rounds != 42)
        fail_msg("%s: '%s', %s", command, cleat_status_text(status), error.text);
}

static void failing_commands_are_errors(void **state) {
    char command[2 * TINY_PATH + 64], path[TINY_PATH];
    assert_refused("exit 3", 2, CLEAT_ERR_IO, "round 1: exited with code 3");
    assert_refused("no_such_program_at_all 2>/dev/null", 1, CLEAT_ERR_IO, "exited with code 127");
    assert_refused("kill -9 $$", 1, CLEAT_ERR_IO, "signal 9");
    assert_refused("echo '{garbage'", 1, CLEAT_ERR_FORMAT, "{garbage");
    snprintf(command, sizeof command, "test -e '%s' || echo '{\"ms\": 1}'; touch '%s'", tiny_path(*state, "once", path),
             path);
    assert_refused(command, 2, CLEAT_ERR_FORMAT, "round 2: reported a time only in some rounds");
    assert_refused("true", 0, CLEAT_ERR_ARGUMENT, "0 rounds");
    assert_refused("true", INT64_MAX, CLEAT_ERR_ARGUMENT, "rounds");
}

/* --- a profile ------------------------------------------------------------------------------------------------ */

/* An optimizer step covers a whole global batch, regardless of its division into micro-batches. */
static void profiles_are_run(void **state) {
    const char *const whole[] = {"train.batch_size=auto", "train.effective_batch_size=4", NULL};
    const char *const cut[] = {"train.batch_size=1", "train.effective_batch_size=4", NULL};
    cleat_bench_result results[2];
    for (int i = 0; i < 2; ++i) {
        cleat_profile *profile = tiny_profile(*state, i ? cut : whole);
        cleat_bench_request request = request_of("tiny.ini");
        request.profile = profile;
        results[i] = bench(&request);
        assert_string_equal(results[i].workload, "tiny.ini");
        assert_int_equal(results[i].kind, CLEAT_BENCH_MODEL);
        assert_int_equal(results[i].samples, 4);
        cleat_profile_destroy(profile);
    }
    assert_int_equal(results[0].parameters, results[1].parameters);
    assert_true(results[1].device_bytes < results[0].device_bytes);
}

static void errors_come_back_from_the_child(void **state) {
    (void)state;
    cleat_bench_request request = request_of("sgemm_256");
    cleat_bench_result result = {.steps = 42};
    cleat_error error = {0};
    request.device = "no_such_device";
    assert_int_equal(cleat_bench(&request, &result, &error), CLEAT_ERR_NO_DEVICE);
    assert_non_null(strstr(error.text, "no_such_device"));
    assert_int_equal(result.steps, 42);
}

/* --- in this process: last ------------------------------------------------------------------------------------ */

/* Stores the peaks of the device as if they had been measured. */
static void plant_peaks(const cleat_rates *peaks) {
    char path[TINY_PATH];
    cleat_device *opened = NULL;
    cleat_error error = {0};
    if (cleat_device_open(device(), &opened, &error)) fail_msg("%s", error.text);
    if (cleat_rates_path(opened, path, sizeof path, &error)) fail_msg("%s", error.text);
    strcpy(strrchr(path, '.'), ".peaks");
    cleat_rates_write(path, peaks);
    cleat_device_close(opened);
}

static bool warns(const cleat_bench_result *result, size_t i, const char *words) {
    char text[256];
    return cleat_bench_warning(result, i, text, sizeof text) && strstr(text, words);
}

/* With peaks from a busy machine: the share is not limited, and the peaks remain until they are measured again. */
static void a_share_above_one_is_said(void **state) {
    const cleat_rates slow_memory = {.flops = 1e15, .bytes = 1e6, .launch_seconds = 1e-3, .source = "measured"};
    const cleat_rates slow_arithmetic = {.flops = 1e6, .bytes = 1e15, .launch_seconds = 1e-3, .source = "measured"};
    char path[TINY_PATH], *before = getenv("CLEAT_CACHE_DIR");
    before = before ? strdup(before) : NULL;
    setenv("CLEAT_CACHE_DIR", tiny_path(*state, "peaks", path), 1);
    plant_peaks(&slow_memory);
    cleat_bench_request request = request_of("copy");
    request.own_process = false;
    cleat_bench_result copy = bench(&request);
    assert_true(copy.memory_bound && copy.share_of_peak > 10 && same(copy.peak.bytes, 1e6));
    assert_true(warns(&copy, 0, "cache"));
    plant_peaks(&slow_arithmetic);
    request.workload = "sgemm_256";
    cleat_bench_result product = bench(&request);
    assert_true(!product.memory_bound && product.share_of_peak > 10 && same(product.peak.flops, 1e6));
    assert_true(warns(&product, 0, "arithmetic"));
    /* so fast that only launches take time: a product is one launch, a step is 15 to 40 */
    const cleat_rates slow_launches = {.flops = 1e18, .bytes = 1e18, .launch_seconds = 1e-3, .source = "measured"};
    plant_peaks(&slow_launches);
    assert_true(fabs(bench(&request).predicted_ms - 1) < 1e-3);
    request.workload = "W4";
    const double launches = bench(&request).predicted_ms;
    assert_true(launches > 15 && launches < 40 && fabs(launches - round(launches)) < 1e-3);
    request.workload = "sgemm_256";
    request.remeasure_peak = true;
    product = bench(&request);
    assert_true(product.share_of_peak < 10 && product.peak.flops > 1e8 && product.peak.launch_seconds < 1e-3);
    before ? setenv("CLEAT_CACHE_DIR", before, 1) : unsetenv("CLEAT_CACHE_DIR");
    free(before);
}

/* Numbers of an H200 on 2026-11-27 whose measured peaks were too low. */
static void a_peak_below_half_of_the_card_file_is_said(void **state) {
    (void)state;
    cleat_card card;
    cleat_bench_result result = {.share_of_peak = 0.5,
                                 .peak = {.flops = 48.5e12, .matrix_flops = 134.9e12, .bytes = 6376e9}};
    assert_false(cleat_bench_warning(&result, 0, (char[8]){0}, 8)); /* no card file */
    assert_int_equal(cleat_card_open("h200", &card, NULL), CLEAT_OK);
    snprintf(card.facts.name, sizeof card.facts.name, "NVIDIA H200");
    cleat_bench_card_peak(&card.facts, &result.card_peak);
    assert_true(warns(&result, 0, "134.9 TFLOP/s of the matrix unit is 0.14 of the 989 in card file h200"));
    assert_false(warns(&result, 1, ""));
    result.peak = (cleat_rates){.flops = 33e12, .matrix_flops = 600e12, .bytes = 2300e9};
    result.share_of_peak = 1.5;
    assert_true(warns(&result, 0, "faster than") && warns(&result, 1, "33 TFLOP/s is 0.49 of the 67") &&
                warns(&result, 2, "2.3 TB/s is 0.48 of the 4.8") && !warns(&result, 3, ""));
    card.facts.kind = CLEAT_DEVICE_CPU;
    cleat_bench_card_peak(&card.facts, &result.card_peak);
    assert_false(warns(&result, 1, ""));
}

static void faults_leave_nothing_behind(void **state) {
    (void)state;
    const char *const workloads[] = {"sgemm_256_dw", "W4"};
    for (int i = 0; i < 2; ++i) {
        cleat_bench_request request = request_of(workloads[i]);
        request.own_process = false;
        bench(&request);
        int failed = 0;
        for (long n = 1; n < 400; n += 1 + n / 6) {
            cleat_bench_result result = {.steps = 42};
            cleat_error error = {0};
            cleat_fail_allocation(n);
            cleat_status status = cleat_bench(&request, &result, &error);
            cleat_fail_allocation(0);
            if (status && (status != CLEAT_ERR_MEMORY || result.steps != 42))
                fail_msg("allocation %ld: '%s', %s", n, cleat_status_text(status), error.text);
            failed += status != CLEAT_OK;
        }
        assert_true(failed > 10);
        bench(&request);
    }
}

int main(void) {
    const struct CMUnitTest pure[] = {
        cmocka_unit_test(spreads_are_exact),       cmocka_unit_test(ratios_are_exact),
        cmocka_unit_test(commands_are_understood), cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(names_are_distinct),      cmocka_unit_test(unknown_names_are_refused),
    };
    const struct CMUnitTest device_tests[] = {
        cmocka_unit_test(every_workload_runs),
        cmocka_unit_test(stats_are_those_of_the_work),
        cmocka_unit_test(steps_train),
        cmocka_unit_test(seconds_are_kept),
        cmocka_unit_test(turns_are_taken),
        cmocka_unit_test(wall_time_counts),
        cmocka_unit_test(failing_commands_are_errors),
        cmocka_unit_test(profiles_are_run),
        cmocka_unit_test(errors_come_back_from_the_child),
        cmocka_unit_test(a_share_above_one_is_said),
        cmocka_unit_test(a_peak_below_half_of_the_card_file_is_said),
        cmocka_unit_test(faults_leave_nothing_behind),
    };
    int failed = cmocka_run_group_tests(pure, NULL, NULL);
    if (failed) return failed;
    if (!device_is_there()) return 77;
    return cmocka_run_group_tests(device_tests, tiny_setup, tiny_teardown);
}
