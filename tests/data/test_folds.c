/* Folds of a cross-validation: every sample in one of them, classes divided evenly, samples of one place together. */
/* ctest: quick */
#include "data/dataset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SAMPLES = 240, FOLDS = 5, CLASSES = 3 };

static double places[SAMPLES];
static int32_t classes[SAMPLES];
static int folds[SAMPLES];                     /* of each sample; -1: none */
static int counts[FOLDS][CLASSES], all[FOLDS]; /* samples of a fold */

/* Sets the numbers above. */
static void divide(const int32_t *given) {
    memset(counts, 0, sizeof counts);
    memset(all, 0, sizeof all);
    for (int i = 0; i < SAMPLES; ++i) folds[i] = -1;
    for (int k = 0; k < FOLDS; ++k) {
        cleat_split splits[SAMPLES] = {CLEAT_SPLIT_TRAIN};
        const cleat_fold fold = {.count = FOLDS, .index = k + 1};
        assert_int_equal(cleat_hashed_fold(places, given, SAMPLES, &fold, splits, NULL), CLEAT_OK);
        for (int i = 0; i < SAMPLES; ++i) {
            if (splits[i] != CLEAT_SPLIT_VAL) continue;
            assert_int_equal(folds[i], -1);
            folds[i] = k;
            ++all[k];
            if (classes[i] >= 0) ++counts[k][classes[i]];
        }
    }
    for (int i = 0; i < SAMPLES; ++i) assert_in_range(folds[i], 0, FOLDS - 1);
}

static int spread_of_class(int class) {
    int least = SAMPLES, most = 0;
    for (int k = 0; k < FOLDS; ++k) {
        least = counts[k][class] < least ? counts[k][class] : least;
        most = counts[k][class] > most ? counts[k][class] : most;
    }
    return most - least;
}

/* Places by a hash of a name, of one for each `together` samples; class 2 is rare. */
static void fill(int together) {
    char name[32];
    for (int i = 0; i < SAMPLES; ++i) {
        const int length = snprintf(name, sizeof name, "p%d", i / together);
        places[i] = cleat_hashed_place(name, (size_t)length);
        classes[i] = i % 20 == 7 ? 2 : i % 7 < 3;
    }
}

static void each_class_is_divided_evenly(void **state) {
    (void)state;
    fill(1);
    divide(classes);
    for (int c = 0; c < CLASSES; ++c) assert_in_range(spread_of_class(c), 0, 1);
    for (int k = 0; k < FOLDS; ++k) assert_in_range(all[k], SAMPLES / FOLDS - 2, SAMPLES / FOLDS + 2);
}

static void samples_of_a_group_stay_together(void **state) {
    (void)state;
    fill(8); /* 30 groups of mixed classes */
    divide(classes);
    for (int i = 0; i < SAMPLES; ++i) assert_int_equal(folds[i], folds[i / 8 * 8]);
    for (int k = 0; k < FOLDS; ++k) assert_int_equal(all[k], SAMPLES / FOLDS);
    assert_in_range(spread_of_class(0), 0, 3);
    assert_in_range(spread_of_class(2), 0, 1);
}

/* As before classes were divided: parts of the order of places. */
static void unknown_classes_do_not_matter(void **state) {
    (void)state;
    fill(1);
    divide(NULL);
    for (int i = 0; i < SAMPLES; ++i) {
        int before = 0;
        for (int j = 0; j < SAMPLES; ++j) before += places[j] < places[i];
        assert_int_equal(folds[i], before * FOLDS / SAMPLES);
    }
    int was[SAMPLES];
    memcpy(was, folds, sizeof was);
    for (int i = 0; i < SAMPLES; ++i) classes[i] = -1;
    divide(classes);
    assert_memory_equal(was, folds, sizeof was);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_class_is_divided_evenly),
        cmocka_unit_test(samples_of_a_group_stay_together),
        cmocka_unit_test(unknown_classes_do_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
