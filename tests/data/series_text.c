/* Implements the short series of the data tests. */
#include "series_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "data/series/series.h"
#include "files.h"

cleat_series_options test_tiny_series(void) {
    cleat_series_options options = cleat_series_defaults();
    options.lookback = 2;
    options.horizon = 1;
    options.val_fraction = options.test_fraction = 0;
    options.longest_fill = 2;
    return options;
}

cleat_status test_open_series(const char *text, const cleat_series_options *options, cleat_dataset **dataset,
                              cleat_error *error) {
    const char *path = test_path("in.csv");
    test_write_text(path, text);
    return cleat_series_open(path, options, dataset, error);
}

cleat_dataset *test_must_open_series(const char *text, const cleat_series_options *options) {
    cleat_dataset *dataset = NULL;
    cleat_error error = {0};
    if (test_open_series(text, options, &dataset, &error) != CLEAT_OK) fail_msg("%s", error.text);
    return dataset;
}

double test_last_value(const cleat_dataset *dataset, size_t sample) {
    float last;
    void *slots[4] = {NULL, NULL, &last, NULL};
    cleat_error error;
    assert_int_equal(cleat_dataset_fill(dataset, sample, 2, NULL, slots, &error), CLEAT_OK);
    return last * cleat_series_std(dataset, 0) + cleat_series_mean(dataset, 0);
}
