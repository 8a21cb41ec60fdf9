/* examples.json of a run: RNA chains and their truth from the files, when the file is written, and failures
 * to write it. The other families are in test_families.c. */
/* ctest: device */
#include "tiny.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "core/files.h"
#include "core/memory.h"
#include "models/rna_metrics.h"

enum { MOST = 64 };

static cJSON *read_json(const tiny *t, const char *name) {
    char path[TINY_PATH];
    size_t size;
    char *text = tiny_read(tiny_path(t, name, path), &size);
    cJSON *json = cJSON_Parse(text);
    if (!json) fail_msg("not JSON: %s", text);
    assert_true(size < 200000);
    cleat_free(text);
    return json;
}

static cJSON *member(const cJSON *object, const char *name) {
    cJSON *found = cJSON_GetObjectItem(object, name);
    if (!found) fail_msg("there is no '%s'", name);
    return found;
}

static void assert_close(double got, double wanted, double tolerance) {
    if (!(fabs(got - wanted) <= tolerance)) fail_msg("%.9g, not %.9g", got, wanted);
}

/* --- chains --------------------------------------------------------------------------------------------------- */

typedef struct chain {
    int n;
    float truth[3 * MOST], prediction[3 * MOST], mask[MOST];
} chain;

static void read_points(const cJSON *array, float *points) {
    for (int i = 0; i < cJSON_GetArraySize(array); ++i) {
        const cJSON *point = cJSON_GetArrayItem(array, i);
        assert_int_equal(cJSON_GetArraySize(point), 3);
        for (int k = 0; k < 3; ++k) points[3 * i + k] = (float)cJSON_GetArrayItem(point, k)->valuedouble;
    }
}

/* The text after `id` and a separator in a line of the file. */
static const char *line_of(const char *file, const char *id, char separator) {
    char start[160];
    snprintf(start, sizeof start, "\n%s%c", id, separator);
    const char *at = strstr(file, start);
    if (!at) fail_msg("no line of %s", id);
    return at + strlen(start);
}

static void assert_is_chain_of_files(const cJSON *example, const chain *c, const char *sequences, const char *labels,
                                     int max_length) {
    const char *name = member(example, "name")->valuestring, *sequence = member(example, "sequence")->valuestring;
    const char *line = line_of(sequences, name, ',');
    const int all = (int)strcspn(line, ",");
    assert_int_equal(c->n, all < max_length ? all : max_length);
    assert_int_equal(strlen(sequence), c->n);
    assert_memory_equal(sequence, line, (size_t)c->n);
    for (int i = 0; i < c->n; ++i) {
        char id[128];
        double xyz[3];
        snprintf(id, sizeof id, "%s_%d", name, i + 1);
        assert_int_equal(sscanf(line_of(labels, id, ','), "%*c,%*d,%lf,%lf,%lf", &xyz[0], &xyz[1], &xyz[2]), 3);
        for (int k = 0; k < 3; ++k) assert_close(c->truth[3 * i + k], xyz[k], 0.0051);
    }
}

/* The RMSD after rotating the prediction about an axis through its centre. */
static double rmsd_after(const chain *c, int axis, double angle) {
    double centre[3] = {0}, sum = 0;
    for (int i = 0; i < 3 * c->n; ++i) centre[i % 3] += c->prediction[i] / c->n;
    for (int i = 0; i < c->n; ++i) {
        double p[3], q[3];
        for (int k = 0; k < 3; ++k) p[k] = c->prediction[3 * i + k] - centre[k];
        const int a = (axis + 1) % 3, b = (axis + 2) % 3;
        q[axis] = p[axis];
        q[a] = cos(angle) * p[a] - sin(angle) * p[b];
        q[b] = sin(angle) * p[a] + cos(angle) * p[b];
        for (int k = 0; k < 3; ++k) sum += pow(q[k] + centre[k] - c->truth[3 * i + k], 2);
    }
    return sqrt(sum / c->n);
}

/* The prediction is optimally superposed on the truth. */
static void assert_is_superposed(const cJSON *example, const chain *c) {
    const double score = member(example, "score")->valuedouble;
    assert_string_equal(member(example, "score_name")->valuestring, "rmsd");
    assert_close(rmsd_after(c, 0, 0), score, 0.01);
    for (int axis = 0; axis < 3; ++axis)
        for (int sign = -1; sign <= 1; sign += 2) assert_true(rmsd_after(c, axis, 0.1 * sign) > score);
}

/* Strand I of an A-form helix (data/rna/helix.h): a radius of 8.89 A, 32.7 degrees and 2.81 A per residue. */
static double helix_rmsd(const chain *c) {
    float x[3 * MOST];
    cleat_rna_metrics metrics;
    for (int i = 0; i < c->n; ++i) {
        const double turn = 32.7 * M_PI / 180 * i;
        const double residue[3] = {8.8895 * cos(turn), 8.8895 * sin(turn), 2.81 * i};
        for (int k = 0; k < 3; ++k) x[3 * i + k] = (float)residue[k];
    }
    assert_int_equal(cleat_rna_metrics_compute(x, c->truth, c->mask, c->n, &metrics, NULL), CLEAT_OK);
    return metrics.rmsd;
}

/* All validation chains are shown, so their mean scores are the metrics. */
static void check_chains(const tiny *t, const char *run, const char *const *set, int max_length) {
    char name[64], path[TINY_PATH];
    size_t size;
    const tiny_result result = tiny_train_to(CLEAT_OK, t, run, set, false, 0);
    char *sequences = tiny_read(tiny_path(t, "data/sequences.csv", path), &size);
    char *labels = tiny_read(tiny_path(t, "data/labels.csv", path), &size);
    snprintf(name, sizeof name, "%s/examples.json", run);
    cJSON *json = read_json(t, name), *examples = member(json, "examples"), *baseline = member(json, "baseline");
    const int count = cJSON_GetArraySize(examples);
    double mean = 0, helix_mean = 0;
    assert_true(count >= 2 && count < 12);
    for (int i = 0; i < count; ++i) {
        const cJSON *example = cJSON_GetArrayItem(examples, i);
        chain c = {.n = cJSON_GetArraySize(member(example, "truth"))};
        assert_string_equal(member(example, "kind")->valuestring, "rna");
        assert_true(c.n > 0 && c.n <= MOST);
        assert_int_equal(cJSON_GetArraySize(member(example, "prediction")), c.n);
        for (int r = 0; r < c.n; ++r) c.mask[r] = 1;
        read_points(member(example, "truth"), c.truth);
        read_points(member(example, "prediction"), c.prediction);
        assert_is_chain_of_files(example, &c, sequences, labels, max_length);
        assert_is_superposed(example, &c);
        mean += member(example, "score")->valuedouble / count;
        helix_mean += helix_rmsd(&c) / count;
    }
    assert_close(mean, cleat_metrics_get(&result.report.best, "rmsd"), 1e-4);
    assert_string_equal(member(baseline, "metric")->valuestring, "rmsd");
    assert_close(member(baseline, "value")->valuedouble, helix_mean, 0.01);
    assert_true(cJSON_IsFalse(member(baseline, "ascends")));
    assert_non_null(strstr(member(baseline, "text")->valuestring, "A-form"));
    assert_true(cJSON_IsNull(member(json, "confusion")));
    assert_int_equal(member(json, "step")->valueint, result.report.best_step);
    cJSON_Delete(json);
    cleat_free(sequences);
    cleat_free(labels);
}

static void chains_lie_on_the_truth(void **state) {
    check_chains(*state, "whole", SET("run.metric=rmsd"), 1000);
}
static void a_chain_that_is_cut_is_shown_cut(void **state) {
    check_chains(*state, "cut", SET("run.metric=rmsd", "data.max_length=14"), 14);
}

/* If the run's metric is the loss, the baseline is in the first metric. */
static void the_loss_has_no_baseline(void **state) {
    const tiny *t = *state;
    tiny_train_to(CLEAT_OK, t, "loss", SET("train.epochs=1"), false, 0);
    cJSON *json = read_json(t, "loss/examples.json");
    assert_string_equal(member(member(json, "baseline"), "metric")->valuestring, "rmsd");
    cJSON_Delete(json);
}

/* --- the file ------------------------------------------------------------------------------------------------- */

/* With an excessive learning rate, the last evaluation is seldom the best. */
static void the_file_is_that_of_the_best_evaluation(void **state) {
    const tiny *t = *state;
    static const char *const runs[] = {"best-1", "best-2", "best-3"}, *const seeds[] = {"run.seed=1", "run.seed=2",
                                                                                        "run.seed=3"};
    int earlier = 0;
    for (int i = 0; i < 3; ++i) {
        char name[64];
        const tiny_result result =
            tiny_train_to(CLEAT_OK, t, runs[i],
                          SET(seeds[i], "run.metric=rmsd", "train.epochs=5", "train.learning_rate=0.3",
                              "train.warmup_steps=0", "train.schedule=constant"),
                          false, 0);
        snprintf(name, sizeof name, "%s/examples.json", runs[i]);
        cJSON *json = read_json(t, name);
        assert_int_equal(member(json, "step")->valueint, result.report.best_step);
        cJSON_Delete(json);
        earlier += result.report.best_step < result.report.steps;
    }
    assert_true(earlier > 0);
}

typedef struct captured {
    int warnings;
    char text[1024];
} captured;

static void capture_warning(void *user, cleat_log_level level, const char *text) {
    captured *h = user;
    if (level != CLEAT_LOG_WARNING || !strstr(text, "examples")) return;
    ++h->warnings;
    snprintf(h->text, sizeof h->text, "%s", text);
}

/* A folder blocks the file. The run has the same bits as one with examples. */
static void a_file_that_cannot_be_written_is_a_warning(void **state) {
    const tiny *t = *state;
    char path[TINY_PATH];
    captured h = {0};
    assert_int_equal(cleat_folder_make(tiny_path(t, "barred/examples.json/inside", path), NULL), CLEAT_OK);
    cleat_set_log(capture_warning, &h, CLEAT_LOG_WARNING);
    tiny_result result = tiny_train(t, "barred", SET("train.epochs=1"), false, 0);
    cleat_set_log(NULL, NULL, CLEAT_LOG_WARNING);
    if (result.status) fail_msg("%s", result.error.text);
    assert_int_equal(h.warnings, 1);
    assert_non_null(strstr(h.text, "barred/examples.json"));
    tiny_train_to(CLEAT_OK, t, "free", SET("train.epochs=1"), false, 0);
    tiny_assert_same_run(t, "barred", "free");
}

/* An evaluation of the checkpoint shows the same examples as the run. */
static void an_evaluation_writes_them_too(void **state) {
    const tiny *t = *state;
    char run[TINY_PATH], path[TINY_PATH];
    cleat_metrics metrics;
    cleat_error error = {0};
    tiny_train_to(CLEAT_OK, t, "evaluated", NULL, false, 0);
    cleat_profile *profile = tiny_profile(t, NULL);
    tiny_path(t, "evaluated", run);
    if (cleat_evaluate_examples(profile, run, "val", tiny_path(t, "val.json", path), &metrics, &error))
        fail_msg("%s", error.text);
    cJSON *wanted = read_json(t, "evaluated/examples.json"), *found = read_json(t, "val.json");
    assert_int_equal(member(found, "step")->valueint, member(wanted, "step")->valueint);
    assert_int_equal(member(found, "epoch")->valueint, member(wanted, "epoch")->valueint);
    assert_close(member(member(found, "baseline"), "value")->valuedouble,
                 member(member(wanted, "baseline"), "value")->valuedouble, 0);
    const int count = cJSON_GetArraySize(member(wanted, "examples"));
    assert_int_equal(cJSON_GetArraySize(member(found, "examples")), count);
    for (int i = 0; i < count; ++i) {
        const cJSON *a = cJSON_GetArrayItem(member(wanted, "examples"), i);
        const cJSON *b = cJSON_GetArrayItem(member(found, "examples"), i);
        assert_string_equal(member(a, "name")->valuestring, member(b, "name")->valuestring);
        assert_close(member(a, "score")->valuedouble, member(b, "score")->valuedouble, 1e-3);
    }
    cJSON_Delete(wanted);
    cJSON_Delete(found);
    if (cleat_evaluate_examples(profile, run, "train", tiny_path(t, "train.json", path), &metrics, &error))
        fail_msg("%s", error.text);
    found = read_json(t, "train.json");
    assert_string_equal(member(found, "split")->valuestring, "train");
    const int shown =
        cJSON_GetArraySize(member(found, "examples")); /* six, and those of six others that are not worst */
    assert_true(shown > 6 && shown <= 12);
    for (int i = 0; i < shown; ++i)
        assert_string_equal(member(cJSON_GetArrayItem(member(found, "examples"), i), "choice")->valuestring,
                            i < 6 ? "worst" : "typical");
    cJSON_Delete(found);
    assert_int_equal(
        cleat_evaluate_examples(profile, run, "val", tiny_path(t, "no/folder/val.json", path), &metrics, &error),
        CLEAT_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "no/folder/val.json"));
    cleat_profile_destroy(profile);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_lie_on_the_truth),
        cmocka_unit_test(a_chain_that_is_cut_is_shown_cut),
        cmocka_unit_test(the_loss_has_no_baseline),
        cmocka_unit_test(the_file_is_that_of_the_best_evaluation),
        cmocka_unit_test(a_file_that_cannot_be_written_is_a_warning),
        cmocka_unit_test(an_evaluation_writes_them_too),
    };
    tiny_require_device();
    return cmocka_run_group_tests(tests, tiny_setup, tiny_teardown);
}
