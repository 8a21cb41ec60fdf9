/* Numbers in time series: thousands separators, decimal marks, and outliers. */
/* ctest: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/series/series.h"
#include "files.h"
#include "series_text.h"

/* The values read from a file with this field separator, and the expected warning. */
static void marks_of_numbers_are_found(void **state) {
    (void)state;
    static const struct {
        char separator;
        const char *cells, *values, *said; /* NULL: no warning about thousands */
    } cases[] = {
        {';', "996 1.007 -1.035", "996 1007 -1035", "a point between thousands: '1.007' is 1007"},
        {';', "996 1,007 1,035", "996 1007 1035", "a comma between thousands: '1,007' is 1007"},
        {';', "1,5 1.250 1.234,25", "1.5 1250 1234.25", "a point between thousands: '1.250' is 1250"},
        {';', "1.5 1,250 1,234.25", "1.5 1250 1234.25", "a comma between thousands"},
        {';', "1.234.567 1.250 7", "1234567 1250 7", "a point between thousands"},
        {';', "1.125 1.250 2.375", "1.125 1.25 2.375", "'1.125' is read with a decimal point, not as thousands"},
        {';', "1,125 1,250 2,375", "1.125 1.25 2.375", "'1,125' is read with a decimal comma, not as thousands"},
        {';', "0.125 1.250 996", "0.125 1.25 996", NULL},
        {';', "100 101,125 104", "100 101.125 104", "'101,125' is read with a decimal comma, not as thousands"},
        {';', "100 -1.234 159", "100 -1.234 159", "not as thousands"},
        {',', "100 99.5 98.875", "100 99.5 98.875", NULL},
        {';', "1.5 1.250 996", "1.5 1.25 996", NULL},
        {';', "1250 1.250 996", "1250 1.25 996", "not as thousands"},
        {';', "99 1.250 7", "99 1.25 7", "not as thousands"},
        {',', "996 1.250 997", "996 1.25 997", "not as thousands"},
        {',', "1.125 1.250 2.375", "1.125 1.25 2.375", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char text[256], folder[512];
        int day = 1;
        sprintf(text, "t%cv", cases[i].separator);
        for (const char *at = cases[i].cells; *at; at += strcspn(at, " "), at += *at == ' ')
            sprintf(text + strlen(text), "\n2020-01-%02d%c%.*s", day++, cases[i].separator, (int)strcspn(at, " "), at);
        snprintf(folder, sizeof folder, "%s", test_folder("marks"));
        cleat_series_options options = test_tiny_series();
        options.lookback = options.horizon = 1;
        for (int fitted = 0; fitted < 2; ++fitted) { /* the same with the state that training saves */
            test_keep_log();
            cleat_dataset *dataset = test_must_open_series(text, &options);
            const char *logged = test_logged(), *said = fitted ? NULL : cases[i].said;
            if (said ? !strstr(logged, said) : strstr(logged, "thousands") != NULL) fail_msg("%zu: %s", i, logged);
            char *next = (char *)cases[i].values;
            for (size_t r = 0; r < 2; ++r) {
                const double value = strtod(next, &next);
                if (fabs(test_last_value(dataset, r) - value) > 1e-4 * fabs(value))
                    fail_msg("%zu: row %zu is %g", i, r, test_last_value(dataset, r));
            }
            if (!fitted) assert_int_equal(cleat_dataset_save(dataset, folder, NULL), CLEAT_OK);
            options.fitted = folder;
            options.evaluation = true;
            cleat_dataset_destroy(dataset);
        }
    }
}

/* A file to predict may have the first number with a thousands separator. */
static void a_file_to_predict_has_thousands(void **state) {
    (void)state;
    char folder[512];
    cleat_series_options options = test_tiny_series();
    options.lookback = options.horizon = 1;
    snprintf(folder, sizeof folder, "%s", test_folder("marks"));
    cleat_dataset *dataset =
        test_must_open_series("t;v\n2020-01-01;512,3\n2020-01-02;730,5\n2020-01-03;810,25\n", &options);
    assert_int_equal(cleat_dataset_save(dataset, folder, NULL), CLEAT_OK);
    cleat_dataset_destroy(dataset);
    options.fitted = folder;
    options.evaluation = true;
    dataset = test_must_open_series("t;v\n2020-01-01;512,3\n2020-01-02;1.007\n2020-01-03;810,25\n", &options);
    assert_true(fabs(test_last_value(dataset, 1) - 1007) < 0.1);
    cleat_dataset_destroy(dataset);
}

static void values_far_outside_are_named(void **state) {
    (void)state;
    static const struct {
        const char *values, *named; /* NULL: no warning */
    } cases[] = {
        {"1 2 3 2 -9999 4 -9999", "warning: IN: 'v': -9999 (2 times) is far outside of all other values (1 to 4); if"},
        {"1 2 3 2 65535 4 2", "'v': 65535 (1 times)"},
        {"200 10 3000 0 -9999 4 2", "'v': -9999 (1 times)"},
        {"1 2 3 2 40 4 2", "'v': 40 (1 times)"},
        {"1 2 3 2 30 4 2", NULL},
        {"0 1 0 1 0 1 0", NULL},
        {"-5 1 0 3 0 7 0", NULL},
        {"-37.63 10 18 60 90 145 100", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char text[256] = "t,v", wanted[256];
        int t = 1500000000;
        for (const char *at = cases[i].values; *at; at += strcspn(at, " "), at += *at == ' ')
            sprintf(text + strlen(text), "\n%d,%.*s", ++t, (int)strcspn(at, " "), at);
        cleat_series_options options = test_tiny_series();
        test_keep_log();
        cleat_dataset_destroy(test_must_open_series(text, &options));
        const char *logged = test_logged(), *named = cases[i].named;
        if (named && strncmp(named, "warning: IN", 11) == 0) {
            snprintf(wanted, sizeof wanted, "warning: %s%s", test_path("in.csv"), named + 11);
            named = wanted;
        }
        if (named ? !strstr(logged, named) : strstr(logged, "far outside") != NULL)
            fail_msg("%s: %s", cases[i].values, logged);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_of_numbers_are_found),
        cmocka_unit_test(a_file_to_predict_has_thousands),
        cmocka_unit_test(values_far_outside_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, test_remove_all);
}
