/* Time series between file and dataset: columns, the table that is read, what is fitted from it. */
#ifndef CLEAT_SRC_SERIES_H
#define CLEAT_SRC_SERIES_H

#include "cleat/series.h"
#include "data/common/csv.h"
#include "data/common/name_list.h"
#include "data/common/time.h"
#include "data/dataset.h"

/* --- columns (columns.c) ------------------------------------------------------------------------------- */

/* The columns in use: the features in their order, then targets that are no features. */
typedef struct cleat_series_columns {
    cleat_name_list used;
    size_t features;
    size_t *target; /* [targets] index into `used` */
    size_t targets;
    int time; /* column of the file */
    int *at;  /* [used.count] columns of the file */
} cleat_series_columns;

typedef struct cleat_series_preprocessor cleat_series_preprocessor;

/* Finds the columns that options (or `fitted`, where not NULL) ask for in the header, csv's current record. */
cleat_status cleat_series_columns_choose(const cleat_csv *csv, const cleat_series_options *options,
                                         const cleat_series_preprocessor *fitted, cleat_series_columns *columns,
                                         cleat_error *error);
void cleat_series_columns_free(cleat_series_columns *columns);

/* --- the table (csv.c) --------------------------------------------------------------------------------- */

enum { CLEAT_ROW_BREAK = 1, CLEAT_ROW_MISSING = 2 }; /* a gap lies before the row; it has a cell without a value */

typedef struct cleat_series_table {
    cleat_series_columns columns;
    int64_t rows, capacity;
    float *cells;   /* [rows, columns.used.count]; NaN where missing */
    int64_t *times; /* [rows] */
    uint8_t *flags; /* [rows] */
    int64_t step;   /* seconds */
    int64_t gaps, filled_rows, missing;
} cleat_series_table;

cleat_status cleat_series_read(const char *path, const cleat_series_options *options,
                               const cleat_series_preprocessor *fitted, cleat_series_table *table, cleat_error *error);
void cleat_series_table_free(cleat_series_table *table);

/* --- what is fitted (fit.c) ---------------------------------------------------------------------------- */

struct cleat_series_preprocessor {
    cleat_name_list features, targets;
    double *mean, *std;     /* [features + targets] in that order */
    size_t count, capacity; /* of both */
    int64_t step;
    int64_t resample_seconds[CLEAT_SERIES_MAX_RESAMPLES];
    size_t n_resamples;
};

/* Mean and std [columns.used.count] of each column over rows [0, rows). */
cleat_status cleat_series_fit_preprocessor(const char *path, const cleat_series_table *table, int64_t rows,
                                           double *mean, double *std, cleat_error *error);
cleat_status cleat_series_preprocessor_write(const char *folder, const cleat_series_preprocessor *fitted,
                                             cleat_error *error);
/* Of FOLDER/series.csv. */
cleat_status cleat_series_preprocessor_read(const char *folder, cleat_series_preprocessor *fitted, cleat_error *error);
cleat_status cleat_series_preprocessor_add(cleat_series_preprocessor *fitted, bool target, const char *name,
                                           double mean, double std, cleat_error *error);
void cleat_series_preprocessor_free(cleat_series_preprocessor *fitted);

/* --- windows (windows.c) ------------------------------------------------------------------------------- */

typedef struct cleat_series_windows {
    int64_t begin[CLEAT_SPLITS], end[CLEAT_SPLITS]; /* rows [begin, end) of each split */
    uint32_t *last;                                 /* [count] the samples' last known rows, ascending */
    size_t count;
    int64_t of_split[CLEAT_SPLITS];
    int64_t left_out; /* touch a gap or a missing cell */
} cleat_series_windows;

/* Sets the borders of the splits. */
cleat_status cleat_series_borders(const char *path, const cleat_series_options *options, int64_t rows,
                                  cleat_series_windows *windows, cleat_error *error);
/* Lists the samples, whose look-back takes `reach` rows up to the last known one. windows->last is the caller's
 * (cleat_free). */
cleat_status cleat_series_windows_find(const char *path, const cleat_series_options *options,
                                       const cleat_series_table *table, int64_t reach, cleat_series_windows *windows,
                                       cleat_error *error);

/* --- frames (resample.c) ------------------------------------------------------------------------------- */

/* Rows a step of each frame takes, rows_of [n]. */
cleat_status cleat_series_resample_rows(const char *path, const int64_t *resample_seconds, size_t n, int64_t step,
                                        int64_t rows, int64_t *rows_of, cleat_error *error);
/* means [rows, features]: of the `per` rows that end with each row; 0 where there are fewer. */
cleat_status cleat_series_trailing_means(const cleat_series_table *table, int64_t per, float *means,
                                         cleat_error *error);

/* --- the dataset (dataset.c) ---------------------------------------------------------------------------- */

enum { CLEAT_SERIES_FIELDS = 4 }; /* x, target, last, season */

typedef struct cleat_series {
    cleat_dataset base;       /* first: a cleat_dataset * is one of these */
    cleat_dataset_class type; /* its own, for the shapes of its fields */
    cleat_field fields[CLEAT_SERIES_FIELDS];
    cleat_series_table table; /* standardised */
    double *mean, *std;       /* [columns.used.count] */
    int64_t resample_seconds[CLEAT_SERIES_MAX_RESAMPLES],
        rows_of[CLEAT_SERIES_MAX_RESAMPLES];  /* seconds, and rows, a step */
    float *means[CLEAT_SERIES_MAX_RESAMPLES]; /* [rows, features] of each further frame */
    size_t n_resamples;
    cleat_series_windows windows;
    char (*ids)[CLEAT_TIME_TEXT]; /* [count] */
    int64_t lookback, horizon, season;
    cleat_series_anchor anchor;
    bool forecast;
} cleat_series;

/* Makes a series whose table and sizes are set a dataset: its class, fields and their shapes. */
void cleat_series_dataset_init(cleat_series *s);

#endif
