/* Labels and numbers of tables: cells, lists, unknown ones, errors with their line, what is fitted and saved. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/common/targets.h"
#include "files.h"

/* The last `held` samples are validation samples. */
typedef struct fake {
    cleat_dataset base;
    size_t held;
} fake;

static cleat_split split_of(const cleat_dataset *dataset, size_t sample) {
    const fake *f = (const fake *)dataset;
    return sample + f->held < dataset->count ? CLEAT_SPLIT_TRAIN : CLEAT_SPLIT_VAL;
}

static const cleat_dataset_class fake_class = {.name = "fake", .split = split_of};

/* Reads all rows of a table; the first error of a row is the result. */
static cleat_status read_table(const char *name, const char *text, const char *columns, cleat_targets *targets,
                               cleat_error *error) {
    const char *path = test_path(name);
    cleat_csv csv;
    bool more = true;
    test_write_text(path, text);
    cleat_status status = cleat_csv_open(path, &csv, error);
    if (status) return status;
    status = cleat_targets_find(targets, &csv, columns, error);
    while (!status && more) {
        status = cleat_csv_next(&csv, &more, error);
        if (!status && more) status = cleat_targets_add(targets, &csv, error);
    }
    cleat_csv_close(&csv);
    return status;
}

static cleat_status read_and_fit(cleat_problem problem, const char *text, const char *columns, size_t held,
                                 cleat_targets *targets, cleat_error *error) {
    const cleat_target_options options = {.problem = problem, .standardise = true};
    cleat_status status = cleat_targets_open(&options, "", "", targets, error);
    if (!status) status = read_table("targets.csv", text, columns, targets, error);
    const fake dataset = {.base = {.type = &fake_class, .count = targets->rows}, .held = held};
    return status ? status : cleat_targets_fit(targets, &dataset.base, "targets.csv", error);
}

static void expect(const cleat_targets *targets, size_t sample, const float *wanted, size_t known) {
    float values[8];
    assert_int_equal(cleat_targets_get(targets, sample, values), known);
    for (size_t k = 0; k < targets->count; ++k)
        if (isnan(wanted[k]))
            assert_true(isnan(values[k]));
        else
            assert_true(values[k] == wanted[k]);
}

static void numbers_are_standardised_by_the_training_part(void **state) {
    (void)state;
    cleat_targets targets;
    cleat_error error = {0};
    float slot[2];
    assert_int_equal(read_and_fit(CLEAT_REGRESSION,
                                  "a,size in mm,weight\nx,1,-5\nx,2.5,\nx,nan,7e1\nx,4,0\nx,1000,1000\n",
                                  "\"size in mm\" weight", 1, &targets, &error),
                     CLEAT_OK);
    assert_int_equal(targets.count, 2);
    assert_string_equal(targets.all[0].name, "size in mm");
    assert_int_equal(targets.all[0].samples, 3);
    /* numpy: mean and std of [1, 2.5, 4] and of [-5, 70, 0] */
    assert_true(fabs(targets.all[0].mean - 2.5) < 1e-12 && fabs(targets.all[0].std - 1.224744871391589) < 1e-12);
    assert_true(fabs(targets.all[1].mean - 21.666666666666668) < 1e-12);
    assert_true(fabs(targets.all[1].std - 34.23773097362356) < 1e-10);
    expect(&targets, 1, (const float[]){2.5f, NAN}, 1);
    expect(&targets, 4, (const float[]){1000, 1000}, 2);
    expect(&targets, 5, (const float[]){NAN, NAN}, 0); /* a sample to predict */
    cleat_targets_fill(&targets, 2, slot);
    assert_true(slot[0] == 0); /* unknown */
    assert_true(fabs((double)slot[1] - (70 - 21.666666666666668) / 34.23773097362356) < 1e-6);
    targets.options.standardise = false;
    cleat_targets_fill(&targets, 2, slot);
    assert_true(slot[1] == 70);
    cleat_targets_free(&targets);
}

static void a_comma_begins_decimals_if_it_separates_no_fields(void **state) {
    (void)state;
    cleat_targets targets;
    cleat_error error = {0};
    assert_int_equal(read_and_fit(CLEAT_REGRESSION, "a;y\nx;1,5\nx; -2,25 \nx;3\n", "y", 0, &targets, &error),
                     CLEAT_OK);
    expect(&targets, 0, (const float[]){1.5f}, 1);
    expect(&targets, 1, (const float[]){-2.25f}, 1);
    cleat_targets_free(&targets);
}

static void lists_have_any_number_of_labels(void **state) {
    (void)state;
    cleat_targets targets;
    cleat_error error = {0};
    assert_int_equal(
        read_and_fit(CLEAT_MULTI_LABEL,
                     "text,label\nx,10|science fiction\nx,\nx, 2 ; 10;2\nx,\"2, 10\"\nx,science fiction|\n", "label", 2,
                     &targets, &error),
        CLEAT_OK);
    assert_int_equal(targets.count, 3); /* sorted, numbers by value */
    assert_string_equal(targets.all[0].name, "2");
    assert_string_equal(targets.all[1].name, "10");
    assert_string_equal(targets.all[2].name, "science fiction");
    assert_int_equal(targets.all[1].samples, 2);
    expect(&targets, 0, (const float[]){0, 1, 1}, 3);
    expect(&targets, 1, (const float[]){0, 0, 0}, 3);
    expect(&targets, 2, (const float[]){1, 1, 0}, 3);
    expect(&targets, 3, (const float[]){1, 1, 0}, 3);
    expect(&targets, 4, (const float[]){0, 0, 1}, 3);
    cleat_targets_free(&targets);
}

/* As pandas writes a column of lists. */
static void lists_of_python_have_labels_in_quotes(void **state) {
    (void)state;
    cleat_targets targets;
    cleat_error error = {0};
    assert_int_equal(
        read_and_fit(CLEAT_MULTI_LABEL,
                     "text,tags\nx,\"['noise', 'price']\"\nx,[]\nx,\"['it\"\"s', \"\"noise\"\"]\"\nx,[noise]\n", "tags",
                     0, &targets, &error),
        CLEAT_OK);
    assert_int_equal(targets.count, 3);
    assert_string_equal(targets.all[0].name, "it\"s");
    expect(&targets, 0, (float[]){0, 1, 1}, 3);
    expect(&targets, 1, (float[]){0, 0, 0}, 3);
    expect(&targets, 2, (float[]){1, 1, 0}, 3);
    expect(&targets, 3, (float[]){0, 1, 0}, 3);
    cleat_targets_free(&targets);
}

static void the_separator_of_labels_can_be_set(void **state) {
    (void)state;
    const cleat_target_options options = {.problem = CLEAT_MULTI_LABEL, .separator = CLEAT_SEPARATOR_BLANK};
    cleat_targets targets;
    cleat_error error = {0};
    assert_int_equal(cleat_targets_open(&options, "b a", "", &targets, &error), CLEAT_OK);
    assert_int_equal(read_table("blanks.csv", "label\na  b\nb\n", "label", &targets, &error), CLEAT_OK);
    expect(&targets, 0, (const float[]){1, 1}, 2);
    expect(&targets, 1, (const float[]){1, 0}, 2); /* in the order of data.labels */
    assert_int_not_equal(read_table("unknown.csv", "label\na\na c\n", "label", &targets, &error), CLEAT_OK);
    assert_non_null(strstr(error.text, "unknown.csv:3: unknown label 'c'"));
    assert_int_equal(targets.rows, 3); /* without the row of the error */
    expect(&targets, 2, (const float[]){0, 1}, 2);
    cleat_targets_free(&targets);
}

static void columns_of_flags_are_labels(void **state) {
    (void)state;
    cleat_targets targets;
    cleat_error error = {0};
    assert_int_equal(read_and_fit(CLEAT_MULTI_LABEL, "rude,text,mild\n1,x,0.0\nTrue,x,\n0,x,false\n", "mild rude", 0,
                                  &targets, &error),
                     CLEAT_OK);
    assert_string_equal(targets.all[0].name, "mild");
    expect(&targets, 0, (const float[]){0, 1}, 2);
    expect(&targets, 1, (const float[]){NAN, 1}, 1);
    expect(&targets, 2, (const float[]){0, 0}, 2);
    cleat_targets_free(&targets);
}

static void bad_tables_are_refused_with_the_line(void **state) {
    (void)state;
    static const struct {
        cleat_problem problem;
        const char *text, *columns, *message;
    } rows[] = {
        {CLEAT_REGRESSION, "y\n1\n3 kg\n", "y", ":3: y is '3 kg', not a number"},
        {CLEAT_REGRESSION, "y,z\n1,1\n,\n", "y z", ":3: no target"},
        {CLEAT_REGRESSION, "y,z\n1,1\ninf,2\n", "y z", ":3: y is 'inf'"},
        {CLEAT_REGRESSION, "y,z\n1,1\n1e300,2\n", "y z", ":3: y is '1e300'"},
        {CLEAT_REGRESSION, "y,z\n1,1\n1,2\n", "y z", "'y' has the same value in all rows"},
        {CLEAT_REGRESSION, "y,z\n1,\n2,\n", "y z", "'z' is empty in all rows"},
        {CLEAT_REGRESSION, "y,z\n1,2\n", "y why", "no column 'why'"},
        {CLEAT_REGRESSION, "y,z\n1,2\n", "y y", "duplicate name 'y'"},
        {CLEAT_REGRESSION, "y,z\n1,2\n", "y \"z", "a quote that is not closed"},
        {CLEAT_MULTI_LABEL, "y,z\n1,0\n2,0\n", "y z", ":3: y is '2', not 0 or 1"},
        {CLEAT_MULTI_LABEL, "y,z\n1,0\n,\n", "y z", ":3: no target"},
        {CLEAT_MULTI_LABEL, "y,z\n,0\n|,0\n", "y", "no row has a label"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_targets targets;
        cleat_error error = {0};
        assert_int_not_equal(read_and_fit(rows[i].problem, rows[i].text, rows[i].columns, 0, &targets, &error),
                             CLEAT_OK);
        if (!strstr(error.text, rows[i].message)) fail_msg("'%s' lacks '%s'", error.text, rows[i].message);
        cleat_targets_free(&targets);
    }
}

static void the_fitted_state_is_read_back(void **state) {
    (void)state;
    const cleat_target_options options = {.problem = CLEAT_REGRESSION, .standardise = true};
    cleat_targets targets, again;
    cleat_error error = {0};
    char folder[1024];
    snprintf(folder, sizeof folder, "%s", test_folder("fitted"));
    assert_int_equal(read_and_fit(CLEAT_REGRESSION, "y,z\n1,0.1\n2,-3\n5,4\n", "y z", 1, &targets, &error), CLEAT_OK);
    targets.all[1].threshold = 0.123456789012345;
    assert_int_equal(cleat_targets_save(&targets, folder, &error), CLEAT_OK);
    assert_int_equal(cleat_targets_open(&options, "", folder, &again, &error), CLEAT_OK);
    assert_int_equal(again.count, 2);
    for (size_t k = 0; k < 2; ++k) {
        assert_string_equal(again.all[k].name, targets.all[k].name);
        assert_true(again.all[k].mean == targets.all[k].mean && again.all[k].std == targets.all[k].std);
        assert_true(again.all[k].threshold == targets.all[k].threshold);
        assert_true(again.all[k].samples == 2);
    }
    /* Other data: another name of the column of numbers, other values, the same scale. */
    assert_int_equal(read_table("other.csv", "new,z\n9,9\n", "new z", &again, &error), CLEAT_OK);
    const fake dataset = {.base = {.type = &fake_class, .count = 1}};
    assert_int_equal(cleat_targets_fit(&again, &dataset.base, "other.csv", &error), CLEAT_OK);
    assert_true(again.all[0].mean == targets.all[0].mean);
    cleat_targets_free(&again);
    assert_int_equal(cleat_targets_open(&options, "", folder, &again, &error), CLEAT_OK);
    assert_int_not_equal(read_table("one.csv", "new,z\n9,9\n", "new", &again, &error), CLEAT_OK);
    assert_non_null(strstr(error.text, "the model, or data.labels, has 2 targets"));
    cleat_targets_free(&again);
    char path[1100];
    snprintf(path, sizeof path, "%s/targets.json", folder);
    static const char *const broken[] = {
        "{}", "[", "{\"problem_type\":\"regression\",\"targets\":[]}",
        "{\"problem_type\":\"regression\",\"targets\":[{\"name\":\"y\",\"samples\":1,\"mean\":0,\"std\":0,"
        "\"threshold\":0.5}]}",
        "{\"problem_type\":\"regression\",\"targets\":[{\"name\":3,\"samples\":1,\"mean\":0,\"std\":1,"
        "\"threshold\":0.5}]}"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; ++i) {
        test_write_text(path, broken[i]);
        assert_int_not_equal(cleat_targets_open(&options, "", folder, &again, &error), CLEAT_OK);
        assert_non_null(strstr(error.text, "targets.json"));
        cleat_targets_free(&again);
    }
    cleat_targets_free(&targets);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_standardised_by_the_training_part),
        cmocka_unit_test(a_comma_begins_decimals_if_it_separates_no_fields),
        cmocka_unit_test(lists_have_any_number_of_labels),
        cmocka_unit_test(lists_of_python_have_labels_in_quotes),
        cmocka_unit_test(the_separator_of_labels_can_be_set),
        cmocka_unit_test(columns_of_flags_are_labels),
        cmocka_unit_test(bad_tables_are_refused_with_the_line),
        cmocka_unit_test(the_fitted_state_is_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, test_remove_all);
}
