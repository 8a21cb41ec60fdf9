/* Steps of the calendar: times of forecasts compared with pandas' offsets (make_calendar.py), business days, and what
 * data.step chooses. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "cleat/data.h"
#include "core/files.h"
#include "core/memory.h"
#include "files.h"
#include "series_text.h"
#include "source_path.h"

enum { DATES = 24, KNOWN = 9, ZONED = 12 };

static cleat_dataset *must_open(const char *path, const cleat_series_options *options) {
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    if (cleat_series_open(path, options, &dataset, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return dataset;
}

/* Splits a line "name,date,date,..."; returns the number of dates. */
static size_t split(char *line, char **name, char *dates[DATES]) {
    char *rest = NULL;
    size_t count = 0;
    *name = strtok_r(line, ",", &rest);
    for (char *date; count < DATES && (date = strtok_r(NULL, ",", &rest));) dates[count++] = date;
    return count;
}

static void check_dates(const char *name, char *dates[DATES], cleat_series_rule rule) {
    char text[1024] = "t,v\n", found[CLEAT_TIME_TEXT];
    for (int r = 0; r < KNOWN; ++r) sprintf(text + strlen(text), "%s,%d\n", dates[r], r);
    cleat_series_options options = test_tiny_series();
    options.rule = rule;
    cleat_dataset *dataset = test_must_open_series(text, &options);
    const size_t last = cleat_dataset_count(dataset) - 1; /* its last known row is the one before the last */
    for (int64_t d = KNOWN - 2; d < DATES; ++d) {
        const int64_t time = cleat_series_time(dataset, last, d - KNOWN + 2);
        if (time == INT64_MIN || strcmp(cleat_time_text(time, found), dates[d]) != 0)
            fail_msg("%s, rule %d: %s instead of %s", name, (int)rule, time == INT64_MIN ? "none" : found, dates[d]);
    }
    cleat_dataset_destroy(dataset);
}

static void dates_are_those_of_pandas(void **state) {
    (void)state;
    static const struct {
        const char *prefix;
        cleat_series_rule rule;
    } named[] = {{"D", CLEAT_STEP_DAY},   {"B", CLEAT_STEP_BUSINESS_DAY}, {"W-", CLEAT_STEP_WEEK},
                 {"M", CLEAT_STEP_MONTH}, {"day", CLEAT_STEP_MONTH},      {"Q", CLEAT_STEP_QUARTER},
                 {"Y", CLEAT_STEP_YEAR}};
    char *text, *rest = NULL, *name, *dates[DATES];
    size_t size, lines = 0, forced = 0;
    cleat_error error = {0};
    assert_int_equal(cleat_file_read(source_path("tests/data/calendar_steps.csv"), &text, &size, &error), CLEAT_OK);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), ++lines) {
        assert_int_equal(split(line, &name, dates), DATES);
        check_dates(name, dates, CLEAT_STEP_FIRST);
        check_dates(name, dates, CLEAT_STEP_AUTO);
        for (size_t i = 0; i < sizeof named / sizeof *named; ++i)
            if (strncmp(name, named[i].prefix, strlen(named[i].prefix)) == 0) {
                check_dates(name, dates, named[i].rule);
                ++forced;
            }
    }
    assert_int_equal(lines, 18);
    assert_int_equal(forced, 15);
    cleat_free(text);
}

static void check_zone(const char *name, char *given[DATES], char *written[DATES], cleat_series_rule rule) {
    char text[1024] = "t,v\n", found[CLEAT_TIME_TEXT], whole[2 * CLEAT_TIME_TEXT];
    for (int r = 0; r < ZONED; ++r) sprintf(text + strlen(text), "%s,%d\n", given[r], r);
    cleat_series_options options = test_tiny_series();
    options.rule = rule;
    cleat_dataset *dataset = test_must_open_series(text, &options);
    const size_t last = cleat_dataset_count(dataset) - 1;
    assert_string_equal(cleat_dataset_id(dataset, last), written[ZONED - 2]);
    for (int64_t d = ZONED - 2; d < DATES; ++d) {
        const int64_t time = cleat_series_time(dataset, last, d - ZONED + 2);
        snprintf(whole, sizeof whole, "%s%s", cleat_time_text(time, found), cleat_series_zone(dataset));
        if (strcmp(whole, written[d]) != 0)
            fail_msg("%s, rule %d: %s instead of %s", name, (int)rule, whole, written[d]);
    }
    cleat_dataset_destroy(dataset);
}

static void times_with_zones_are_those_of_the_clock(void **state) {
    (void)state;
    char *text, *rest = NULL, *name, *given[DATES], *written[DATES];
    size_t size, pairs = 0;
    cleat_error error = {0};
    assert_int_equal(cleat_file_read(source_path("tests/data/calendar_zones.csv"), &text, &size, &error), CLEAT_OK);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), ++pairs) {
        assert_int_equal(split(line, &name, given), DATES);
        assert_int_equal(split(strtok_r(NULL, "\n", &rest), &name, written), DATES);
        check_zone(name, given, written, CLEAT_STEP_FIRST);
        check_zone(name, given, written, CLEAT_STEP_AUTO);
    }
    assert_int_equal(pairs, 13);
    cleat_free(text);
    /* Z stays Z; a file without zones has none; an irregular step between offsets names daylight saving. */
    cleat_series_options options = test_tiny_series();
    cleat_dataset *dataset =
        test_must_open_series("t,v\n2020-01-01T00:00Z,1\n2020-01-01T01:00Z,2\n2020-01-01T02:00Z,3\n", &options);
    assert_string_equal(cleat_series_zone(dataset), "Z");
    cleat_dataset_destroy(dataset);
    dataset = test_must_open_series("t,v\n2020-01-01,1\n2020-01-02,2\n2020-01-03,3\n", &options);
    assert_string_equal(cleat_series_zone(dataset), "");
    cleat_dataset_destroy(dataset);
    assert_int_equal(
        test_open_series("t,v\n2023-03-24 00:00+01:00,1\n2023-03-25 00:00+01:00,2\n2023-03-26 00:00+01:00,3\n"
                         "2023-03-27 02:00+02:00,4\n",
                         &options, &dataset, &error),
        CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "daylight saving, as offsets differ?"));
}

static void days_above_12_give_the_order_of_dates(void **state) {
    (void)state;
    static const char *const texts[] = {
        "t,v\n11/12/2020,1\n12/12/2020,2\n13/12/2020,3\n",
        "t,v\n30-11-2020 00:00,1\n1-12-2020 00:00,2\n2-12-2020 00:00,3\n",
        "v,t\n1,31/1/2021\n2,28/2/2021\n3,31/3/2021\n",
    };
    static const char *const next[] = {"2020-12-14T00:00:00", "2020-12-03T00:00:00", "2021-04-30T00:00:00"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        char time[CLEAT_TIME_TEXT];
        cleat_series_options options = test_tiny_series();
        options.time_column = "t";
        options.rule = i == 1 ? CLEAT_STEP_AUTO : CLEAT_STEP_FIRST;
        cleat_dataset *dataset = test_must_open_series(texts[i], &options);
        assert_string_equal(cleat_time_text(cleat_series_time(dataset, 0, 2), time), next[i]);
        cleat_dataset_destroy(dataset);
    }
}

/* Days of a year, or the last rows, as rows without gaps, and the next date or "". */
static void dates_of_consecutive_rows_are_right_or_unknown(void **state) {
    (void)state;
    static const struct {
        const char *days, *next;
    } cases[] = {
        /* the 1st and the 15th */
        {"2022-01-01 2022-01-15 2022-02-01 2022-02-15 2022-03-01 2022-03-15", ""},
        /* third Fridays */
        {"2022-01-21 2022-02-18 2022-03-18 2022-04-15 2022-05-20 2022-06-17", ""},
        /* the last business day of the month */
        {"2022-03-31 2022-04-29 2022-05-31 2022-06-30 2022-07-29 2022-08-31 2022-09-30", ""},
        {"2022-03-31 2022-04-30 2022-05-31 2022-07-31 2022-08-31", "2022-09-30"}, /* without June */
        /* months but August */
        {"2021-05-01 2021-06-01 2021-07-01 2021-09-01 2021-10-01 2021-11-01 2021-12-01 2022-01-01 2022-02-01 "
         "2022-03-01 "
         "2022-04-01 2022-05-01 2022-06-01 2022-07-01 2022-09-01 2022-10-01",
         ""},
        /* Monday to Saturday, without 13 January */
        {"2022-01-08 2022-01-10 2022-01-11 2022-01-12 2022-01-14 2022-01-15 2022-01-17 2022-01-18 2022-01-19 "
         "2022-01-20 "
         "2022-01-21 2022-01-22",
         "2022-01-24"},
        /* one Saturday among weekdays */
        {"2022-01-03 2022-01-04 2022-01-05 2022-01-06 2022-01-07 2022-01-08 2022-01-10 2022-01-11 2022-01-12 "
         "2022-01-13 "
         "2022-01-14 2022-01-17 2022-01-18 2022-01-19 2022-01-20 2022-01-21 2022-01-24 2022-01-25 2022-01-26 "
         "2022-01-27 "
         "2022-01-28 2022-01-31",
         ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char text[1024] = "t,v\n", found[CLEAT_TIME_TEXT] = "";
        for (const char *at = cases[i].days; *at; at += at[10] ? 11 : 10)
            sprintf(text + strlen(text), "%.10s,%d\n", at, (int)strlen(at));
        cleat_series_options options = test_tiny_series();
        options.gaps = CLEAT_GAPS_ROWS;
        options.rule = CLEAT_STEP_AUTO;
        cleat_dataset *dataset = test_must_open_series(text, &options);
        const int64_t time = cleat_series_time(dataset, cleat_dataset_count(dataset) - 1, 2);
        if (time != INT64_MIN) cleat_time_text(time, found);
        found[10] = 0;
        if (strcmp(found, cases[i].next) != 0) fail_msg("%s: '%s'", cases[i].days, found);
        cleat_dataset_destroy(dataset);
    }
}

/* Rows as `days` says, one letter a day from Monday on: x is a row. */
static const char *days_of(const char *days) {
    static char text[4096];
    strcpy(text, "t,v\n");
    for (int day = 0; days[day]; ++day) {
        char time[CLEAT_TIME_TEXT];
        if (days[day] == 'x')
            sprintf(text + strlen(text), "%s,%d\n", cleat_time_text(1577664000 + INT64_C(86400) * day, time), day);
    }
    return text;
}

static void filled_rows_are_at_most_half(void **state) {
    (void)state;
    cleat_series_options options = test_tiny_series();
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    options.gaps = CLEAT_GAPS_FILL;
    options.longest_fill = 24;
    test_keep_log();
    dataset = test_must_open_series(days_of("xxxxx--xxxxx--xxxxx"), &options); /* weekends */
    const char *log = test_logged();
    assert_non_null(strstr(
        log, "gaps: 2; rows missing there, filled with the previous row: 4 (weekends: data.step = business_day)"));
    cleat_dataset_destroy(dataset);
    test_keep_log();
    dataset = test_must_open_series(days_of("xxx--xxxx-xxxxxx-xx"), &options);
    log = test_logged();
    assert_non_null(strstr(log, "previous row: 4\n"));
    cleat_dataset_destroy(dataset);
    dataset = test_must_open_series(days_of("xx---x"), &options);
    assert_int_equal(cleat_series_describe(dataset).filled_rows, 3);
    cleat_dataset_destroy(dataset);
    assert_int_equal(test_open_series(days_of("xx----x"), &options, &dataset, &error), CLEAT_ERR_FORMAT);
    assert_non_null(
        strstr(error.text, "in.csv: gaps: 4 of 7 rows would be copies of those before, as the step is 1 day (the "));
    assert_non_null(strstr(error.text, "set data.gaps=rows or (to train) data.step"));
    options.series_column = "s"; /* a quarterly series among monthly ones */
    options.rule = CLEAT_STEP_AUTO;
    assert_int_equal(test_open_series("t,s,v\n2020-01-01,a,1\n2020-02-01,a,2\n2020-03-01,a,3\n2020-04-01,a,4\n"
                                      "2020-05-01,a,5\n2020-01-01,b,1\n2020-04-01,b,2\n2020-07-01,b,3\n",
                                      &options, &dataset, &error),
                     CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "in.csv: b: 4 of 7 rows would be copies"));
}

/* A gap between the first rows, which give another step than the rest. */
static void auto_takes_the_rule_of_most_rows(void **state) {
    (void)state;
    static const struct {
        const char *days;
        int64_t rows, gaps;
    } cases[] = {
        {"2019-01-31 2019-03-31 2019-04-30 2019-05-31 2019-06-30", 6, 1},
        {"2010-01-01 2012-01-01 2013-01-01 2014-01-01", 5, 1},
        {"2020-01-02 2020-01-06 2020-01-07 2020-01-08 2020-01-09 2020-01-10 2020-01-13", 8, 1}, /* from Thursday */
        {"2020-01-02 2020-01-04 2020-01-05 2020-01-06", 5, 1},                                  /* with a weekend */
        {"2020-01-06 2020-01-07 2020-01-08 2020-01-10", 5, 1}, /* nothing says that weekends are omitted */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char text[512] = "t,v\n";
        for (const char *at = cases[i].days; *at; at += at[10] ? 11 : 10)
            sprintf(text + strlen(text), "%.10s,%d\n", at, (int)strlen(at));
        cleat_series_options options = test_tiny_series();
        options.rule = CLEAT_STEP_AUTO;
        options.gaps = CLEAT_GAPS_FILL;
        cleat_dataset *dataset = test_must_open_series(text, &options);
        assert_int_equal(cleat_series_describe(dataset).rows, cases[i].rows);
        assert_int_equal(cleat_series_describe(dataset).gaps, cases[i].gaps);
        cleat_dataset_destroy(dataset);
    }
}

#define WEEK_OF_JANUARY "2020-01-09,1\n2020-01-10,2\n2020-01-13,3\n2020-01-14,4\n"

static void business_days_are_found_or_asked_for(void **state) {
    (void)state;
    cleat_series_options options = test_tiny_series();
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    char folder[512], text[CLEAT_TIME_TEXT];
    /* A file of weekdays opens without any setting, and its checkpoint knows it. */
    dataset = test_must_open_series("t,v\n" WEEK_OF_JANUARY, &options);
    assert_int_equal(cleat_series_describe(dataset).rows, 4);
    snprintf(folder, sizeof folder, "%s", test_folder("business"));
    assert_int_equal(cleat_dataset_save(dataset, folder, &error), CLEAT_OK);
    cleat_dataset_destroy(dataset);
    options.fitted = folder;
    options.forecast = true;
    dataset = test_must_open_series("t,v\n2021-07-01T16:30,1\n2021-07-02T16:30,2\n", &options);
    assert_string_equal(cleat_time_text(cleat_series_time(dataset, 0, 1), text), "2021-07-05T16:30:00");
    assert_string_equal(cleat_time_text(cleat_series_time(dataset, 0, 6), text), "2021-07-12T16:30:00");
    cleat_dataset_destroy(dataset);
    /* A holiday is a gap. */
    options = test_tiny_series();
    assert_int_equal(test_open_series("t,v\n2020-01-02,0\n" WEEK_OF_JANUARY, &options, &dataset, &error),
                     CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "data.gaps"));
    options.rule = CLEAT_STEP_BUSINESS_DAY;
    assert_int_equal(test_open_series("t,v\n" WEEK_OF_JANUARY "2020-01-16,5\n", &options, &dataset, &error),
                     CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "the step is 1 business day (as data.step says)"));
    assert_non_null(strstr(error.text, "fill, skip, or rows (with data.step = business_day)"));
    options.gaps = CLEAT_GAPS_FILL;
    dataset = test_must_open_series("t,v\n" WEEK_OF_JANUARY "2020-01-16,5\n", &options);
    assert_int_equal(cleat_series_describe(dataset).filled_rows, 1);
    cleat_dataset_destroy(dataset);
    /* A row on Saturday is not a business day. */
    assert_int_equal(test_open_series("t,v\n" WEEK_OF_JANUARY "2020-01-18,5\n", &options, &dataset, &error),
                     CLEAT_ERR_FORMAT);
    assert_non_null(strstr(error.text, "not a multiple of the step of 1 business day"));
    /* With the policy as before, days of a weekend are filled. */
    options.rule = CLEAT_STEP_FIRST;
    dataset = test_must_open_series("t,v\n" WEEK_OF_JANUARY, &options);
    assert_int_equal(cleat_series_describe(dataset).filled_rows, 2);
    cleat_dataset_destroy(dataset);
    options.rule = CLEAT_STEP_YEAR + 1;
    assert_int_equal(test_open_series("t,v\n" WEEK_OF_JANUARY, &options, &dataset, &error), CLEAT_ERR_ARGUMENT);
}

/* Oil prices: 8180 trading days from 1986 to 2018 without holidays; pandas counts 8462 business days between the first
 * and the last. */
static void real_trading_days(void **state) {
    (void)state;
    const char *path = shared_path("data/timeseries_oil/wti-daily.csv");
    cleat_series_options options = cleat_series_defaults();
    char text[CLEAT_TIME_TEXT];
    if (!cleat_file_exists(path)) skip();
    options.rule = CLEAT_STEP_AUTO;
    options.gaps = CLEAT_GAPS_FILL;
    cleat_dataset *dataset = must_open(path, &options);
    const cleat_series_info info = cleat_series_describe(dataset);
    assert_int_equal(info.rows - info.filled_rows, 8180);
    assert_int_equal(info.rows, 8462);
    assert_string_equal(
        cleat_time_text(cleat_series_time(dataset, cleat_dataset_count(dataset) - 1, info.horizon + 5), text),
        "2018-06-15T00:00:00");
    cleat_dataset_destroy(dataset);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dates_are_those_of_pandas),
        cmocka_unit_test(times_with_zones_are_those_of_the_clock),
        cmocka_unit_test(days_above_12_give_the_order_of_dates),
        cmocka_unit_test(dates_of_consecutive_rows_are_right_or_unknown),
        cmocka_unit_test(filled_rows_are_at_most_half),
        cmocka_unit_test(auto_takes_the_rule_of_most_rows),
        cmocka_unit_test(business_days_are_found_or_asked_for),
        cmocka_unit_test(real_trading_days),
    };
    return cmocka_run_group_tests(tests, NULL, test_remove_all);
}
