/* Which samples of an evaluation become examples: the worst first, then others at even distances. */
/* ctest: quick */
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

#include "core/memory.h"
#include "platform/files.h"
#include "train/run_examples.h"

enum { MOST = 100, SLOTS = 8 };

static const char *id_of(const cleat_dataset *dataset, size_t sample) {
    static char id[16];
    (void)dataset;
    snprintf(id, sizeof id, "%zu", sample);
    return id;
}

static cleat_status add(const cleat_model *model, const cleat_evaluation *evaluated, size_t index, cleat_string *json,
                        cleat_error *error) {
    (void)model;
    (void)error;
    cleat_examples_begin(json, "class", &evaluated->predictions[index]);
    json_add(json, json_number("output", (double)evaluated->predictions[index].output[0]), json_close('}'));
    return CLEAT_OK;
}

static const cleat_model_examples shown = {.add = add};
static const cleat_model_class family = {.name = "fake", .examples = &shown};
static const cleat_dataset_class format = {.name = "fake", .id = id_of};

/* The examples of `count` samples 2, 4, 6, ... with these values of badness (NULL: of a family without any); the
 * output of a sample is its half. The caller deletes the document. */
static cJSON *examples_of(const double *badness, size_t count) {
    char path[] = "/tmp/cleat_run_examples_XXXXXX", text[100000] = "";
    const int file = mkstemp(path);
    const cleat_model model = {.type = &family};
    const cleat_dataset dataset = {.type = &format, .count = 2 * MOST};
    const cleat_run_examples_place place = {.split = "val"};
    uint32_t samples[MOST];
    static cleat_run_examples examples; /* used again, as in a training */
    assert_true(file >= 0);
    close(file);
    for (size_t i = 0; i < count; ++i) samples[i] = 2 * (uint32_t)i + 2;
    cleat_run_examples_begin(&examples, &model, &dataset, samples, count);
    for (size_t i = 0; i < count; i += SLOTS) {
        double here[SLOTS];
        float output[SLOTS];
        cleat_host_batch batch = {.batch = SLOTS, .dataset = &dataset, .samples = samples + i};
        for (; batch.count < SLOTS && i + (size_t)batch.count < count; ++batch.count) {
            output[batch.count] = (float)(i + (size_t)batch.count + 1);
            here[batch.count] = badness ? badness[i + (size_t)batch.count] : NAN;
        }
        batch.badness = badness ? here : NULL;
        cleat_run_examples_keep(&examples, &model, &batch, output, 1);
    }
    assert_int_equal(cleat_run_examples_collect(&examples, NULL, NULL), CLEAT_OK);
    cleat_run_examples_end(&examples, cleat_alloc(1, sizeof(double)));
    assert_int_equal(cleat_run_examples_write(&examples, &model, path, &place, NULL), CLEAT_OK);
    FILE *written = fopen(path, "rb");
    assert_non_null(written);
    assert_true(fread(text, 1, sizeof text - 1, written) > 0);
    fclose(written);
    unlink(path);
    cleat_run_examples_free(&examples);
    cJSON *json = cJSON_Parse(text);
    assert_non_null(json);
    return json;
}

/* wanted: the names in order; the first `worst` are chosen as the worst. */
static void expect(cJSON *json, const int *wanted, int count, int worst) {
    const cJSON *examples = cJSON_GetObjectItem(json, "examples");
    assert_int_equal(cJSON_GetArraySize(examples), count);
    for (int i = 0; i < count; ++i) {
        const cJSON *one = cJSON_GetArrayItem(examples, i);
        const int name = atoi(cJSON_GetObjectItem(one, "name")->valuestring);
        if (name != wanted[i]) fail_msg("example %d is sample %d, not %d", i, name, wanted[i]);
        assert_true(cJSON_GetObjectItem(one, "output")->valuedouble == name / 2);
        assert_string_equal(cJSON_GetObjectItem(one, "choice")->valuestring, i < worst ? "worst" : "typical");
    }
    cJSON_Delete(json);
}

static void the_worst_come_first(void **state) {
    (void)state;
    double badness[48];
    for (int i = 0; i < 48; ++i) badness[i] = i % 7 + 0.001 * i;
    badness[20] = INFINITY;
    /* 6.041, 6.034, 6.027, 6.013, 6.006 follow */
    expect(examples_of(badness, 48), (int[]){42, 84, 70, 56, 28, 14, 2, 18, 34, 50, 66, 82}, 12, 6);
}

/* Of equal ones, the first; samples without a truth are never among them. */
static void ties_go_to_the_first(void **state) {
    (void)state;
    double badness[48];
    for (int i = 0; i < 48; ++i) badness[i] = i % 4 == 3 ? 1 : i % 4 == 1 ? NAN : 0;
    expect(examples_of(badness, 48), (int[]){8, 16, 24, 32, 40, 48, 2, 18, 34, 50, 66, 82}, 12, 6);
}

static void rising_badness_replaces_all(void **state) {
    (void)state;
    double badness[20];
    for (int i = 0; i < 20; ++i) badness[i] = i;
    /* sample 34 is also one of those at even distances */
    expect(examples_of(badness, 20), (int[]){40, 38, 36, 34, 32, 30, 2, 8, 14, 22, 28}, 11, 6);
}

static void few_samples_are_all_shown(void **state) {
    (void)state;
    const double badness[9] = {0, 5, NAN, 0, 3, 0, 0, 0, 9};
    expect(examples_of(badness, 9), (int[]){18, 4, 10, 2, 8, 12, 6, 14, 16}, 9, 6);
    expect(examples_of(badness, 2), (int[]){4, 2}, 2, 2);
    expect(examples_of(badness + 2, 1), (int[]){2}, 1, 0); /* without a truth */
}

static void a_family_without_badness_shows_even_distances(void **state) {
    (void)state;
    expect(examples_of(NULL, 48), (int[]){2, 18, 34, 50, 66, 82}, 6, 0);
    expect(examples_of(NULL, 12), (int[]){2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24}, 12, 0);
    expect(examples_of(NULL, 0), NULL, 0, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_worst_come_first), cmocka_unit_test(ties_go_to_the_first),
                                       cmocka_unit_test(rising_badness_replaces_all),
                                       cmocka_unit_test(few_samples_are_all_shown),
                                       cmocka_unit_test(a_family_without_badness_shows_even_distances)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
