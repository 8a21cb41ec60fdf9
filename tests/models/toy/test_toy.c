/* Follows the recipe for a new model family: toy.c, a line in list.c, toy.ini, and a row here. The rest of
 * the library has no code for the family; the same calls as for every family train, evaluate and predict with
 * it. */
/* ctest: device quick */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/files.h"
#include "core/memory.h"
#include "platform/files.h"
#include "profile/schema.h"
#include "source_path.h"
#include "train/tiny.h"

typedef struct row {
    const char *profile;
    double loss;   /* upper bound of its final value, relative to the first step */
    double metric; /* lower bound of the final run.metric */
} row;

static const row rows[] = {
    {"tests/models/toy/toy.ini", 0.05, 0.9},
};

static void write_data(const char *path) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 160; ++i) {
        const double x = (i * 37 % 160) / 80.0 - 1;
        fprintf(file, "%.6f %.6f\n", x, 10 * (0.3 + fabs(x)));
    }
    assert_int_equal(fclose(file), 0);
}

static cleat_profile *load(const tiny *t, const row *r) {
    cleat_profile *profile = NULL;
    cleat_error error;
    char data[TINY_PATH], path[TINY_PATH + 16], device[128];
    const char *selector = getenv("CLEAT_TEST_DEVICE");
    write_data(tiny_path(t, "lines.txt", data));
    snprintf(path, sizeof path, "data.path=%s", data);
    snprintf(device, sizeof device, "run.device=%s", selector ? selector : "auto");
    if (cleat_profile_load(source_path(r->profile), SET(path, device), 2, &profile, &error)) fail_msg("%s", error.text);
    return profile;
}

/* The loss in the first record of a training step. */
static double first_loss(const tiny *t) {
    char path[TINY_PATH];
    size_t size;
    char *log = tiny_read(tiny_path(t, "run/metrics.jsonl", path), &size);
    const char *step = strstr(log, "\"train\""), *loss = step ? strstr(step, "\"loss\":") : NULL;
    assert_non_null(loss);
    const double value = strtod(loss + strlen("\"loss\":"), NULL);
    cleat_free(log);
    return value;
}

static void it_learns(void **state) {
    const tiny *t = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char out[TINY_PATH], predictions[TINY_PATH], file[TINY_PATH];
        cleat_profile *profile = load(t, &rows[i]);
        const cleat_train_options options = {.out = tiny_path(t, "run", out)};
        cleat_train_report report;
        cleat_metrics metrics;
        cleat_error error;
        size_t count = 0, size;
        if (cleat_train(profile, &options, &report, &error)) fail_msg("%s", error.text);
        const double first = first_loss(t), last = cleat_metrics_get(&report.last, "loss");
        print_message("loss %g -> %g, %s %g\n", first, last, profile->run.metric, report.best_metric);
        assert_true(last <= rows[i].loss * first);
        assert_true(report.best_metric >= rows[i].metric);
        if (cleat_evaluate(profile, out, "all", &metrics, &error)) fail_msg("%s", error.text);
        assert_true(cleat_metrics_get(&metrics, profile->run.metric) >= rows[i].metric);
        if (cleat_predict(profile, out, profile->data->path, tiny_path(t, "said", predictions), &count, &error))
            fail_msg("%s", error.text);
        assert_int_equal(count, 160);
        assert_false(cleat_file_exists(tiny_path(t, "run/examples.json", file))); /* it shows no examples */
        char *said = tiny_read(tiny_path(t, "said/predictions.txt", file), &size);
        assert_true(fabs(strtod(said, NULL) - 13) < 2); /* x = -1: y = 10 (0.3 + 1) */
        cleat_free(said);
        cleat_profile_destroy(profile);
    }
}

static void assert_contains(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

/* Its settings have names, defaults, help and checks like those of the library's families. */
static void its_settings_are_settings(void **state) {
    cleat_profile *profile = load(*state, &rows[0]);
    cleat_error error = {0};
    char value[32], *text = NULL, *help = NULL;
    assert_int_equal(cleat_profile_get(profile, "model.hidden", value, sizeof value, NULL), CLEAT_OK);
    assert_string_equal(value, "16");
    assert_int_equal(cleat_profile_set(profile, "model.hidden=65", &error), CLEAT_ERR_PROFILE);
    assert_contains(error.text, "from 1 to 64"); /* of the toy; series_dense allows more */
    assert_int_equal(cleat_profile_set(profile, "model.hiden=3", &error), CLEAT_ERR_PROFILE);
    assert_contains(error.text, "did you mean 'hidden'?");
    assert_int_equal(cleat_profile_set(profile, "model.hidden=1", &error), CLEAT_OK);
    assert_int_equal(cleat_profile_check(profile, &error), CLEAT_OK);
    assert_int_equal(cleat_profile_set(profile, "model.dropout=0.5", &error), CLEAT_OK);
    assert_int_equal(cleat_profile_check(profile, &error), CLEAT_ERR_PROFILE);
    assert_contains(error.text, "--set model.dropout=0.5");
    assert_contains(error.text, "a single unit cannot be dropped");
    assert_int_equal(cleat_profile_set(profile, "model.dropout=0", &error), CLEAT_OK);
    assert_int_equal(cleat_profile_set(profile, "data.horizon=3", &error), CLEAT_OK); /* of series_dense */
    assert_int_equal(cleat_profile_check(profile, &error), CLEAT_ERR_PROFILE);
    assert_contains(error.text, "--set data.horizon=3: does not apply to model.type toy");
    assert_int_equal(cleat_profile_set(profile, "run.metric=f1", &error), CLEAT_OK);
    assert_int_equal(cleat_profile_dump(profile, &text, NULL), CLEAT_OK);
    assert_contains(text, "# Divisor of the second number of a line.\nscale = 10\n");
    assert_int_equal(cleat_profile_help(&help, NULL), CLEAT_OK);
    assert_contains(help, "Only where model.type is toy.");
    free(text);
    free(help);
    cleat_profile_destroy(profile);
}

static void its_metrics_are_known(void **state) {
    cleat_profile *profile = load(*state, &rows[0]);
    cleat_error error = {0};
    assert_true(cleat_profile_metric_ascends(profile));
    assert_int_equal(cleat_profile_set(profile, "run.metric=mea", NULL), CLEAT_OK);
    assert_int_equal(cleat_profile_check(profile, &error), CLEAT_ERR_PROFILE);
    assert_contains(error.text, "did you mean 'mae'?; its metrics are loss, mae, within_tenth");
    assert_int_equal(cleat_profile_set(profile, "run.metric=mae", NULL), CLEAT_OK);
    assert_int_equal(cleat_profile_check(profile, &error), CLEAT_OK);
    assert_false(cleat_profile_metric_ascends(profile));
    cleat_profile_destroy(profile);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_settings_are_settings),
        cmocka_unit_test(its_metrics_are_known),
        cmocka_unit_test(it_learns),
    };
    tiny_require_device();
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
