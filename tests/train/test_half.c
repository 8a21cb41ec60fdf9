/* Training in half precision: the loss scale settles, overflows change nothing, and a resumed run has the
 * same bits. */
/* ctest: device */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/memory.h"
#include "core/safetensors.h"
#include "tiny.h"

/* A scale at which the first gradients overflow, and a growth interval shorter than the run. */
#define HIGH "train.loss_scale=1073741824"
#define SOON "train.loss_scale_growth_interval=3"
#define SHORT "data.limit=12", "data.buckets=32", "data.max_length=32", "run.evaluate_every_epochs=none"
/* The other kind of head starts with zeros, which block all gradients in the first step. */
#define HEAD "model.head=absolute", "loss.coordinate=1"
static const char *const high[] = {SHORT, HEAD, "train.precision=f16", HIGH, SOON, "train.epochs=8", NULL};

/* Returns the values of `key` in the records of kind "train" [count], NaN if null or absent. */
static size_t read_metric(const tiny *t, const char *run, const char *key, double *values, size_t most) {
    char name[128], path[TINY_PATH], wanted[64];
    size_t size, count = 0;
    snprintf(name, sizeof name, "%s/metrics.jsonl", run);
    snprintf(wanted, sizeof wanted, "\"%s\":", key);
    char *text = tiny_read(tiny_path(t, name, path), &size);
    for (char *line = strtok(text, "\n"); line && count < most; line = strtok(NULL, "\n")) {
        if (!strstr(line, "\"kind\":\"train\"")) continue;
        const char *at = strstr(line, wanted);
        values[count++] = at && at[strlen(wanted)] != 'n' ? (double)strtof(at + strlen(wanted), NULL) : NAN;
    }
    cleat_free(text);
    return count;
}

static bool state_contains(const tiny *t, const char *run, const char *words) {
    char path[TINY_PATH];
    size_t size;
    char *text = tiny_read(tiny_last_file(t, run, "state.json", path), &size);
    bool found = strstr(text, words) != NULL;
    cleat_free(text);
    return found;
}

static void assert_no_moments(const tiny *t, const char *run) {
    char path[TINY_PATH];
    cleat_safetensors *file = NULL;
    assert_int_equal(cleat_safetensors_open(tiny_last_file(t, run, "optim.safetensors", path), &file, NULL), CLEAT_OK);
    for (size_t i = 0; i < cleat_safetensors_count(file); ++i) {
        const cleat_st_tensor *tensor = cleat_safetensors_at(file, i);
        if (!strstr(tensor->name, ".moment")) continue;
        for (int64_t k = 0; k < cleat_st_elements(tensor); ++k) assert_true(((const float *)tensor->data)[k] == 0);
    }
    cleat_safetensors_close(file);
}

/* Each step logs its scale: half the previous one after a skipped step, twice after three finite ones,
 * otherwise the same. */
static void overflow_is_skipped_and_training_goes_on(void **state) {
    enum { MOST = 512 };
    const tiny *t = *state;
    double loss_scale[MOST], norm[MOST], loss[MOST];
    int clean = 0, skipped = 0, grown = 0;
    tiny_result result = tiny_train_to(CLEAT_OK, t, "high", high, false, 0);
    size_t steps = read_metric(t, "high", "loss_scale", loss_scale, MOST);
    read_metric(t, "high", "grad_norm", norm, MOST);
    read_metric(t, "high", "loss", loss, MOST);
    assert_int_equal(steps, result.report.steps);
    assert_true(loss_scale[0] == 0x1p30 && !isfinite(norm[0]));
    for (size_t i = 0; i < steps; ++i) {
        double next = loss_scale[i];
        assert_true(isfinite(loss[i]));
        if (!isfinite(norm[i])) {
            ++skipped;
            clean = 0;
            next /= 2;
        } else if (++clean == 3) {
            ++grown;
            clean = 0;
            next *= 2;
        }
        if (i + 1 < steps) assert_true(loss_scale[i + 1] == next);
    }
    print_message("%zu steps, %d skipped, %d times grown, loss %g to %g\n", steps, skipped, grown, loss[0],
                  loss[steps - 1]);
    assert_int_equal(result.report.skipped_steps, skipped);
    assert_true(skipped > 1 && grown > 0 && skipped < (int)steps);
    assert_true(loss[steps - 1] < loss[0]);
}

/* Parameters and moments after one and after two skipped steps equal the initial ones. */
static void skipped_step_leaves_every_bit(void **state) {
    const tiny *t = *state;
    size_t count, other;
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "one", high, false, 1);
    assert_true(state_contains(t, "one", "\"skipped_steps\": 1,"));
    assert_no_moments(t, "one");
    float *one = tiny_parameters(t, "one", &count);
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "one", high, true, 1);
    assert_true(state_contains(t, "one", "\"skipped_steps\": 2,"));
    assert_true(state_contains(t, "one", "\"loss_scale\": {\"value\": 268435456,"));
    assert_no_moments(t, "one");
    float *two = tiny_parameters(t, "one", &other);
    assert_int_equal(count, other);
    assert_memory_equal(one, two, count * sizeof *one);
    tiny_result other_precision = tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "one",
                                                SET(SHORT, HEAD, "train.precision=bf16", "train.epochs=8"), true, 1);
    assert_int_equal(other_precision.report.skipped_steps, 2); /* of the whole run */
    assert_true(state_contains(t, "one", "\"skipped_steps\": 2,"));
    assert_false(state_contains(t, "one", "loss_scale"));
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "plain",
                  SET(SHORT, HEAD, "train.learning_rate=1e-12", "train.weight_decay=0", "train.epochs=8"), false, 1);
    float *start = tiny_parameters(t, "plain", &other);
    for (size_t i = 0; i < count; ++i) assert_true(fabsf(start[i] - one[i]) < 1e-8f);
    cleat_free(one);
    cleat_free(two);
    cleat_free(start);
}

/* A run that is stopped after every step, while the scale falls and grows, ends as an uninterrupted run. */
static void resumed_with_the_same_bits(void **state) {
    const tiny *t = *state;
    const char *const f16[] = {SHORT, HEAD, "train.precision=f16", "train.loss_scale=67108864", SOON, NULL};
    const char *const bf16[] = {SHORT, HEAD, "train.precision=bf16", NULL};
    const char *const *const sets[] = {f16, bf16};
    static const char *const whole[] = {"f16", "bf16"}, *const parts[] = {"f16_steps", "bf16_steps"};
    for (int k = 0; k < 2; ++k) {
        tiny_train_to(CLEAT_OK, t, whole[k], sets[k], false, 0);
        cleat_status status = CLEAT_ERR_INTERRUPTED;
        for (int steps = 0; status == CLEAT_ERR_INTERRUPTED; ++steps)
            status = tiny_train(t, parts[k], sets[k], steps > 0, k == 0 || steps < 2).status;
        assert_int_equal(status, CLEAT_OK);
        tiny_assert_same_run(t, whole[k], parts[k]);
    }
    assert_true(state_contains(t, "f16", "loss_scale"));
    assert_false(state_contains(t, "bf16", "loss_scale"));
}

/* Parameters and moments are f32 in every precision, so a run may change its precision. */
static void precision_may_change(void **state) {
    const tiny *t = *state;
    const char *set[] = {SHORT, "train.precision=f32", NULL};
    enum { PRECISION = 4 };
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "cross", set, false, 1);
    assert_false(state_contains(t, "cross", "loss_scale"));
    set[PRECISION] = "train.precision=f16";
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "cross", set, true, 1);
    assert_true(state_contains(t, "cross", "\"loss_scale\": {\"value\": 65536,"));
    set[PRECISION] = "train.precision=bf16";
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "cross", set, true, 1);
    assert_false(state_contains(t, "cross", "loss_scale"));
    set[PRECISION] = "train.precision=f32";
    tiny_result result = tiny_train_to(CLEAT_OK, t, "cross", set, true, 0);
    assert_int_equal(result.report.epochs, 2);
    assert_int_equal(result.report.skipped_steps, 0);
}

static void count_warning(void *user, cleat_log_level level, const char *text) {
    int *found = user;
    if (level == CLEAT_LOG_WARNING && strstr(text, "train.precision = tf32: ")) {
        ++*found;
        assert_non_null(strstr(text, "trains in f32: "));
    }
}

/* On a device without TF32 units, a TF32 run logs this once and runs in f32. */
static void tf32_without_a_unit_is_f32(void **state) {
    const tiny *t = *state;
    const char *set[] = {SHORT, "train.precision=f32", NULL};
    int warnings = 0;
    tiny_train_to(CLEAT_OK, t, "plain32", set, false, 0);
    set[4] = "train.precision=tf32";
    cleat_set_log(count_warning, &warnings, CLEAT_LOG_WARNING);
    const tiny_result result = tiny_train_to(CLEAT_OK, t, "rounded32", set, false, 0);
    cleat_set_log(NULL, NULL, CLEAT_LOG_WARNING);
    if (result.report.storage == CLEAT_TF32) return; /* this device has such units */
    assert_int_equal(warnings, 1);
    assert_int_equal(result.report.storage, CLEAT_F32);
    tiny_assert_same_run(t, "plain32", "rounded32");
}

/* The three precisions start with the same loss and the same norm of the first unscaled gradient. */
static void gradient_is_that_of_f32(void **state) {
    const tiny *t = *state;
    const char *const names[] = {"begin32", "begin16", "beginb"};
    const char *set[] = {SHORT, HEAD, NULL, NULL};
    const char *const precisions[] = {"train.precision=f32", "train.precision=f16", "train.precision=bf16"};
    double loss[3], norm[3];
    for (int k = 0; k < 3; ++k) {
        set[6] = precisions[k];
        tiny_train_to(CLEAT_ERR_INTERRUPTED, t, names[k], set, false, 1);
        assert_int_equal(read_metric(t, names[k], "loss", &loss[k], 1), 1);
        assert_int_equal(read_metric(t, names[k], "grad_norm", &norm[k], 1), 1);
        print_message("%s: loss %.7g, norm %.7g\n", names[k], loss[k], norm[k]);
    }
    for (int k = 1; k < 3; ++k) {
        assert_true(fabs(loss[k] / loss[0] - 1) < 0.01);
        assert_true(fabs(norm[k] / norm[0] - 1) < 0.03);
        assert_true(norm[k] != norm[0]);
    }
}

/* resolved.ini has the value of every `auto` of half precision; a run resumed with it has the same bits, and
 * can change precision. */
static void resolved_settings_go_on_with_the_same_bits(void **state) {
    const tiny *t = *state;
    const char *const set[] = {SHORT, HEAD, "train.precision=f16", NULL};
    char path[TINY_PATH], out[TINY_PATH];
    size_t size;
    cleat_error error = {0};
    cleat_train_report report;
    cleat_profile *profile = NULL;
    tiny_train_to(CLEAT_OK, t, "asked", set, false, 0);
    tiny_train_to(CLEAT_ERR_INTERRUPTED, t, "resolved", set, false, 1);
    char *text = tiny_read(tiny_path(t, "resolved/resolved.ini", path), &size);
    assert_non_null(strstr(text, "\nloss_scale = 65536\n"));
    cleat_free(text);
    if (cleat_profile_load(path, NULL, 0, &profile, &error) != CLEAT_OK) fail_msg("%s", error.text);
    cleat_train_options options = {.out = tiny_path(t, "resolved", out), .resume = true};
    if (cleat_train(profile, &options, &report, &error) != CLEAT_OK) fail_msg("%s", error.text);
    assert_int_equal(report.storage, CLEAT_F16);
    tiny_assert_same_run(t, "asked", "resolved");
    cleat_profile_destroy(profile);
    if (cleat_profile_load(path, SET("train.precision=f32"), 1, &profile, &error) != CLEAT_OK)
        fail_msg("%s", error.text);
    if (cleat_profile_check_training(profile, &error) != CLEAT_OK) fail_msg("%s", error.text);
    cleat_profile_destroy(profile);
}

static void settings_that_contradict_are_refused(void **state) {
    (void)state;
    static const char *const cases[][4] = {
        {"train.precision=f32", "train.loss_scale=1024", "--set train.loss_scale=auto resets it"},
        {"train.precision=bf16", SOON, "--set train.loss_scale_growth_interval=2000 resets it"},
        {"train.precision=tf32", "train.loss_scale=1024", "--set train.loss_scale=auto resets it"},
        {"train.precision=f16", "train.loss_scale=1000", "power of two"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        cleat_profile *profile = NULL;
        cleat_error error;
        assert_int_equal(cleat_profile_create(&profile, NULL), CLEAT_OK);
        assert_int_equal(cleat_profile_set(profile, "data.path=/tmp", NULL), CLEAT_OK);
        for (int k = 0; k < 2; ++k) assert_int_equal(cleat_profile_set(profile, cases[i][k], NULL), CLEAT_OK);
        /* Without training, only the value itself is validated. */
        assert_int_equal(cleat_profile_check(profile, &error), i < 3 ? CLEAT_OK : CLEAT_ERR_PROFILE);
        if (i < 3) assert_int_equal(cleat_profile_check_training(profile, &error), CLEAT_ERR_PROFILE);
        if (!strstr(error.text, cases[i][2])) fail_msg("'%s' does not contain '%s'", error.text, cases[i][2]);
        cleat_profile_destroy(profile);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradient_is_that_of_f32),
        cmocka_unit_test(overflow_is_skipped_and_training_goes_on),
        cmocka_unit_test(skipped_step_leaves_every_bit),
        cmocka_unit_test(resumed_with_the_same_bits),
        cmocka_unit_test(precision_may_change),
        cmocka_unit_test(tf32_without_a_unit_is_f32),
        cmocka_unit_test(resolved_settings_go_on_with_the_same_bits),
        cmocka_unit_test(settings_that_contradict_are_refused),
    };
    tiny_require_device();
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
