/* A recorded training run: the right steps, the same bits, consistent tables, and device and host restored. */
/* ctest: device */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "core/files.h"
#include "core/memory.h"
#include "device/device.h"
#include "train/tiny.h"
#include "train/trainer.h"

#define SIZE "train.epochs=3", "train.effective_batch_size=2"

static bool has_file(const tiny *t, const char *name) {
    char path[TINY_PATH];
    return cleat_file_exists(tiny_path(t, name, path));
}

static cJSON *read_summary(const tiny *t, const char *name) {
    char path[TINY_PATH];
    size_t size;
    char *text = tiny_read(tiny_path(t, name, path), &size);
    cJSON *json = cJSON_Parse(text);
    if (!json) fail_msg("%s is not JSON", name);
    cleat_free(text);
    return json;
}

static double number(const cJSON *json, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, name);
    if (!cJSON_IsNumber(item)) fail_msg("'%s' is not a number", name);
    return item->valuedouble;
}

/* --- tests --- */

static void test_steps_and_bits(void **state) {
    const tiny *t = *state;
    tiny_train_to(CLEAT_OK, t, "plain", SET(SIZE), false, 0);
    tiny_result result =
        tiny_train_to(CLEAT_OK, t, "recorded", SET(SIZE, "run.trace=wait=1,warmup=1,active=2,repeat=2"), false, 0);
    assert_int_equal(result.report.traces, 2);
    assert_true(has_file(t, "recorded/profile-S000003.txt"));
    assert_true(has_file(t, "recorded/profile-S000007.trace.json.gz"));
    assert_false(has_file(t, "recorded/profile-S000011.txt"));
    for (int cycle = 0; cycle < 2; ++cycle) {
        cJSON *summary = read_summary(t, cycle ? "recorded/profile-S000007.json" : "recorded/profile-S000003.json");
        assert_int_equal(number(summary, "step"), cycle ? 7 : 3);
        assert_int_equal(number(summary, "steps"), 2);
        cJSON_Delete(summary);
    }
    tiny_assert_same_run(t, "plain", "recorded");
    assert_false(has_file(t, "plain/profile-S000003.txt"));
}

/* Epochs end within the cycle: evaluations and checkpoints between its steps are not recorded. */
static void test_sums(void **state) {
    const tiny *t = *state;
    tiny_train_to(CLEAT_OK, t, "long", SET("train.epochs=3", "run.trace=wait=0,warmup=1,active=6"), false, 0);
    cJSON *summary = read_summary(t, "long/profile-S000002.json");
    const cJSON *phases = cJSON_GetObjectItemCaseSensitive(summary, "phases"), *phase, *row;
    double step = number(summary, "profiled_step_seconds"), sum = 0, kernels = 0, ops = 0, calls = 0;
    cJSON_ArrayForEach(phase, phases) sum += phase->valuedouble;
    assert_true(step > 0 && fabs(sum - step) <= 1e-6 * step);
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(summary, "kernels")) {
        kernels += number(row, "seconds");
        calls += number(row, "calls");
    }
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(summary, "ops")) ops += number(row, "seconds");
    double rest = number(phases, "idle") + number(phases, "copies");
    assert_true(fabs(kernels + rest - step) <= 0.01 * step);
    assert_true(fabs(kernels - ops) <= 1e-6 * step);
    assert_true(calls > 20);
    assert_true(number(phases, "forward") > 0 && number(phases, "backward") > 0 && number(phases, "update") > 0);
    const cJSON *memory = cJSON_GetObjectItemCaseSensitive(summary, "memory"), *point;
    assert_true(number(memory, "step_peak") >= number(memory, "forward_peak"));
    assert_true(number(memory, "planned") > number(memory, "step_peak"));
    double most = 0;
    cJSON_ArrayForEach(point, cJSON_GetObjectItemCaseSensitive(memory, "timeline")) most =
        fmax(most, cJSON_GetArrayItem(point, 1)->valuedouble + cJSON_GetArrayItem(point, 2)->valuedouble);
    assert_true(most == number(memory, "step_peak"));
    cJSON_Delete(summary);
}

/* The run ends in the middle of a cycle: no files, and no failure. */
static void test_short_run(void **state) {
    const tiny *t = *state;
    tiny_result result = tiny_train_to(CLEAT_OK, t, "short", SET("run.trace=wait=0,warmup=1,active=900"), false, 0);
    assert_int_equal(result.report.traces, 0);
    assert_false(has_file(t, "short/profile-S000002.txt"));
    tiny_result stopped =
        tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "stopped", SET("run.trace=wait=0,warmup=0,active=3"), false, 1);
    assert_int_equal(stopped.report.traces, 0);
    stopped = tiny_train_to(CLEAT_OK, t, "stopped", SET("run.trace=wait=0,warmup=0,active=1"), true, 0);
    assert_int_equal(stopped.report.traces, 1);
    assert_true(has_file(t, "stopped/profile-S000002.json")); /* numbered in the run, not in the process */
}

static void test_only_the_profile(void **state) {
    const tiny *t = *state;
    char out[TINY_PATH];
    cleat_error error;
    cleat_train_report report;
    cleat_profile *profile = tiny_profile(t, SET("run.trace=wait=1,warmup=0,active=2", "data.path=/nowhere"));
    cleat_train_options options = {.out = tiny_path(t, "only", out), .trace_only = true};
    if (cleat_train(profile, &options, &report, &error)) fail_msg("%s", error.text);
    assert_int_equal(report.steps, 3);
    assert_int_equal(report.traces, 1);
    assert_false(has_file(t, "only/last"));
    options.trace_only = false; /* only a run that profiles uses synthetic data */
    assert_int_not_equal(cleat_train(profile, &options, &report, &error), CLEAT_OK);
    cleat_profile_destroy(profile);
}

static void refuse_times(void *user, cleat_device *device) {
    (void)user;
    device->fail_timed_queue = true;
}

/* On a device without command times, training continues without a profile; a run that only profiles ends. */
static void test_device_without_times(void **state) {
    const tiny *t = *state;
    char out[TINY_PATH];
    cleat_error error;
    cleat_train_report report;
    cleat_profile *profile = tiny_profile(t, SET(SIZE, "run.trace=wait=1,warmup=1,active=2,repeat=2"));
    cleat_train_options options = {.out = tiny_path(t, "untimed", out)};
    if (cleat_train_with_callback(profile, &options, refuse_times, NULL, &report, &error)) fail_msg("%s", error.text);
    assert_int_equal(report.traces, 0);
    tiny_assert_same_run(t, "plain", "untimed");
    options = (cleat_train_options){.out = tiny_path(t, "untimed-only", out), .trace_only = true};
    if (cleat_train_with_callback(profile, &options, refuse_times, NULL, &report, &error)) fail_msg("%s", error.text);
    assert_int_equal(report.traces, 0);
    assert_int_equal(report.steps, 2);
    cleat_profile_destroy(profile);
}

static void test_refusal(void **state) {
    const tiny *t = *state;
    tiny_result result = tiny_train(t, "refused", SET("run.trace=wait=1,activ=2"), false, 0);
    assert_int_equal(result.status, CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(result.error.text, "run.trace"));
    assert_non_null(strstr(result.error.text, "'activ' at character 8"));
    assert_false(has_file(t, "refused/resolved.ini"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps_and_bits),
                                       cmocka_unit_test(test_sums),
                                       cmocka_unit_test(test_short_run),
                                       cmocka_unit_test(test_only_the_profile),
                                       cmocka_unit_test(test_device_without_times),
                                       cmocka_unit_test(test_refusal)};
    tiny_require_device();
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
