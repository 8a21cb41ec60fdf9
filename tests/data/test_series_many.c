/* Many series in one file: each has the samples that it has in a separate file, whatever the order of the rows. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleat/data.h"
#include "core/files.h"
#include "core/memory.h"
#include "core/string.h"
#include "files.h"
#include "series_text.h"
#include "source_path.h"

enum { SERIES = 3, LOOKBACK = 5, HORIZON = 3 };
static const char *const names[SERIES] = {"north", "the \"south\"", "west"};
static const int lengths[SERIES] = {80, 50, 7};

static double value_of(int series, int row) {
    return 10 * (series + 1) + (series + 1) * sin(0.4 * row + series) + 0.1 * row;
}

static void add_row(char *text, int series, int row, bool named) {
    char time[CLEAT_TIME_TEXT], *at = text + strlen(text);
    cleat_time_text(INT64_C(1577836800) + (int64_t)(row + 5 * series) * 86400, time);
    at += sprintf(at, "%.10s,", time);
    if (named) at += sprintf(at, series == 1 ? "\"the \"\"south\"\"\"," : "%s,", names[series]);
    sprintf(at, "%.6f,%d\n", value_of(series, row), row % (4 + series));
}

/* All series: one after the other, or row by row. */
static const char *all_series(bool interleaved) {
    static char text[1 << 15];
    sprintf(text, "day,shop,v,w\n");
    if (interleaved)
        for (int row = 0; row < lengths[0]; ++row)
            for (int s = 0; s < SERIES; ++s) {
                if (row < lengths[s]) add_row(text, s, row, true);
            }
    else
        for (int s = 0; s < SERIES; ++s)
            for (int row = 0; row < lengths[s]; ++row) add_row(text, s, row, true);
    return text;
}

static const char *one_series(int series) {
    static char text[1 << 14];
    sprintf(text, "day,v,w\n");
    for (int row = 0; row < lengths[series]; ++row) add_row(text, series, row, false);
    return text;
}

static cleat_series_options options_of(bool many) {
    cleat_series_options options = cleat_series_defaults();
    options.lookback = LOOKBACK;
    options.horizon = HORIZON;
    options.season = 4;
    options.targets = "v";
    options.val_fraction = options.test_fraction = 0.2;
    options.anchor = CLEAT_SERIES_ANCHOR_LAST;
    if (many) options.series_column = "shop";
    return options;
}

typedef struct sample {
    float x[LOOKBACK * 2], target[HORIZON], last[1], season[HORIZON];
} sample;

static sample sample_of(const cleat_dataset *dataset, size_t index) {
    sample s = {{0}, {0}, {0}, {0}};
    void *slots[4] = {s.x, s.target, s.last, s.season};
    cleat_error error = {0};
    assert_int_equal(cleat_dataset_fill(dataset, index, LOOKBACK, NULL, slots, &error), CLEAT_OK);
    return s;
}

/* The sample of a series with the same last known row. */
static size_t find_sample(const cleat_dataset *dataset, const char *name, int64_t time) {
    for (size_t i = 0; i < cleat_dataset_count(dataset); ++i)
        if (strcmp(cleat_series_name(dataset, i), name) == 0 && cleat_series_time(dataset, i, 0) == time) return i;
    fail_msg("no sample of '%s'", name);
    return 0;
}

static void each_series_has_its_own_samples(void **state) {
    (void)state;
    for (int interleaved = 0; interleaved < 2; ++interleaved) {
        const cleat_series_options many = options_of(true), single = options_of(false);
        test_keep_log();
        cleat_dataset *all = test_must_open_series(all_series(interleaved), &many);
        assert_non_null(strstr(test_logged(), "1 of 3 series are shorter than a window (8 rows) and are left out"));
        const cleat_series_info info = cleat_series_describe(all);
        size_t found = 0;
        assert_int_equal(info.series, 3);
        assert_int_equal(info.short_series, 1);
        assert_int_equal(info.rows, 137);
        assert_int_equal(info.left_out, 0);
        for (int s = 0; s < 2; ++s) {
            cleat_dataset *one = test_must_open_series(one_series(s), &single);
            for (size_t i = 0; i < cleat_dataset_count(one); ++i, ++found) {
                const size_t at = find_sample(all, names[s], cleat_series_time(one, i, 0));
                const sample a = sample_of(all, at), b = sample_of(one, i);
                double mean, std;
                assert_memory_equal(&a, &b, sizeof a);
                assert_int_equal(cleat_dataset_split(all, at), cleat_dataset_split(one, i));
                cleat_series_scale(all, at, 0, &mean, &std);
                assert_true(mean == cleat_series_mean(one, 0) && std == cleat_series_std(one, 0));
                for (int64_t ahead = 0; ahead < 50; ++ahead)
                    assert_int_equal(cleat_series_time(all, at, ahead), cleat_series_time(one, i, ahead));
            }
            cleat_dataset_destroy(one);
        }
        assert_int_equal(cleat_dataset_count(all), found);
        cleat_dataset_destroy(all);
    }
}

/* The scales of the training hold for its series; a new one has the scales of all its rows. */
static void checkpoints_know_their_series(void **state) {
    (void)state;
    cleat_series_options options = options_of(true);
    cleat_error error = {0};
    char folder[512], text[4096] = "day,shop,v,w\n", time[CLEAT_TIME_TEXT];
    cleat_dataset *trained = test_must_open_series(all_series(true), &options);
    double mean, std, means[2];
    for (int s = 0; s < 2; ++s) {
        const int64_t first_known = INT64_C(1577836800) + (int64_t)(5 * s + LOOKBACK - 1) * 86400;
        cleat_series_scale(trained, find_sample(trained, names[s], first_known), 0, &means[s], &std);
    }
    snprintf(folder, sizeof folder, "%s", test_folder("many"));
    assert_int_equal(cleat_dataset_save(trained, folder, &error), CLEAT_OK);
    cleat_dataset_destroy(trained);
    for (int row = 0; row < 9; ++row) {
        add_row(text, 1, row, true);
        sprintf(text + strlen(text), "2021-12-%02d,east,%d,0\n", 20 + row, 2 * row);
    }
    options.fitted = folder;
    options.forecast = true;
    options.eval_stride = 100; /* the last window of each series */
    test_keep_log();
    cleat_dataset *dataset = test_must_open_series(text, &options);
    assert_non_null(strstr(test_logged(), "warning: "));
    assert_int_equal(cleat_dataset_count(dataset), 2);
    assert_string_equal(cleat_series_name(dataset, 0), names[1]);
    cleat_series_scale(dataset, 0, 0, &mean, &std);
    assert_true(mean == means[1]);
    assert_string_equal(cleat_series_name(dataset, 1), "east");
    cleat_series_scale(dataset, 1, 0, &mean, &std);
    assert_true(mean == 8 && fabs(std - sqrt(80.0 / 3)) < 1e-12); /* 0 2 ... 16 */
    assert_string_equal(cleat_time_text(cleat_series_time(dataset, 1, 4), time), "2022-01-01T00:00:00");
    assert_int_equal(cleat_series_known(dataset, 0), 0);
    cleat_dataset_destroy(dataset);
    /* A file whose state has been cut is refused. */
    char *state_text, path[600];
    size_t size;
    snprintf(path, sizeof path, "%s/series.csv", folder);
    assert_int_equal(cleat_file_read(path, &state_text, &size, &error), CLEAT_OK);
    *strrchr(state_text, '\n') = 0;
    strrchr(state_text, '\n')[1] = 0;
    test_write_text(path, state_text);
    cleat_free(state_text);
    assert_int_equal(test_open_series(text, &options, &dataset, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "scales of series are missing"));
}

/* Months that end, and months that begin, in one file; a series of one row. */
static void each_series_has_its_calendar(void **state) {
    (void)state;
    static const char text[] =
        "t,id,v\n2020-01-31,a,1\n2020-01-01,b,1\n2020-02-29,a,2\n2020-02-01,b,2\n2020-03-31,a,3\n"
        "2020-03-01,b,3\n2020-04-30,a,4\n2020-04-01,b,4\n2020-04-01,c,4\n";
    char time[CLEAT_TIME_TEXT];
    cleat_series_options options = test_tiny_series();
    options.series_column = "id";
    cleat_dataset *dataset = test_must_open_series(text, &options);
    assert_int_equal(cleat_dataset_count(dataset), 4);
    assert_string_equal(cleat_time_text(cleat_series_time(dataset, 1, 2), time), "2020-05-31T00:00:00");
    assert_string_equal(cleat_time_text(cleat_series_time(dataset, 3, 2), time), "2020-05-01T00:00:00");
    cleat_dataset_destroy(dataset);
    for (int rule = CLEAT_STEP_FIRST; rule <= CLEAT_STEP_AUTO; ++rule) {
        options.rule = (cleat_series_rule)rule;
        options.gaps = CLEAT_GAPS_ROWS;
        dataset = test_must_open_series(text, &options);
        assert_string_equal(cleat_time_text(cleat_series_time(dataset, 1, 2), time), "2020-05-31T00:00:00");
        cleat_dataset_destroy(dataset);
    }
}

/* Months that begin on other days of the month; a series of a row, which trains nothing. */
static void series_have_days_of_their_own(void **state) {
    (void)state;
    static const char text[] =
        "t,id,v\n2020-01-01,a,1\n2020-02-01,a,2\n2020-03-01,a,3\n2020-04-01,a,4\n2020-01-15,b,1\n2020-02-15,b,2\n"
        "2020-03-15,b,3\n2020-04-15,b,4\n2020-04-15,M\xC3\xBCller,4\n";
    static const char *const next[] = {"2020-05-01T00:00:00", "2020-05-15T00:00:00"};
    char time[CLEAT_TIME_TEXT];
    cleat_series_options options = test_tiny_series();
    options.series_column = "id";
    for (int gaps = CLEAT_GAPS_ERROR; gaps <= CLEAT_GAPS_SKIP; ++gaps) {
        options.rule = CLEAT_STEP_AUTO;
        options.gaps = (cleat_series_gaps)gaps;
        test_keep_log();
        cleat_dataset *dataset = test_must_open_series(text, &options);
        assert_non_null(strstr(test_logged(), "3 series, one model for the 2 with training windows"));
        assert_int_equal(cleat_dataset_count(dataset), 4);
        for (size_t s = 0; s < 2; ++s)
            assert_string_equal(cleat_time_text(cleat_series_time(dataset, 2 * s + 1, 2), time), next[s]);
        cleat_dataset_destroy(dataset);
    }
}

static void forecasts_name_the_rows_they_take(void **state) {
    (void)state;
    cleat_series_options options = options_of(true);
    cleat_dataset *dataset = test_must_open_series(all_series(true), &options);
    cleat_error error = {0};
    char folder[512], wanted[128];
    snprintf(folder, sizeof folder, "%s", test_folder("short"));
    assert_int_equal(cleat_dataset_save(dataset, folder, &error), CLEAT_OK);
    cleat_dataset_destroy(dataset);
    options.fitted = folder;
    options.forecast = true;
    snprintf(wanted, sizeof wanted, "a forecast takes %d consecutive rows", (int)LOOKBACK);
    assert_int_equal(test_open_series("day,shop,v,w\n2021-12-01,x,1,0\n2021-12-02,x,1,0\n", &options, &dataset, &error),
                     CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, wanted));
    assert_non_null(strstr(error.text, "(2 rows in all); give it more rows"));
    assert_null(strstr(error.text, "reduce lookback"));
}

static void refuses_with_the_name_of_the_series(void **state) {
    (void)state;
    static const struct {
        const char *text, *what;
    } cases[] = {
        {"t,id,v\n2020-01-01,a,1\n2020-01-01,b,1\n2020-01-02,a,2\n2020-01-01,b,3\n", "series 'b': "},
        {"t,id,v\n2020-01-01,a,1\n2020-01-02,a,1\n2020-01-01,b,2\n2020-01-04,b,3\n2020-01-05,b,3\n", "series 'b': "},
        {"t,id,v\n2020-01-01,a,1\n2020-01-02,,1\n2020-01-03,a,2\n", ":3: the row names no series"},
        {"t,id,v\n2020-01-01,a,1\n2020-01-02,a\n2020-01-03,a,2\n", ":3:"},
        {"t,id,v\n2020-01-01,a,1\n2020-01-02,a,x\n2020-01-03,a,2\n", "'v' is 'x'"},
        {"t,id,v\n2020-01-01,a,1\n", "1 rows after the header"},
        {"t,id,v\n", "0 rows after the header"},
        {"t,name,v\n2020-01-01,a,1\n", "data.series_column: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        cleat_series_options options = test_tiny_series();
        cleat_dataset *dataset = NULL;
        cleat_error error = {0};
        options.series_column = "id";
        const cleat_status status = test_open_series(cases[i].text, &options, &dataset, &error);
        if (!status || dataset || !strstr(error.text, cases[i].what)) fail_msg("case %zu: %s", i, error.text);
    }
    cleat_series_options options = options_of(true);
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    options.train_rows = 10;
    assert_int_equal(test_open_series(all_series(true), &options, &dataset, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "set data.train_rows=none"));
    options = options_of(true);
    options.features = "v,shop";
    assert_int_equal(test_open_series(all_series(true), &options, &dataset, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "'shop' is the series column"));
    /* Without the column: what the file may be. */
    options = options_of(false);
    options.features = "v,w";
    assert_int_equal(test_open_series(all_series(true), &options, &dataset, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "name their column: data.series_column"));
    /* A row for each series, as in M4. */
    options = test_tiny_series();
    assert_int_equal(
        test_open_series("V1,V2,V3,V4\nY1,5172,5133.5,5186\nY2,2070,2104,2394\n", &options, &dataset, &error),
        CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, ".melt(id_vars=\"NAME\""));
}

/* A short series still has targets in each part. */
static void parts_hold_a_horizon(void **state) {
    (void)state;
    cleat_series_options options = options_of(true);
    options.val_fraction = options.test_fraction = 0.02;
    options.eval_stride = 1;
    cleat_dataset *dataset = test_must_open_series(all_series(false), &options);
    const cleat_series_info info = cleat_series_describe(dataset);
    assert_int_equal(info.windows[CLEAT_SPLIT_VAL], 2);
    assert_int_equal(info.windows[CLEAT_SPLIT_TEST], 2);
    assert_int_equal(info.split_rows[CLEAT_SPLIT_VAL], 2 * HORIZON);
    cleat_dataset_destroy(dataset);
}

/* Prices of two kinds of oil, of different lengths and holidays, in one file and in two. */
static void real_prices(void **state) {
    (void)state;
    static const char *const files[2] = {"data/timeseries_oil/wti-daily.csv", "data/timeseries_oil/brent-daily.csv"};
    cleat_series_options options = cleat_series_defaults();
    cleat_string all = {0};
    cleat_error error = {0};
    cleat_series_info one, sum = {0};
    cleat_dataset *dataset = NULL;
    options.rule = CLEAT_STEP_AUTO;
    options.gaps = CLEAT_GAPS_FILL;
    cleat_string_add(&all, "kind,Date,Price\n");
    for (int f = 0; f < 2; ++f) {
        const char *path = shared_path(files[f]);
        char *text, *rest = NULL;
        size_t size;
        if (!cleat_file_exists(path)) {
            cleat_string_free(&all);
            skip();
        }
        assert_int_equal(cleat_file_read(path, &text, &size, &error), CLEAT_OK);
        strtok_r(text, "\r\n", &rest);
        for (char *line; (line = strtok_r(NULL, "\r\n", &rest));)
            cleat_string_add(&all, "%s,%s\n", f ? "Brent" : "WTI", line);
        cleat_free(text);
        if (cleat_series_open(path, &options, &dataset, &error) != CLEAT_OK) fail_msg("%s", error.text);
        one = cleat_series_describe(dataset);
        cleat_dataset_destroy(dataset);
        sum.rows += one.rows;
        sum.filled_rows += one.filled_rows;
        for (int split = 0; split < CLEAT_SPLITS; ++split) sum.windows[split] += one.windows[split];
    }
    options.series_column = "kind"; /* the first column: the time is the second one */
    dataset = test_must_open_series(all.data, &options);
    one = cleat_series_describe(dataset);
    assert_int_equal(one.rows, sum.rows);
    assert_int_equal(one.filled_rows, sum.filled_rows);
    for (int split = 0; split < CLEAT_SPLITS; ++split) assert_int_equal(one.windows[split], sum.windows[split]);
    cleat_dataset_destroy(dataset);
    cleat_string_free(&all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_series_has_its_own_samples),
        cmocka_unit_test(checkpoints_know_their_series),
        cmocka_unit_test(each_series_has_its_calendar),
        cmocka_unit_test(series_have_days_of_their_own),
        cmocka_unit_test(forecasts_name_the_rows_they_take),
        cmocka_unit_test(refuses_with_the_name_of_the_series),
        cmocka_unit_test(parts_hold_a_horizon),
        cmocka_unit_test(real_prices),
    };
    return cmocka_run_group_tests(tests, NULL, test_remove_all);
}
