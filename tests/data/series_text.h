/* Time series of a few rows, written as text in a test. */
#ifndef CLEAT_TESTS_DATA_SERIES_TEXT_H
#define CLEAT_TESTS_DATA_SERIES_TEXT_H

#include "cleat/data.h"

/* Options: a look-back of two rows, a horizon of one; all rows are for training. */
cleat_series_options test_tiny_series(void);
/* Writes `text` to in.csv in the temporary folder and opens it. */
cleat_status test_open_series(const char *text, const cleat_series_options *options, cleat_dataset **dataset,
                              cleat_error *error);
/* Like test_open_series, but fails the test unless the file is accepted. The caller destroys the result. */
cleat_dataset *test_must_open_series(const char *text, const cleat_series_options *options);
/* The value of the single column in a sample's last known row, in the file's units. */
double test_last_value(const cleat_dataset *dataset, size_t sample);

#endif
