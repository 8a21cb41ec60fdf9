/* Lookback, horizon, season and anchor that a training takes from its data. References: make_auto.py (numpy). */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cleat/data.h"
#include "core/files.h"
#include "files.h"
#include "series_text.h"
#include "source_path.h"

static cleat_series_options automatic(void) {
    cleat_series_options options = cleat_series_defaults();
    options.lookback = options.horizon = options.season = CLEAT_SERIES_AUTO;
    options.anchor = CLEAT_SERIES_ANCHOR_AUTO;
    options.rule = CLEAT_STEP_AUTO;
    options.val_fraction = options.test_fraction = 0.15;
    return options;
}

/* `rows` rows that are `months` months, `days` days or 15 minutes apart, of a line (not with minutes), a wave of
 * `period` rows (0: none) and noise. */
static const char *made(int rows, int months, int days, int period, double noise) {
    static char text[1 << 17];
    size_t used = (size_t)sprintf(text, "t,v\n");
    unsigned state = 1;
    for (int r = 0, m = 0; r < rows; ++r, m += months) {
        char time[CLEAT_TIME_TEXT];
        state = state * 1664525u + 1013904223u;
        const double line = months || days ? 0.05 * r : 0, wave = period ? sin(r * 6.283185307 / period) : 0;
        const double value = line + wave + noise * (state / 4294967296.0 - 0.5);
        if (months)
            snprintf(time, sizeof time, "%d-%02d-01", 1950 + m / 12, 1 + m % 12);
        else
            cleat_time_text(INT64_C(1577836800) + (int64_t)r * (days ? days * 86400 : 900), time);
        used += (size_t)sprintf(text + used, "%s,%.6f\n", time, value);
    }
    return text;
}

static void values_follow_from_step_and_season(void **state) {
    (void)state;
    static const struct {
        int rows, months, days, period;
        double noise;
        int64_t lookback, horizon, season;
        cleat_series_anchor anchor;
    } cases[] = {
        {400, 1, 0, 12, 0.5, 48, 12, 12, CLEAT_SERIES_ANCHOR_SEASON},
        {400, 1, 0, 0, 1, 48, 12, 0, CLEAT_SERIES_ANCHOR_LAST},
        {200, 3, 0, 4, 0.5, 16, 4, 4, CLEAT_SERIES_ANCHOR_SEASON},
        {100, 12, 0, 11, 0.5, 12, 3, 0, CLEAT_SERIES_ANCHOR_LAST}, /* 11 years are no period of the calendar */
        {900, 0, 1, 7, 0.5, 28, 7, 7, CLEAT_SERIES_ANCHOR_SEASON},
        {3000, 0, 1, 7, 0.5, 28, 7, 7, CLEAT_SERIES_ANCHOR_LAST}, /* many rows */
        {900, 0, 1, 7, 20, 28, 7, 0, CLEAT_SERIES_ANCHOR_LAST},   /* nothing but noise */
        {2400, 0, 1, 365, 0.05, 730, 7, 365, CLEAT_SERIES_ANCHOR_LAST},
        {1500, 0, 1, 365, 0.05, 28, 7, 0, CLEAT_SERIES_ANCHOR_LAST}, /* less than three years; a slow wave is no week */
        {400, 0, 7, 52, 0.05, 104, 4, 52, CLEAT_SERIES_ANCHOR_LAST},
        /* noise that hides the daily wave in the differences, and less of it */
        {2977, 0, 0, 96, 0.6, 384, 96, 96, CLEAT_SERIES_ANCHOR_LAST},
        {1500, 0, 0, 96, 0.6, 384, 96, 96, CLEAT_SERIES_ANCHOR_SEASON},
        {2977, 0, 0, 96, 20, 384, 96, 0, CLEAT_SERIES_ANCHOR_LAST},
        {2977, 0, 0, 1500, 0.6, 384, 96, 0, CLEAT_SERIES_ANCHOR_LAST}, /* a slow wave is no day */
        {60, 1, 0, 12, 0.5, 16, 9, 12, CLEAT_SERIES_ANCHOR_SEASON},    /* 42 training rows, 9 for validation */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        const cleat_series_options options = automatic();
        cleat_dataset *dataset = test_must_open_series(
            made(cases[i].rows, cases[i].months, cases[i].days, cases[i].period, cases[i].noise), &options);
        const cleat_series_info info = cleat_series_describe(dataset);
        if (info.lookback != cases[i].lookback || info.horizon != cases[i].horizon || info.season != cases[i].season ||
            info.anchor != cases[i].anchor)
            fail_msg("case %zu: lookback %lld, horizon %lld, season %lld, anchor %d", i, (long long)info.lookback,
                     (long long)info.horizon, (long long)info.season, (int)info.anchor);
        for (int split = 0; split < CLEAT_SPLITS; ++split) assert_true(info.windows[split] > 0);
        cleat_dataset_destroy(dataset);
    }
}

static void log_gives_the_reasons(void **state) {
    (void)state;
    static const struct {
        int rows, months, days, period;
        const char *season, *anchor;
    } cases[] = {
        {3000, 0, 1, 7,
         "data.season = 7: of the calendar's periods in steps of 1 day, the differences of the training rows",
         "training rows, enough for the network to learn it\n"},
        {900, 0, 1, 7, "data.season = 7: ", "times the error of the last value in 630 training rows\n"},
        {100, 12, 0, 0,
         "data.season = none: of the calendar's periods in steps of 12 months, none takes from 2 to a third of 70",
         "data.anchor = last: there is no season\n"},
        {1500, 0, 0, 96, "data.season = 96: of the calendar's periods in steps of 900 s, repeating it has 0.0",
         "data.anchor = season: the season has 0.0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        const cleat_series_options options = automatic();
        test_keep_log();
        cleat_dataset_destroy(
            test_must_open_series(made(cases[i].rows, cases[i].months, cases[i].days, cases[i].period, 0.5), &options));
        const char *log = test_logged();
        if (!strstr(log, cases[i].season) || !strstr(log, cases[i].anchor)) fail_msg("case %zu: %s", i, log);
    }
}

static void values_that_are_set_stay(void **state) {
    (void)state;
    cleat_series_options options = automatic();
    options.lookback = 10;
    options.season = 3;
    options.anchor = CLEAT_SERIES_ANCHOR_NONE;
    cleat_dataset *dataset = test_must_open_series(made(400, 1, 0, 12, 0.5), &options);
    const cleat_series_info info = cleat_series_describe(dataset);
    assert_int_equal(info.lookback, 10);
    assert_int_equal(info.horizon, 12);
    assert_int_equal(info.season, 3);
    assert_int_equal(info.anchor, CLEAT_SERIES_ANCHOR_NONE);
    cleat_dataset_destroy(dataset);
}

static void what_cannot_be_chosen_is_an_error(void **state) {
    (void)state;
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    cleat_series_options options = automatic();
    assert_int_equal(test_open_series(made(2, 1, 0, 0, 1), &options, &dataset, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "too few for a horizon of"));
    options.anchor = CLEAT_SERIES_ANCHOR_SEASON;
    assert_int_equal(test_open_series(made(400, 1, 0, 0, 1), &options, &dataset, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "no season was found; set data.season"));
    options = automatic();
    options.fitted = "nowhere";
    options.forecast = true;
    assert_int_equal(test_open_series(made(400, 1, 0, 0, 1), &options, &dataset, &error), CLEAT_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "only a training chooses it"));
}

/* numpy: the mean over the columns of the autocorrelation of the differences in the first 10,080 rows is 0.2947 at 24
 * hours, 0.2834 at 168; season against last value: 0.7535. */
static void real_hours(void **state) {
    (void)state;
    const char *path = shared_path("data/timeseries_ett/ETTh1.csv");
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    if (!cleat_file_exists(path)) skip();
    const cleat_series_options options = automatic();
    test_keep_log();
    assert_int_equal(cleat_series_open(path, &options, &dataset, &error), CLEAT_OK);
    const char *log = test_logged();
    const cleat_series_info info = cleat_series_describe(dataset);
    assert_int_equal(info.lookback, 96);
    assert_int_equal(info.horizon, 24);
    assert_int_equal(info.season, 24);
    assert_int_equal(info.anchor, CLEAT_SERIES_ANCHOR_LAST);
    assert_non_null(strstr(log, "data.season = 24: of the calendar's periods in steps of 3600 s, the differences"));
    assert_non_null(strstr(log, "correlate most at it (0.29; none: 0.10 or less)"));
    assert_non_null(strstr(log, "the season has 0.753 times the error of the last value in 10080 training rows"));
    cleat_dataset_destroy(dataset);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_follow_from_step_and_season),
        cmocka_unit_test(log_gives_the_reasons),
        cmocka_unit_test(values_that_are_set_stay),
        cmocka_unit_test(what_cannot_be_chosen_is_an_error),
        cmocka_unit_test(real_hours),
    };
    return cmocka_run_group_tests(tests, NULL, test_remove_all);
}
