/* The warnings about classes that are rare or absent from a split. */
/* ctest: device */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "data/dataset.h"
#include "models/classes.h"

enum { CLASSES = 8 };

/* The number of samples of each class in a split. */
static const int64_t *training, *validation;

static int64_t samples_of(const cleat_dataset *dataset, size_t index) {
    (void)dataset;
    return training[index];
}

static const char *names[CLASSES] = {"a", "b", "c", "d", "e", "f", "g", "h"};

static const char *name_of(const cleat_dataset *dataset, size_t index) {
    (void)dataset;
    return names[index];
}

/* The training split has the first samples, in class order. */
static int32_t label_of(const cleat_dataset *dataset, size_t sample) {
    (void)dataset;
    for (int split = 0; split < 2; ++split)
        for (int32_t c = 0; c < CLASSES; ++c) {
            const int64_t here = (split ? validation : training)[c];
            if (sample < (size_t)here) return c;
            sample -= (size_t)here;
        }
    return -1;
}

static cleat_split split_of(const cleat_dataset *dataset, size_t sample) {
    size_t all = 0;
    (void)dataset;
    for (int c = 0; c < CLASSES; ++c) all += (size_t)training[c];
    return sample < all ? CLEAT_SPLIT_TRAIN : CLEAT_SPLIT_VAL;
}

static char logged[4096];

static void keep(void *user, cleat_log_level level, const char *text) {
    (void)user;
    if (level == CLEAT_LOG_WARNING) snprintf(logged + strlen(logged), sizeof logged - strlen(logged), "%s\n", text);
}

static const char *warnings(const int64_t *train, const int64_t *val, cleat_weighting weighting) {
    static const cleat_class_source source = {name_of, samples_of, label_of};
    static const cleat_dataset_class type = {.split = split_of};
    cleat_class_info classes[CLASSES] = {{.weight = 0}};
    cleat_error error = {0};
    training = train;
    validation = val;
    cleat_dataset dataset = {.type = &type};
    for (int c = 0; c < CLASSES; ++c) dataset.count += (size_t)(train[c] + val[c]);
    cleat_classes_read(&source, &dataset, weighting, CLASSES, classes);
    logged[0] = 0;
    cleat_set_log(keep, NULL, CLEAT_LOG_WARNING);
    assert_int_equal(cleat_classes_warn(&source, &dataset, "DATA", weighting, CLASSES, classes, &error), CLEAT_OK);
    cleat_set_log(NULL, NULL, CLEAT_LOG_WARNING);
    return logged;
}

static const int64_t even[CLASSES] = {9, 1, 1, 1, 1, 1, 1, 1}, none[CLASSES] = {0};

static void even_classes_are_not_mentioned(void **state) {
    (void)state;
    assert_string_equal(warnings(even, even, CLEAT_WEIGHTING_NONE), "");
    assert_string_equal(warnings(even, none, CLEAT_WEIGHTING_NONE),
                        ""); /* a missing validation split is reported elsewhere */
}

static void a_dominant_class_is_named_with_the_setting(void **state) {
    (void)state;
    static const int64_t uneven[CLASSES] = {2, 80, 5, 5, 2, 2, 2, 2};
    const char *text = warnings(uneven, even, CLEAT_WEIGHTING_NONE);
    assert_non_null(strstr(text, "DATA: the classes are unbalanced: 'b' has 80 of 100 training samples, 'a' 2."));
    assert_non_null(strstr(text, "accuracy of 0.80"));
    assert_non_null(strstr(text, "loss.class_weights = balanced"));
    assert_string_equal(warnings(uneven, even, CLEAT_WEIGHTING_BALANCED), "");
}

static void absent_classes_are_named(void **state) {
    (void)state;
    static const int64_t train[CLASSES] = {4, 4, 4, 4, 4, 4, 4, 0}, val[CLASSES] = {0, 3, 0, 0, 0, 0, 0, 0};
    const char *text = warnings(train, val, CLEAT_WEIGHTING_NONE);
    assert_non_null(strstr(text, "DATA: 1 of 8 classes have no training samples ('h'): the model cannot"));
    assert_non_null(
        strstr(text, "DATA: 7 of 8 classes have no validation samples ('a', 'c', 'd', 'e', 'f' and 2 more): metrics"));
    assert_non_null(strstr(text, "data.val_fraction"));
}

static void names_that_are_alike_are_shown(void **state) {
    (void)state;
    static const struct {
        const char *first, *second;
        bool alike;
    } rows[] = {{"no", "NO", true},   {"no", "no ", true},  {" No", "no", true},
                {"no", "not", false}, {"no", "n o", false}, {"", "no", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        char wanted[200];
        names[2] = rows[i].first;
        names[5] = rows[i].second;
        snprintf(wanted, sizeof wanted, "DATA: '%s' and '%s' are two classes, but", rows[i].first, rows[i].second);
        const char *text = warnings(even, even, CLEAT_WEIGHTING_NONE);
        if (rows[i].alike ? !strstr(text, wanted) : *text != 0) fail_msg("%s", text);
    }
    names[2] = "c";
    names[5] = "f";
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(even_classes_are_not_mentioned),
        cmocka_unit_test(a_dominant_class_is_named_with_the_setting),
        cmocka_unit_test(absent_classes_are_named),
        cmocka_unit_test(names_that_are_alike_are_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
