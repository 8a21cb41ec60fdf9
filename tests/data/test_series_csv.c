/* Time series files: accepted files, messages of refusals, and the effect of each policy for gaps and missing
 * cells. */
/* ctest: quick no-memcheck */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cleat/data.h"
#include "core/files.h"
#include "core/memory.h"
#include "core/string.h"
#include "data/common/csv_stream.h"
#include "data/series/series.h"
#include "files.h"
#include "series_text.h"

/* --- refusals ------------------------------------------------------------------------------------------------- */

#define HEAD "t,a,b\n"
#define R1 "2020-01-01,1,2\n"
#define R2 "2020-01-02,3,4\n"
#define R3 "2020-01-03,5,6\n"

static void refuses_bad_files(void **state) {
    (void)state;
    static const struct {
        const char *text, *where, *what, *mend;
    } rows[] = {
        {"", ":1:", "empty", ""},
        {HEAD, ":1:", "0 rows", "requires more"},
        {HEAD R1, ":2:", "1 rows", "requires more"},
        {R1 R2 R3, ":1:", "begins with the time '2020-01-01'", "add a header"},
        {"t;a\n2020-01-01;1,5\n2020-01-02;1.25\n", ":3:", "'1.25', not a finite number with a decimal comma", "use"},
        {"t;a\n2020-01-01;1.5\n2020-01-02;1,25\n", ":3:", "with a decimal point, as those before", "use"},
        {"t;a\n2020-01-01;1.234,5\n2020-01-02;1.5\n", ":3:", "'1.5', not a finite number with a decimal comma", "use"},
        {"t;a\n2020-01-01;1.234\n2020-01-02;1,234\n", "in.csv:", "which mark is between thousands", "write"},
        {"t\ta\n2020-01-01\t1,5\n", ":2:", "'1,5', not a finite number;", "decimal point"},
        {"t\n2020-01-01\n", ":1:", "no column besides the time", ""},
        {"t,a,a\n2020-01-01,1,2\n", ":1:", "both named 'a'", "rename"},
        {"t,a,\n2020-01-01,1,2\n", ":1:", "column 3 has no name", "set data.features"},
        {HEAD R2 R1, ":3:", "the time decreases from 2020-01-02T00:00:00 to 2020-01-01", "sort the rows"},
        {HEAD "2021-10-31 01:00,1,2\n2021-10-31 02:00,1,2\n2021-10-31 02:00,1,2\n", ":4:", "duplicate time",
         "an hour repeated by daylight saving"},
        {HEAD R1 R1, ":3:", "duplicate time 2020-01-01T00:00:00", "remove one"},
        {HEAD R1 R2 "2020-01-04,5,6\n", ":4:", "2 days after that of 2020-01-02", "complete the file"},
        {HEAD R1 R2 "2020-01-02T12:00:00,5,6\n", ":4:", "43200 s after", "set data.gaps to"},
        {HEAD R1 "2020-01-02T00:00:00Z,3,4\n", ":3:", "with Z or an offset, but the first row has a time without",
         "the same format"},
        {HEAD R1 "1577923200,3,4\n", ":3:", "is Unix seconds", "the same format"},
        {HEAD "01/02/2020,1,2\n" R2, ":2:", "'01/02/2020' is ambiguous in the order of day", "write YYYY-MM-DD"},
        {HEAD R1 ",3,4\n", ":3:", "the time '' is empty", "requires a time"},
        {HEAD R1 "2020-01-02,,4\n" R3, ":3:", "'a' has no value", "fill or skip"},
        {HEAD R1 "2020-01-02,3,NaN\n" R3, ":3:", "'b' has no value", "fill or skip"},
        {HEAD R1 "2020-01-02,3,two\n" R3, ":3:", "'b' is 'two', not a finite number", "remove the column"},
        {HEAD R1 "2020-01-02,3,inf\n" R3, ":3:", "'b' is 'inf', not a finite number", ""},
        {HEAD R1 "2020-01-02,3,\"4,5\"\n" R3, ":3:", "'b' is '4,5', not a finite", "decimal point"},
        {HEAD R1 "2020-01-02,3,1e38\n" R3, ":3:", "'b' is 1e+38, too large", "unit"},
        {HEAD R1 "2020-01-02,3\n" R3, ":3:", "2 fields, but the header has 3", "truncated"},
        {HEAD R1 "2020-01-02,3,4,5\n" R3, ":3:", "4 fields", "comma"},
        {HEAD R1 "2020-01-02,\"3,4\n" R3, ":3:", "never closed", "closing"},
        {HEAD R1 "2020-01-02,\"3\"x,4\n" R3, ":3:", "after the closing quote", "two"},
        {HEAD R1 "2020-01-02,3\"x,4\n" R3, ":3:", "unquoted", "quotes"},
        {HEAD R1 "2020-01-02,3,\xFF\n" R3, ":3:", "not UTF-8", "save"},
        {"\x1F\x8B\x08", ":1:", "compressed", "gunzip"},
        {"PK\3\4aaaa", ":1:", "workbook", "save the sheet as CSV"},
        {"BZh91AY&SY", ":1:", "compressed by bzip2", "bunzip2"},
        {"PAR1,a,a\n2020-01-01,1,2\n", ":1:", "both named 'a'", "rename"},
        {"PAR1\x15\4\x15\x10", ":1:", "is a Parquet file", "to_csv"},
        {HEAD "12/31/2020,1,2\n" R2, ":2:", "has the month first", "write YYYY-MM-DD"},
        {HEAD "2021-03-28 00:00,1,2\n2021-03-28 01:00,1,2\n2021-03-28 03:00,1,2\n", ":4:", "is 7200 s after",
         "an hour skipped by daylight saving"},
        {HEAD "31/12/2020,1,2\n12/31/2020,3,4\n", ":2:", "is ambiguous", "write YYYY-MM-DD"},
        {HEAD "44926,1,2\n44927,3,4\n", ":2:", "'44926' is below the Unix seconds of 1973; write", "YYYY-MM-DD"},
        {HEAD "0,1,2\n1,3,4\n", ":2:", "row numbers as YYYY-MM-DD", "data.time_column names the column"},
        {HEAD "200501,1,2\n200502,3,4\n", ":3:", "'200502' is below the Unix seconds", "YYYYMM"},
        {HEAD "1-Jan-2020,1,2\n", ":2:", "has the name of a month", "write YYYY-MM-DD"},
        {HEAD "01/2020,1,2\n", ":2:", "has the month before the year", "write YYYY-MM"},
        {HEAD "01.02.20,1,2\n", ":2:", "has no year of four digits", "write YYYY-MM-DD"},
        {"id,day,a\nx,2020-01-01,1\n", ":2:", "the time 'x' is not a time", "data.time_column"},
        {"t,day,a\n2020-01-01,2020-01-01,1\n", ":2:", "'day' is '2020-01-01'", "data.time_column"},
        {"t,shop,a\n2020-01-01,north,1\n", ":2:", "'shop' is 'north', not a finite", "data.series_column; "},
        {HEAD R1 R2 "2020-01-03,6,high\n", ":4:", "'b' is 'high', not a finite number; use", "(data.features)"},
    };
    cleat_series_options options = test_tiny_series();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_dataset *dataset = NULL;
        cleat_error error = {0};
        cleat_status status = test_open_series(rows[i].text, &options, &dataset, &error);
        assert_null(dataset);
        if (status != CLEAT_ERR_FORMAT || !strstr(error.text, "in.csv") || !strstr(error.text, rows[i].where) ||
            !strstr(error.text, rows[i].what) || !strstr(error.text, rows[i].mend))
            fail_msg("row %zu: %d '%s'", i, status, error.text);
    }
}

typedef struct refused_options {
    void (*set)(cleat_series_options *options);
    cleat_status status;
    const char *what;
} refused_options;

static void set_unknown_feature(cleat_series_options *o) {
    o->features = "alpha,betta";
}
static void set_unknown_target(cleat_series_options *o) {
    o->targets = "gama";
}
static void set_unknown_time(cleat_series_options *o) {
    o->time_column = "times";
}
static void set_twice(cleat_series_options *o) {
    o->features = "alpha,alpha";
}
static void set_empty_name(cleat_series_options *o) {
    o->features = "alpha,,beta";
}
static void set_time_as_feature(cleat_series_options *o) {
    o->features = "alpha,time";
}
static void set_lookback(cleat_series_options *o) {
    o->lookback = 0;
}
static void set_huge_lookback(cleat_series_options *o) {
    o->lookback = 1 << 21;
}
static void set_long_lookback(cleat_series_options *o) {
    o->lookback = 9;
}
static void set_stride(cleat_series_options *o) {
    o->stride = -1;
}
static void set_fractions(cleat_series_options *o) {
    o->val_fraction = 0.7;
    o->test_fraction = 0.4;
}
static void set_nan_fraction(cleat_series_options *o) {
    o->val_fraction = NAN;
}
static void set_rows(cleat_series_options *o) {
    o->train_rows = 6;
    o->test_rows = 5;
}
static void set_no_window_in_val(cleat_series_options *o) {
    o->train_rows = 6;
    o->val_rows = 2;
    o->horizon = 3;
}
static void set_no_training(cleat_series_options *o) {
    o->val_rows = 8;
}
static void set_no_training_left(cleat_series_options *o) {
    o->val_fraction = o->test_fraction = 0.5;
}
static void set_season(cleat_series_options *o) {
    o->season = 50;
}
static void set_frame(cleat_series_options *o) {
    o->n_resamples = 1;
    o->resample_seconds[0] = 90;
}
static void set_same_frame(cleat_series_options *o) {
    o->n_resamples = 1;
    o->resample_seconds[0] = 60;
}
static void set_resample_twice(cleat_series_options *o) {
    o->n_resamples = 2;
    o->resample_seconds[0] = o->resample_seconds[1] = 120;
}
static void set_long_resample(cleat_series_options *o) {
    o->n_resamples = 1;
    o->resample_seconds[0] = INT64_C(60) << 50;
}
static void set_many_resamples(cleat_series_options *o) {
    o->n_resamples = 9;
}
static void set_forecast(cleat_series_options *o) {
    o->forecast = true;
}
static void set_policy(cleat_series_options *o) {
    o->gaps = (cleat_series_gaps)7;
}
static void set_no_such_anchor(cleat_series_options *o) {
    o->anchor = (cleat_series_anchor)4;
}
static void set_other_step(cleat_series_options *o) {
    o->step = 30;
}
static void set_fitted_nowhere(cleat_series_options *o) {
    o->fitted = "/nowhere/at/all";
}

static void refuses_bad_options(void **state) {
    (void)state;
    static const refused_options rows[] = {
        {set_unknown_feature, CLEAT_ERR_FORMAT, "data.features: "},
        {set_unknown_target, CLEAT_ERR_FORMAT, "no column 'gama'; did you mean 'gamma'"},
        {set_unknown_time, CLEAT_ERR_FORMAT, "data.time_column (empty: the first column): "},
        {set_twice, CLEAT_ERR_ARGUMENT, "contains 'alpha' twice"},
        {set_empty_name, CLEAT_ERR_ARGUMENT, "empty name between commas"},
        {set_time_as_feature, CLEAT_ERR_ARGUMENT, "'time' is the time column"},
        {set_lookback, CLEAT_ERR_ARGUMENT, "lookback is 0"},
        {set_huge_lookback, CLEAT_ERR_ARGUMENT, "lookback 2097152"},
        {set_long_lookback, CLEAT_ERR_ARGUMENT, "no window fits the train split, rows 1 to 9"},
        {set_stride, CLEAT_ERR_ARGUMENT, "stride is -1"},
        {set_fractions, CLEAT_ERR_ARGUMENT, "val_fraction 0.7"},
        {set_nan_fraction, CLEAT_ERR_ARGUMENT, "val_fraction"},
        {set_rows, CLEAT_ERR_ARGUMENT, "test split would be rows 7 to 11, but the file has 9"},
        {set_no_window_in_val, CLEAT_ERR_ARGUMENT, "no window fits the val split, rows 7 to 8: each takes 3 rows"},
        {set_no_training, CLEAT_ERR_ARGUMENT, "no training rows are left"},
        {set_no_training_left, CLEAT_ERR_ARGUMENT, "the train split, rows 1 to 1:"},
        {set_season, CLEAT_ERR_ARGUMENT, "50 rows of lookback"},
        {set_frame, CLEAT_ERR_ARGUMENT, "90 s is not a multiple"},
        {set_same_frame, CLEAT_ERR_ARGUMENT, "60 s is not a multiple"},
        {set_resample_twice, CLEAT_ERR_ARGUMENT, "120 s is listed twice"},
        {set_long_resample, CLEAT_ERR_ARGUMENT, "the file has 9; remove that time frame"},
        {set_many_resamples, CLEAT_ERR_ARGUMENT, "9 time frames; the maximum is 8"},
        {set_forecast, CLEAT_ERR_ARGUMENT, "requires the preprocessing state saved by training"},
        {set_policy, CLEAT_ERR_ARGUMENT, "unknown policy"},
        {set_no_such_anchor, CLEAT_ERR_ARGUMENT, "unknown anchor"},
        {set_other_step, CLEAT_ERR_FORMAT,
         "60 s after that of 2017-07-14T02:40:00, but the step is 30 s (as set by the caller"},
        {set_fitted_nowhere, CLEAT_ERR_NOT_FOUND, "/nowhere/at/all/series.csv"},
    };
    char text[1024] = "time,alpha,beta,gamma\n";
    for (int r = 0; r < 9; ++r) sprintf(text + strlen(text), "%d,%d,%d,%d\n", 1500000000 + 60 * r, r % 3, r % 4, r % 5);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_series_options options = test_tiny_series();
        cleat_dataset *dataset = NULL;
        cleat_error error = {0};
        rows[i].set(&options);
        cleat_status status = test_open_series(text, &options, &dataset, &error);
        assert_null(dataset);
        if (status != rows[i].status || !strstr(error.text, rows[i].what))
            fail_msg("row %zu: %d '%s'", i, status, error.text);
    }
}

static void finds_the_file_of_a_folder(void **state) {
    (void)state;
    cleat_series_options options = test_tiny_series();
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    char folder[512], file[600];
    snprintf(folder, sizeof folder, "%s", test_folder("some"));
    assert_int_equal(cleat_series_open(test_path("absent"), &options, &dataset, &error), CLEAT_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "absent: no such file or folder (data.path)"));
    assert_int_equal(cleat_series_open(folder, &options, &dataset, &error), CLEAT_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "no *.csv"));
    snprintf(file, sizeof file, "%s/b.csv", folder);
    test_write_text(file, HEAD R1 R2 R3);
    assert_int_equal(cleat_series_open(folder, &options, &dataset, &error), CLEAT_OK);
    cleat_dataset_destroy(dataset);
    dataset = NULL;
    snprintf(file, sizeof file, "%s/a.csv", folder);
    test_write_text(file, HEAD R1 R2 R3 "2020-01-04,7,8\n");
    assert_int_equal(cleat_series_open(folder, &options, &dataset, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "a.csv, b.csv"));
    options.file = "a.csv";
    assert_int_equal(cleat_series_open(folder, &options, &dataset, &error), CLEAT_OK);
    assert_int_equal(cleat_series_describe(dataset).rows, 4);
    cleat_dataset_destroy(dataset);
    options.file = "c.csv";
    assert_int_equal(cleat_series_open(folder, &options, &dataset, NULL), CLEAT_ERR_NOT_FOUND);
}

/* --- accepted files --------------------------------------------------------------------------------------------- */

static void reads_other_line_ends_and_quotes(void **state) {
    (void)state;
    cleat_series_options options = test_tiny_series();
    options.features = "price";
    static const char *const texts[] = {
        "when,price\n2020-01-01,1\n2020-01-02,-37.63\n2020-01-03,3\n",
        "\xEF\xBB\xBFwhen,price\r\n2020-01-01,1\r\n2020-01-02,-37.63\r\n2020-01-03,3",
        "\"when\",\"price\",note\n2020-01-01,\"1\",\"a\n\"\"b\"\"\"\n\n\"2020-01-02\", -3763e-2 ,\n2020-01-03,3,x\n",
        "note,price,when\n,1.0,1577836800\n,-37.630,1577923200\n,+3,1578009600\n",
        "when;price\r\n2020-01-01;1\r\n2020-01-02;-37,63\r\n2020-01-03;\"3,0\"\r\n",
        "when\tprice\n2020-01-01\t1.0\n2020-01-02\t-37.63\n2020-01-03\t3\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        options.time_column = i == 3 ? "when" : NULL;
        cleat_dataset *dataset = test_must_open_series(texts[i], &options);
        assert_int_equal(cleat_dataset_count(dataset), 1);
        assert_string_equal(cleat_dataset_id(dataset, 0), "2020-01-02T00:00:00");
        double mean = (1 - 37.63 + 3) / 3;
        assert_true(fabs(cleat_series_mean(dataset, 0) - mean) < 1e-6);
        float last;
        void *slots[4] = {NULL, NULL, &last, NULL};
        cleat_error error;
        assert_int_equal(cleat_dataset_fill(dataset, 0, 2, NULL, slots, &error), CLEAT_OK);
        assert_true(fabs(last * cleat_series_std(dataset, 0) + mean + 37.63) < 1e-5);
        cleat_dataset_destroy(dataset);
    }
}

/* The last known rows of all samples, as text. */
static const char *samples_of(const cleat_dataset *dataset, char text[512]) {
    text[0] = 0;
    for (size_t i = 0; i < cleat_dataset_count(dataset); ++i)
        sprintf(text + strlen(text), "%lld ", (long long)cleat_series_time(dataset, i, 0) - 1500000000);
    return text;
}

static void gaps_are_filled_skipped_or_ignored(void **state) {
    (void)state;
    static const char text[] =
        "t,v\n1500000000,1\n1500000010,2\n1500000020,3\n1500000050,6\n1500000060,7\n1500000070,8\n";
    char seen[512];
    cleat_series_options options = test_tiny_series();
    options.gaps = CLEAT_GAPS_FILL;
    cleat_dataset *dataset = test_must_open_series(text, &options);
    cleat_series_info info = cleat_series_describe(dataset);
    assert_true(info.rows == 8 && info.filled_rows == 2 && info.gaps == 1 && info.left_out == 0);
    assert_string_equal(samples_of(dataset, seen), "10 20 30 40 50 60 ");
    static const double values[] = {2, 3, 3, 3, 6, 7};
    for (size_t i = 0; i < 6; ++i) assert_true(fabs(test_last_value(dataset, i) - values[i]) < 1e-5);
    cleat_dataset_destroy(dataset);

    options.gaps = CLEAT_GAPS_SKIP;
    dataset = test_must_open_series(text, &options);
    info = cleat_series_describe(dataset);
    assert_true(info.rows == 6 && info.filled_rows == 0 && info.gaps == 1 && info.left_out == 2);
    assert_string_equal(samples_of(dataset, seen), "10 60 ");
    cleat_dataset_destroy(dataset);

    options.gaps = CLEAT_GAPS_ROWS;
    dataset = test_must_open_series(text, &options);
    info = cleat_series_describe(dataset);
    assert_true(info.rows == 6 && info.gaps == 0 && info.step == 10);
    assert_string_equal(samples_of(dataset, seen), "10 20 50 60 ");
    assert_int_equal(cleat_series_time(dataset, 1, 1), 1500000050);
    cleat_dataset_destroy(dataset);

    cleat_error error = {0};
    dataset = NULL;
    options.gaps = CLEAT_GAPS_FILL;
    options.longest_fill = 1;
    assert_int_equal(test_open_series(text, &options, &dataset, &error), CLEAT_ERR_FORMAT);
    assert_non_null(
        strstr(error.text, "in.csv:5: 2 rows are missing after 2017-07-14T02:40:20, more than the limit of 1"));
    assert_int_equal(
        test_open_series("t,v\n1500000000,1\n1500000010,2\n1500000025,3\n1500000035,4\n", &options, &dataset, &error),
        CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "in.csv:4: this row is 15 s after the previous one, not a multiple"));
    options.gaps = CLEAT_GAPS_SKIP;
    options.lookback = 4;
    assert_int_equal(test_open_series(text, &options, &dataset, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "(2 windows contain gaps"));
}

/* Days [rows] of one column, and the times after the last row, as dates separated by blanks. */
static void months_and_business_days_are_steps(void **state) {
    (void)state;
    static const struct {
        const char *days;
        cleat_series_gaps gaps;
        int64_t rows;
        const char *next;
    } cases[] = {
        {"2019-11-01 2019-12-01 2020-01-01 2020-02-01", CLEAT_GAPS_ERROR, 4, "2020-03-01 2020-04-01 2020-05-01 "},
        {"2019-10-31 2019-11-30 2019-12-31", CLEAT_GAPS_ERROR, 3, "2020-01-31 2020-02-29 2020-03-31 "},
        {"2019-12-30 2020-01-30 2020-02-29 2020-03-30", CLEAT_GAPS_ERROR, 4, "2020-04-30 2020-05-30 2020-06-30 "},
        {"2020-04-30 2020-06-30 2020-08-30", CLEAT_GAPS_ERROR, 3, "2020-10-30 2020-12-30 2021-02-28 "},
        {"2019-03-31 2019-06-30 2019-09-30", CLEAT_GAPS_ERROR, 3, "2019-12-31 2020-03-31 2020-06-30 "},
        {"2018-07-01 2019-07-01 2020-07-01", CLEAT_GAPS_ERROR, 3, "2021-07-01 2022-07-01 2023-07-01 "},
        {"2021-02-01 2021-03-01 2021-03-29", CLEAT_GAPS_ERROR, 3, "2021-04-26 2021-05-24 2021-06-21 "},
        {"2019-11-01 2019-12-01 2020-03-01", CLEAT_GAPS_FILL, 5, "2020-04-01 2020-05-01 2020-06-01 "},
        {"2019-11-01 2019-12-01 2020-02-01 2020-03-01 2020-04-01", CLEAT_GAPS_ROWS, 5,
         "2020-05-01 2020-06-01 2020-07-01 "},
        /* Thursday to Friday of the next week, without a holiday on Tuesday */
        {"2020-01-02 2020-01-03 2020-01-06 2020-01-08 2020-01-09 2020-01-10 2020-01-13 2020-01-14 2020-01-15 "
         "2020-01-16 2020-01-17",
         CLEAT_GAPS_ROWS, 11, "2020-01-20 2020-01-21 2020-01-22 "},
        {"2020-01-01 2020-01-02 2020-01-03", CLEAT_GAPS_ROWS, 3, "2020-01-04 2020-01-05 2020-01-06 "},
        {"2020-01-01 2020-01-04 2020-01-15 2020-02-02 2020-02-20", CLEAT_GAPS_ROWS, 5, "? ? ? "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char text[512] = "t,v\n", next[128] = "", day[CLEAT_TIME_TEXT];
        for (const char *at = cases[i].days; *at; at += at[10] ? 11 : 10)
            sprintf(text + strlen(text), "%.10s,%d\n", at, (int)strlen(at));
        cleat_series_options options = test_tiny_series();
        options.gaps = cases[i].gaps;
        cleat_dataset *dataset = test_must_open_series(text, &options);
        assert_int_equal(cleat_series_describe(dataset).rows, cases[i].rows);
        for (int64_t ahead = 2; ahead < 5; ++ahead) { /* 1 is the last row */
            const int64_t time = cleat_series_time(dataset, cleat_dataset_count(dataset) - 1, ahead);
            sprintf(next + strlen(next), "%.10s ", time == INT64_MIN ? "?" : cleat_time_text(time, day));
        }
        if (strcmp(next, cases[i].next) != 0) fail_msg("%s: %s", cases[i].days, next);
        cleat_dataset_destroy(dataset);
    }
    /* The state that training saves preserves months; a month is not a whole number of frames in minutes. */
    cleat_series_options options = test_tiny_series();
    cleat_error error = {0};
    cleat_dataset *dataset = test_must_open_series("t,v\n2019-10-31,1\n2019-11-30,2\n2019-12-31,3\n", &options);
    char folder[512];
    snprintf(folder, sizeof folder, "%s", test_folder("months"));
    assert_int_equal(cleat_dataset_save(dataset, folder, &error), CLEAT_OK);
    cleat_dataset_destroy(dataset);
    options.fitted = folder;
    dataset = test_must_open_series("t,v\n2020-01-31,1\n2020-02-29,2\n2020-03-31,3\n", &options);
    cleat_dataset_destroy(dataset);
    assert_int_equal(test_open_series("t,v\n2020-01-31,1\n2020-03-31,2\n2020-04-30,3\n", &options, &dataset, &error),
                     CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "but the step is 1 month (as in training)"));
    options = test_tiny_series();
    options.n_resamples = 1;
    options.resample_seconds[0] = 8640000;
    assert_int_equal(test_open_series("t,v\n2020-01-31,1\n2020-02-29,2\n2020-03-31,3\n", &options, &dataset, &error),
                     CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "1 month apart"));
}

static void missing_cells_are_filled_or_skipped(void **state) {
    (void)state;
    static const char text[] =
        "t,v\n1500000000,1\n1500000010,2\n1500000020,\n1500000030, NA "
        "\n1500000040,5\n1500000050,6\n1500000060,nan\n1500000070,8\n1500000080,9\n1500000090,10\n";
    char seen[512];
    cleat_series_options options = test_tiny_series();
    options.missing = CLEAT_MISSING_FILL;
    cleat_dataset *dataset = test_must_open_series(text, &options);
    assert_int_equal(cleat_series_describe(dataset).missing, 3);
    assert_string_equal(samples_of(dataset, seen), "10 20 30 40 50 60 70 80 ");
    static const double values[] = {2, 2, 2, 5, 6, 6, 8, 9};
    for (size_t i = 0; i < 8; ++i) assert_true(fabs(test_last_value(dataset, i) - values[i]) < 1e-5);
    cleat_dataset_destroy(dataset);

    options.missing = CLEAT_MISSING_SKIP;
    dataset = test_must_open_series(text, &options);
    cleat_series_info info = cleat_series_describe(dataset);
    assert_true(info.missing == 3 && info.left_out == 7);
    assert_string_equal(samples_of(dataset, seen), "80 ");
    assert_true(fabs(cleat_series_mean(dataset, 0) - 41.0 / 7) < 1e-6); /* mean of the cells present */
    cleat_dataset_destroy(dataset);

    cleat_error error = {0};
    dataset = NULL;
    options.missing = CLEAT_MISSING_FILL;
    options.longest_fill = 1;
    assert_int_equal(test_open_series(text, &options, &dataset, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "in.csv:5: 'v' has no value for more than the limit of 1 rows"));
    assert_int_equal(test_open_series("t,v\n1500000000,\n1500000010,2\n1500000020,3\n", &options, &dataset, &error),
                     CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "in.csv:2: 'v' has no value, and no earlier row"));
    options.missing = CLEAT_MISSING_SKIP;
    assert_int_equal(
        test_open_series("t,v,w\n1500000000,,1\n1500000010,,2\n1500000020,,3\n", &options, &dataset, &error),
        CLEAT_ERR_ARGUMENT);
}

/* If the second row is bad, later rows determine the step. */
static void steps_are_found_behind_bad_rows(void **state) {
    (void)state;
    for (int gaps = CLEAT_GAPS_ERROR; gaps <= CLEAT_GAPS_ROWS; ++gaps) {
        cleat_series_options options = test_tiny_series();
        cleat_dataset *dataset = NULL;
        cleat_error error = {0};
        options.gaps = (cleat_series_gaps)gaps;
        assert_int_equal(test_open_series("t,v\n1500000000,1\n1500000010\n1500000020,3\n1500000030,4\n1500000050,5\n",
                                          &options, &dataset, &error),
                         CLEAT_ERR_FORMAT);
        assert_non_null(strstr(error.text, "in.csv:3: 1 fields, but the header has 2"));
        assert_null(strstr(error.text, "in.csv:5:"));
    }
}

static void refuses_edited_preprocessor_files(void **state) {
    (void)state;
    static const struct {
        const char *text, *what;
    } rows[] = {
        {"kind,name,mean\n", "no column 'deviation'"},
        {"kind,name,mean,deviation\n", "step, features or targets are missing"},
        {"kind,name,mean,deviation\nstep,10,,\nfeature,v,0,1\n", "missing"},
        {"kind,name,mean,deviation\nstep,0,,\n", ":2: the step"},
        {"kind,name,mean,deviation\nstep,10,,\nfeature,v,0,0\n", ":3: mean and standard deviation"},
        {"kind,name,mean,deviation\nstep,10,,\nfeature,v,x,1\n", ":3: mean and standard deviation"},
        {"kind,name,mean,deviation\nstep,10,,\nfeature,v,0,1\nfeature,v,0,1\n", ":4: a column without a name, or"},
        {"kind,name,mean,deviation\nstep,10,,\ntarget,v,0,1\nfeature,v,0,1\n", ":4: a feature after"},
        {"kind,name,mean,deviation\ncolumn,v,0,1\n", ":2: kind must be"},
        {"kind,name,mean,deviation\nframe,1.5,,\n", ":2: at most eight frames"},
    };
    cleat_series_options options = test_tiny_series();
    char folder[512], file[600];
    snprintf(folder, sizeof folder, "%s", test_folder("edited"));
    snprintf(file, sizeof file, "%s/series.csv", folder);
    options.fitted = folder;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_dataset *dataset = NULL;
        cleat_error error = {0};
        test_write_text(file, rows[i].text);
        cleat_status status =
            test_open_series("t,v\n1500000000,1\n1500000010,2\n1500000020,3\n", &options, &dataset, &error);
        assert_null(dataset);
        if (status != CLEAT_ERR_FORMAT || !strstr(error.text, "series.csv") || !strstr(error.text, rows[i].what))
            fail_msg("row %zu: %d '%s'", i, status, error.text);
    }
    /* A name with every character that CSV quotes is read back. */
    cleat_dataset *first = test_must_open_series("t,\"a \"\"b\"\",\nc\"\n1500000000,1\n1500000010,2\n1500000020,4\n",
                                                 &(cleat_series_options){
                                                     .lookback = 2,
                                                     .horizon = 1,
                                                     .stride = 1,
                                                     .eval_stride = 1,
                                                 });
    cleat_error error = {0};
    assert_int_equal(cleat_dataset_save(first, folder, &error), CLEAT_OK);
    cleat_dataset *second =
        test_must_open_series("t,\"a \"\"b\"\",\nc\"\n1500000000,5\n1500000010,6\n1500000020,7\n", &options);
    assert_string_equal(cleat_series_feature(second, 0), "a \"b\",\nc");
    assert_true(cleat_series_mean(second, 0) == cleat_series_mean(first, 0));
    cleat_dataset_destroy(first);
    cleat_dataset_destroy(second);
    /* Data whose step differs from the fitted one. */
    second = NULL;
    assert_int_equal(test_open_series("t,\"a \"\"b\"\",\nc\"\n1500000000,5\n1500000020,6\n1500000040,7\n", &options,
                                      &second, &error),
                     CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "the step is 10 s (as in training)"));
}

/* --- large files, truncation and failures ------------------------------------------------------------------------ */

/* 30000 rows (more than two chunks), quoted line ends wherever chunks may end, and an error near the end. */
static void large_files_are_read_in_parts(void **state) {
    (void)state;
    enum { ROWS = 30000 };
    static char text[ROWS * 40];
    size_t used = (size_t)sprintf(text, "t,note,v\n");
    for (int r = 0; r < ROWS; ++r)
        used += (size_t)sprintf(text + used, r % 3 ? "%d,\"x\n\"\"%d\"\"\n\",%d\n" : "%d,%d,%d\n", 1500000000 + r, r,
                                r % 1000);
    assert_true(used > 600000);
    const char *path = test_path("large.csv");
    test_write(path, text, used);
    cleat_csv_stream stream;
    cleat_error error = {0};
    bool more = true;
    assert_int_equal(cleat_csv_stream_open(path, &stream, &error), CLEAT_OK);
    size_t line = 2;
    for (int r = 0; r < ROWS; ++r) {
        assert_int_equal(cleat_csv_stream_next(&stream, &more, &error), CLEAT_OK);
        assert_true(more);
        assert_int_equal(atoi(stream.csv.fields[0]), 1500000000 + r);
        assert_int_equal(atoi(stream.csv.fields[2]), r % 1000);
        assert_int_equal(stream.csv.line, line);
        line += r % 3 ? 3 : 1;
        assert_true(stream.room == 256 * 1024);
    }
    assert_true(cleat_csv_stream_share(&stream) == 1);
    assert_int_equal(cleat_csv_stream_next(&stream, &more, &error), CLEAT_OK);
    assert_false(more);
    cleat_csv_stream_close(&stream);

    cleat_series_options options = test_tiny_series();
    options.features = "v";
    options.stride = 1000;
    cleat_dataset *dataset = NULL;
    assert_int_equal(cleat_series_open(path, &options, &dataset, &error), CLEAT_OK);
    assert_int_equal(cleat_series_describe(dataset).rows, ROWS);
    assert_true(fabs(cleat_series_mean(dataset, 0) - 499.5) < 1e-9);
    cleat_dataset_destroy(dataset);

    char where[64];
    snprintf(where, sizeof where, "large.csv:%zu:", line - 3);
    text[used - 3] = 'x'; /* a digit of the last value */
    test_write(path, text, used);
    assert_int_equal(cleat_series_open(path, &options, &dataset, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, where));
    snprintf(where, sizeof where, "large.csv:%zu:", line - 1);
    text[used - 3] = '\xFF';
    test_write(path, text, used);
    assert_int_equal(cleat_series_open(path, &options, &dataset, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "not UTF-8"));
    assert_non_null(strstr(error.text, where));
}

/* Columns are looked up in a hash table of names: comparing each with all others would take minutes. */
static void many_columns_take_seconds(void **state) {
    (void)state;
    enum { COLUMNS = 300000, ROWS = 4 };
    cleat_string text = {0};
    cleat_error error = {0};
    cleat_dataset *dataset = NULL;
    cleat_series_options options = test_tiny_series();
    cleat_string_add(&text, "t");
    for (int c = 0; c < COLUMNS; ++c) cleat_string_add(&text, ",c%d", c);
    for (int r = 0; r < ROWS; ++r) {
        cleat_string_add(&text, "\n%d", 1500000000 + r);
        for (int c = 0; c < COLUMNS; ++c) cleat_string_add(&text, ",%d", r + c % 7);
    }
    const char *path = test_path("wide.csv");
    test_write(path, text.data, text.size);
    cleat_string_free(&text);
    const clock_t started = clock();
    if (cleat_series_open(path, &options, &dataset, &error)) fail_msg("%s", error.text);
    char folder[512];
    snprintf(folder, sizeof folder, "%s", test_path("wide"));
    assert_int_equal(cleat_folder_make(folder, NULL), CLEAT_OK);
    if (cleat_dataset_save(dataset, folder, &error)) fail_msg("%s", error.text);
    cleat_dataset_destroy(dataset);
    options.fitted = folder;
    if (cleat_series_open(path, &options, &dataset, &error)) fail_msg("%s", error.text);
    cleat_dataset_destroy(dataset);
    const double seconds = (double)(clock() - started) / CLOCKS_PER_SEC;
    print_message("%d columns: %.1f CPU seconds\n", (int)COLUMNS, seconds);
    if (seconds > 30) fail_msg("%d columns took %.1f CPU seconds", (int)COLUMNS, seconds);
}

/* A record longer than a chunk is read; one that never ends is refused before it exhausts memory. */
static void long_records_end_or_are_refused(void **state) {
    (void)state;
    enum { LONG = 700 * 1024, ENDLESS = 40 * 1024 * 1024 };
    char *text = malloc(ENDLESS + 64);
    assert_non_null(text);
    const char *path = test_path("long.csv");
    int used = sprintf(text, "t,note\n1,\"");
    memset(text + used, '\n', LONG);
    int size = used + LONG + sprintf(text + used + LONG, "\"\n2,x\n");
    test_write(path, text, (size_t)size);
    cleat_csv_stream stream;
    cleat_error error = {0};
    bool more = true;
    assert_int_equal(cleat_csv_stream_open(path, &stream, &error), CLEAT_OK);
    assert_int_equal(cleat_csv_stream_next(&stream, &more, &error), CLEAT_OK);
    assert_int_equal(strlen(stream.csv.fields[1]), LONG);
    assert_int_equal(cleat_csv_stream_next(&stream, &more, &error), CLEAT_OK);
    assert_int_equal(stream.csv.line, 2 + LONG + 1);
    cleat_csv_stream_close(&stream);

    memset(text + used, '\n', (size_t)(ENDLESS - used));
    test_write(path, text, ENDLESS);
    assert_int_equal(cleat_csv_stream_open(path, &stream, &error), CLEAT_OK);
    assert_int_equal(cleat_csv_stream_next(&stream, &more, &error), CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "long.csv:2:"));
    assert_non_null(strstr(error.text, "closing quote"));
    cleat_csv_stream_close(&stream);
    free(text);
}

static void survives_cuts_and_flips(void **state) {
    (void)state;
    static const char good[] = "t,a,\"b\"\n2020-01-01 00:00,1.5,-2e1\n2020-01-01 01:00,\"2\",3\n2020-01-01 02:00,4,5\n"
                               "2020-01-01 03:00,6,7\n";
    char text[sizeof good];
    cleat_series_options options = test_tiny_series();
    size_t opened = 0, refused = 0;
    for (size_t cut = 0; cut + 1 < sizeof good; ++cut)
        for (int flip = 0; flip < 3; ++flip) {
            cleat_dataset *dataset = NULL;
            cleat_error error = {0};
            memcpy(text, good, sizeof text);
            text[cut] = flip == 0 ? 0 : (char)(text[cut] ^ (flip == 1 ? 0x80 : 0x02));
            cleat_status status = test_open_series(text, &options, &dataset, &error);
            assert_true(!status ? dataset != NULL : strlen(error.text) > 20);
            opened += !status;
            refused += status != CLEAT_OK;
            cleat_dataset_destroy(dataset);
        }
    assert_true(opened > 10 && refused > 100);
}

static void survives_failing_allocations(void **state) {
    (void)state;
    char text[4096] = "t,a,b,c\n", kept[512];
    for (int r = 0; r < 60; ++r)
        sprintf(text + strlen(text), "%d,%d,%d,%d\n", 1500000000 + 60 * r, r % 3, r % 4, r % 5);
    snprintf(kept, sizeof kept, "%s", test_folder("kept"));
    for (int fitted = 0; fitted < 2; ++fitted) {
        cleat_series_options options = test_tiny_series();
        options.features = "a,b";
        options.targets = "c,a";
        options.n_resamples = 1;
        options.resample_seconds[0] = 120;
        options.fitted = fitted ? kept : NULL;
        cleat_status status = CLEAT_ERR_MEMORY;
        long n = 1;
        for (; status == CLEAT_ERR_MEMORY; ++n) {
            cleat_dataset *dataset = NULL;
            cleat_error error = {0};
            test_write_text(test_path("failing.csv"), text);
            cleat_fail_allocation(n);
            status = cleat_series_open(test_path("failing.csv"), &options, &dataset, &error);
            cleat_status saved = status ? status : cleat_dataset_save(dataset, kept, &error);
            cleat_fail_allocation(0);
            if (!status) status = saved;
            if (status) assert_int_equal(status, CLEAT_ERR_MEMORY);
            if (status) assert_true(strlen(error.text) > 0);
            cleat_dataset_destroy(dataset);
        }
        assert_int_equal(status, CLEAT_OK);
        assert_true(n > 20);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_bad_files),
        cmocka_unit_test(refuses_bad_options),
        cmocka_unit_test(finds_the_file_of_a_folder),
        cmocka_unit_test(reads_other_line_ends_and_quotes),
        cmocka_unit_test(gaps_are_filled_skipped_or_ignored),
        cmocka_unit_test(months_and_business_days_are_steps),
        cmocka_unit_test(missing_cells_are_filled_or_skipped),
        cmocka_unit_test(steps_are_found_behind_bad_rows),
        cmocka_unit_test(refuses_edited_preprocessor_files),
        cmocka_unit_test(large_files_are_read_in_parts),
        cmocka_unit_test(many_columns_take_seconds),
        cmocka_unit_test(long_records_end_or_are_refused),
        cmocka_unit_test(survives_cuts_and_flips),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, test_remove_all);
}
