/* The points of a sweep, and the arithmetic of successive halving. draws.py has the drawn numbers. */
/* ctest: quick */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cleat/sweep.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__}), sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

static cleat_sweep *create(const char *const *axes, size_t n_axes, int64_t draws, uint64_t seed) {
    cleat_profile *base = NULL;
    cleat_sweep *sweep = NULL;
    cleat_error error;
    assert_int_equal(cleat_profile_create(&base, NULL), CLEAT_OK);
    if (cleat_sweep_create(base, axes, n_axes, draws, seed, &sweep, &error)) fail_msg("%s", error.text);
    cleat_profile_destroy(base);
    return sweep;
}

static void expect_failure(const char *const *axes, size_t n_axes, int64_t draws, const char *text) {
    cleat_profile *base = NULL;
    cleat_sweep *sweep = NULL;
    cleat_error error = {0};
    assert_int_equal(cleat_profile_create(&base, NULL), CLEAT_OK);
    assert_int_equal(cleat_sweep_create(base, axes, n_axes, draws, 1, &sweep, &error), CLEAT_ERR_ARGUMENT);
    if (!strstr(error.text, text)) fail_msg("'%s' does not say '%s'", error.text, text);
    assert_null(sweep);
    cleat_profile_destroy(base);
}

static void a_grid_has_every_combination_in_order(void **state) {
    static const char *const names[] = {"layers=1,learning_rate=1e-3", "layers=1,learning_rate=0.01",
                                        "layers=2,learning_rate=1e-3", "layers=2,learning_rate=0.01",
                                        "layers=4,learning_rate=1e-3", "layers=4,learning_rate=0.01"};
    cleat_sweep *sweep = create(WORDS("model.layers=1,2,4", "train.learning_rate=1e-3,0.01"), 0, 1);
    (void)state;
    assert_int_equal(sweep->count, 6);
    assert_int_equal(sweep->n_axes, 2);
    assert_string_equal(sweep->axes[1], "train.learning_rate");
    for (size_t i = 0; i < 6; ++i) assert_string_equal(sweep->points[i].name, names[i]);
    assert_string_equal(sweep->points[5].assignments[0], "model.layers=4");
    assert_string_equal(sweep->points[5].assignments[1], "train.learning_rate=0.01");
    cleat_sweep_free(sweep);
}

static void a_value_twice_is_one_point(void **state) {
    cleat_sweep *sweep = create(WORDS("model.layers=1,2,1"), 0, 1);
    (void)state;
    assert_int_equal(sweep->count, 2);
    cleat_sweep_free(sweep);
    sweep = create(WORDS("train.learning_rate=1e-3,2e-3,0.001,0.0010"), 0, 1);
    assert_int_equal(sweep->count, 2);
    assert_string_equal(sweep->points[0].assignments[0], "train.learning_rate=1e-3");
    cleat_sweep_free(sweep);
    sweep = create(WORDS("data.path=1,01"), 0, 1); /* names */
    assert_int_equal(sweep->count, 2);
    cleat_sweep_free(sweep);
}

static void quoted_values_have_commas(void **state) {
    cleat_sweep *sweep = create(WORDS("data.buckets=\"64,128\",'32 64',96"), 0, 1);
    (void)state;
    assert_int_equal(sweep->count, 3);
    assert_string_equal(sweep->points[0].assignments[0], "data.buckets=64,128");
    assert_string_equal(sweep->points[1].assignments[0], "data.buckets=32 64");
    assert_string_equal(sweep->points[2].assignments[0], "data.buckets=96");
    cleat_sweep_free(sweep);
}

/* Values that differ in characters that names lack, and long ones, still have names of their own. */
static void names_are_safe_and_unique(void **state) {
    char word[900];
    snprintf(word, sizeof word, "data.path=a/b,a b,a-b,../x,%0200d,%0201d", 0, 0);
    cleat_sweep *sweep = create(WORDS(word), 0, 1);
    (void)state;
    assert_int_equal(sweep->count, 6);
    for (size_t i = 0; i < sweep->count; ++i) {
        const char *name = sweep->points[i].name;
        assert_true(strlen(name) > 5 && strlen(name) < 120);
        assert_true(name[0] != '.' && !strchr(name, '/') && !strchr(name, ' '));
        for (size_t k = 0; k < i; ++k) assert_string_not_equal(name, sweep->points[k].name);
    }
    assert_string_equal(sweep->points[2].name, "path=a-b");
    assert_memory_equal(sweep->points[0].name, "path=a-b-", 9);
    cleat_sweep_free(sweep);
}

static const char *const mixed[] = {"train.learning_rate=1e-5..1e-2", "train.weight_decay=0..0.5", "model.layers=2..8",
                                    "run.seed=11,12,13"};

static void draws_are_those_of_philox(void **state) {
    static const char *const wanted[4][4] = {{"0.007308", "0.4192", "3", "12"},
                                             {"0.0003056", "0.2664", "2", "13"},
                                             {"0.006697", "0.3691", "3", "13"},
                                             {"0.0005994", "0.4752", "6", "12"}};
    cleat_sweep *sweep = create(mixed, 4, 4, 7);
    (void)state;
    assert_int_equal(sweep->count, 4);
    for (size_t i = 0; i < 4; ++i)
        for (size_t a = 0; a < 4; ++a)
            assert_string_equal(strchr(sweep->points[i].assignments[a], '=') + 1, wanted[i][a]);
    cleat_sweep_free(sweep);
}

/* Log-uniform: a third of the draws in each of the three decades; whole numbers: each as often. */
static void draws_are_spread_evenly(void **state) {
    enum { N = 3000 };
    size_t decades[3] = {0}, layers[7] = {0};
    cleat_sweep *sweep = create(mixed, 3, N, 1);
    (void)state;
    assert_int_equal(sweep->count, N);
    for (size_t i = 0; i < N; ++i) {
        const double rate = atof(strchr(sweep->points[i].assignments[0], '=') + 1);
        const int of = atoi(strchr(sweep->points[i].assignments[2], '=') + 1);
        assert_true(rate >= 1e-5 && rate <= 1e-2 && of >= 2 && of <= 8);
        ++decades[rate < 1e-4 ? 0 : rate < 1e-3 ? 1 : 2];
        ++layers[of - 2];
    }
    for (int d = 0; d < 3; ++d) assert_true(fabs((double)decades[d] - N / 3.0) < 5 * sqrt(N * 2 / 9.0));
    for (int l = 0; l < 7; ++l) assert_true(fabs((double)layers[l] - N / 7.0) < 5 * sqrt(N * 6 / 49.0));
    cleat_sweep_free(sweep);
}

static void more_draws_add_points(void **state) {
    cleat_sweep *few = create(mixed, 4, 5, 3), *many = create(mixed, 4, 9, 3), *other = create(mixed, 4, 5, 4);
    (void)state;
    for (size_t i = 0; i < 5; ++i) assert_string_equal(few->points[i].name, many->points[i].name);
    assert_string_not_equal(few->points[0].name, other->points[0].name);
    cleat_sweep_free(few);
    cleat_sweep_free(many);
    cleat_sweep_free(other);
}

/* Draws of lists end with all combinations, none of them twice. */
static void draws_of_lists_are_different(void **state) {
    cleat_sweep *sweep = create(WORDS("model.layers=1,2,3", "run.seed=1,2"), 50, 1);
    (void)state;
    assert_int_equal(sweep->count, 6);
    for (size_t i = 0; i < 6; ++i)
        for (size_t k = 0; k < i; ++k) assert_string_not_equal(sweep->points[i].name, sweep->points[k].name);
    cleat_sweep_free(sweep);
}

static void several_values_are_told_from_one(void **state) {
    (void)state;
    assert_true(cleat_sweep_is_axis("train.epochs=1,2"));
    assert_true(cleat_sweep_is_axis("train.learning_rate=1e-5..1"));
    assert_true(cleat_sweep_is_axis("data.buckets='1,2',3"));
    assert_false(cleat_sweep_is_axis("train.epochs=1"));
    assert_false(cleat_sweep_is_axis("data.path=../data"));
    assert_false(cleat_sweep_is_axis("data.path=a..b"));
    assert_false(cleat_sweep_is_axis("data.buckets=\"64,128\""));
    assert_false(cleat_sweep_is_axis("data.buckets=64 128"));
    assert_false(cleat_sweep_is_axis("model.init="));
    assert_false(cleat_sweep_is_axis("model.init"));
}

static void mistakes_are_named(void **state) {
    char word[16384] = "run.seed=0";
    (void)state;
    expect_failure(WORDS("train.learning_rate=1e-5..1e-2"), 0, "--random");
    expect_failure(WORDS("train.learning_rate=1e-2..1e-5"), 3, "ascend");
    expect_failure(WORDS("model.layers=2.2..2.8"), 3, "ascend");
    expect_failure(WORDS("model.layers=1,2,"), 0, "empty");
    expect_failure(WORDS("model.layers=,1"), 0, "empty");
    expect_failure(WORDS("data.buckets='1,2"), 0, "quote");
    expect_failure(WORDS("data.buckets='1,2'3"), 0, "quote");
    expect_failure(WORDS("layers=1,2"), 0, "section.key");
    expect_failure(WORDS("model.layers=1,2", "model.layers=3,4"), 0, "twice");
    expect_failure(WORDS("run.metric=loss,rmsd"), 0, "run.metric");
    expect_failure(WORDS("run.out=a,b"), 0, "run.out");
    for (int i = 1; i < 257; ++i) snprintf(word + strlen(word), sizeof word - strlen(word), ",%d", i);
    expect_failure(WORDS(word), 0, "more than 256");
    *strrchr(word, ',') = 0;
    char other[16384];
    snprintf(other, sizeof other, "data.limit%s", strchr(word, '='));
    expect_failure(WORDS(word, other), 0, "more than 10000");
}

static void expect_rungs(size_t runs, int64_t epochs, int64_t every, int64_t ratio, const char *wanted) {
    int64_t rungs[CLEAT_SWEEP_RUNGS];
    char text[256] = "";
    const size_t count = cleat_sweep_rungs(runs, epochs, every, ratio, rungs);
    for (size_t i = 0; i < count; ++i)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld", i ? " " : "", (long long)rungs[i]);
    assert_string_equal(text, wanted);
}

/* n runs, R epochs, eta: the brackets of the paper have rungs R / eta^k, k = floor(log_eta(n)) ... 0. */
static void rungs_are_those_of_successive_halving(void **state) {
    (void)state;
    expect_rungs(81, 81, 1, 3, "1 3 9 27 81");
    expect_rungs(27, 81, 1, 3, "3 9 27 81");
    expect_rungs(80, 81, 1, 3, "3 9 27 81");
    expect_rungs(8, 16, 1, 2, "2 4 8 16");
    expect_rungs(9, 10, 1, 3, "2 4 10"); /* rounded up */
    expect_rungs(9, 10, 3, 3, "3 6 10"); /* to evaluations */
    expect_rungs(9, 10, 5, 3, "5 10");   /* equal ones once */
    expect_rungs(9, 10, 20, 3, "10");    /* no evaluation before the end */
    expect_rungs(2, 10, 1, 3, "10");
    expect_rungs(1, 1, 1, 2, "1");
    expect_rungs(10000, 1000000, 1, 2, "123 245 489 977 1954 3907 7813 15625 31250 62500 125000 250000 500000 1000000");
}

static void the_better_runs_stay(void **state) {
    const double values[7] = {3, 1, NAN, 1, 2, 0.5, INFINITY};
    bool is_in[7] = {true, true, true, true, true, false, true};
    (void)state;
    cleat_sweep_keep(values, 7, false, 2, is_in); /* 6 are in: 3 stay; equal ones in their order */
    for (int i = 0; i < 7; ++i) assert_int_equal(is_in[i], i == 1 || i == 3 || i == 4);
    cleat_sweep_keep(values, 7, true, 3, is_in);
    for (int i = 0; i < 7; ++i) assert_int_equal(is_in[i], i == 4);
    cleat_sweep_keep(values, 7, true, 3, is_in); /* one stays in any case */
    assert_true(is_in[4]);
    bool bad[2] = {true, true};
    cleat_sweep_keep((const double[]){NAN, NAN}, 2, true, 2, bad);
    assert_false(bad[0] || bad[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_grid_has_every_combination_in_order),
                                       cmocka_unit_test(a_value_twice_is_one_point),
                                       cmocka_unit_test(quoted_values_have_commas),
                                       cmocka_unit_test(names_are_safe_and_unique),
                                       cmocka_unit_test(draws_are_those_of_philox),
                                       cmocka_unit_test(draws_are_spread_evenly),
                                       cmocka_unit_test(more_draws_add_points),
                                       cmocka_unit_test(draws_of_lists_are_different),
                                       cmocka_unit_test(several_values_are_told_from_one),
                                       cmocka_unit_test(mistakes_are_named),
                                       cmocka_unit_test(rungs_are_those_of_successive_halving),
                                       cmocka_unit_test(the_better_runs_stay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
