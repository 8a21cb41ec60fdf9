/* Internal definitions for time series: columns, table, preprocessing state, windows, and the dataset. */
#ifndef CLEAT_SRC_SERIES_H
#define CLEAT_SRC_SERIES_H

#include "cleat/series.h"
#include "core/name_list.h"
#include "data/common/csv.h"
#include "data/common/time.h"
#include "data/dataset.h"
#include "data/series/calendar.h"

/* Names of the enums' values in settings, in their order; each list ends in NULL. */
extern const char *const cleat_series_gaps_names[],
    *const cleat_series_missing_names[], *const cleat_series_anchor_names[], *const cleat_series_rule_names[];

/* The columns in use: the features in their order, then the targets that are not features. */
typedef struct cleat_series_columns {
    cleat_name_list used;
    size_t features;
    size_t *target; /* [targets], indices into `used` */
    size_t targets;
    int time, series; /* indices of columns of the file; series -1: none */
    int *at;          /* [used.count], indices of columns of the file */
} cleat_series_columns;

typedef struct cleat_series_preprocessor cleat_series_preprocessor;

/* Finds the columns requested by the options (or those of `fitted`, unless NULL) in the header, csv's current
 * record. */
cleat_status cleat_series_columns_choose(const cleat_csv *csv, const cleat_series_options *options,
                                         const cleat_series_preprocessor *fitted, cleat_series_columns *columns,
                                         cleat_error *error);
void cleat_series_columns_free(cleat_series_columns *columns);
/* Checks, for a training, that the file of `path` exists and has the columns, without reading its rows (open.c). */
cleat_status cleat_series_check_columns(const char *path, const cleat_series_options *options, cleat_error *error);

/* flags of a row: a gap precedes it; it has a cell without a value */
enum { CLEAT_ROW_BREAK = 1, CLEAT_ROW_MISSING = 2 };

/* Rows [begin, end) of the table: one series. */
typedef struct cleat_series_part {
    int64_t begin, end;
    char *name;              /* owned; NULL without a series column */
    cleat_calendar calendar; /* owned */
} cleat_series_part;

typedef struct cleat_series_table {
    cleat_series_columns columns;
    cleat_series_part *series; /* [n_series] */
    size_t n_series;
    int64_t rows, capacity;
    float *cells;            /* [rows, columns.used.count]; NaN where missing */
    int64_t *times;          /* [rows] */
    uint8_t *flags;          /* [rows] */
    cleat_calendar calendar; /* of the first series, borrowed from it */
    int64_t gaps, filled_rows, filled_weekends, missing;
    char thousands; /* mark between thousands in the numbers of the file; 0: none */
    char zone[7];   /* of the times: "Z", an offset such as "+05:30", or "": unknown, or the clock's in two offsets */
} cleat_series_table;

cleat_status cleat_series_read(const char *path, const cleat_series_options *options,
                               const cleat_series_preprocessor *fitted, cleat_series_table *table, cleat_error *error);
void cleat_series_table_free(cleat_series_table *table);

/* Replaces the automatic values of the options by those that suit the table, whose cells are not standardised yet;
 * logs them (automatic.c). */
cleat_status cleat_series_choose(const char *path, const cleat_series_table *table, cleat_series_options *options,
                                 cleat_error *error);
/* Number of training rows of a series of `rows` rows (windows.c). */
int64_t cleat_series_training_rows(const cleat_series_options *options, int64_t rows);

struct cleat_series_preprocessor {
    cleat_name_list features, targets;
    cleat_name_list series;  /* of many series */
    double *mean, *std;      /* [1 + series.count, count]: of the features and targets, then of those of each series */
    size_t count;            /* features + targets */
    size_t values, capacity; /* of mean and std */
    int64_t step;            /* in seconds */
    int months;              /* calendar months per step; 0: none */
    bool business;           /* the step is a business day */
    char thousands;          /* as of the table */
    int64_t resample_seconds[CLEAT_SERIES_MAX_RESAMPLES];
    size_t n_resamples;
};

/* Sets mean and std [columns.used.count] of each column over the rows of a part. */
cleat_status cleat_series_fit_preprocessor(const char *path, const cleat_series_table *table,
                                           const cleat_series_part *rows, double *mean, double *std,
                                           cleat_error *error);
/* Appends the mean and std of a column of a series. */
cleat_status cleat_series_preprocessor_add_value(cleat_series_preprocessor *fitted, double mean, double std,
                                                 cleat_error *error);
cleat_status cleat_series_preprocessor_write(const char *folder, const cleat_series_preprocessor *fitted,
                                             cleat_error *error);
/* Reads FOLDER/series.csv. The caller frees *fitted. */
cleat_status cleat_series_preprocessor_read(const char *folder, cleat_series_preprocessor *fitted, cleat_error *error);
cleat_status cleat_series_preprocessor_add(cleat_series_preprocessor *fitted, bool target, const char *name,
                                           double mean, double std, cleat_error *error);
void cleat_series_preprocessor_free(cleat_series_preprocessor *fitted);

typedef struct cleat_series_windows {
    int64_t begin[CLEAT_SPLITS], end[CLEAT_SPLITS]; /* rows [begin, end) of each split */
    uint32_t *last;                                 /* [count], last known row of each sample, by split and row */
    size_t count;
    int64_t of_split[CLEAT_SPLITS];
    int64_t left_out;              /* number of windows with a gap or a missing cell */
    int64_t short_series, trained; /* series with fewer rows than a window, and those with training windows */
    bool whole;                    /* no splits: all rows and windows belong to CLEAT_SPLIT_TEST */
} cleat_series_windows;

/* Divides the rows into splits and lists the samples; the lookback of each takes `reach` rows up to the last known one.
 * No splits if windows->whole, which is set here for an evaluation of a file that has fewer rows than the row counts in
 * `options`. The caller frees windows->last (cleat_free). */
cleat_status cleat_series_windows_find(const char *path, const cleat_series_options *options,
                                       const cleat_series_table *table, int64_t reach, cleat_series_windows *windows,
                                       cleat_error *error);

/* rows_of [n]: the number of rows per step of each time frame. */
cleat_status cleat_series_resample_rows(const char *path, const int64_t *resample_seconds, size_t n,
                                        const cleat_calendar *calendar, int64_t rows, int64_t *rows_of,
                                        cleat_error *error);
/* means [rows, features]: means of the `per` rows that end with each row; rows with fewer are not written. */
cleat_status cleat_series_trailing_means(const cleat_series_table *table, int64_t per, float *means,
                                         cleat_error *error);

enum { CLEAT_SERIES_FIELDS = 4 }; /* x, target, last, season */

typedef struct cleat_series {
    cleat_dataset base;       /* first, so that a cleat_dataset * can be cast to this type */
    cleat_dataset_class type; /* a copy of the class, because the shapes of its fields differ */
    cleat_field fields[CLEAT_SERIES_FIELDS];
    cleat_series_table table; /* standardized */
    double *mean, *std;       /* [table.n_series, columns.used.count] */
    /* seconds, and rows, per step of each coarser time frame */
    int64_t resample_seconds[CLEAT_SERIES_MAX_RESAMPLES], rows_of[CLEAT_SERIES_MAX_RESAMPLES];
    float *means[CLEAT_SERIES_MAX_RESAMPLES]; /* [rows, features] of each coarser time frame */
    size_t n_resamples;
    cleat_series_windows windows;
    char (*ids)[CLEAT_TIME_TEXT + 6]; /* [count], with the zone */
    char *path;                       /* of the file, for messages; owned */
    int64_t lookback, horizon, season, eval_stride;
    cleat_series_anchor anchor;
    bool forecast, next_only;
    double *errors; /* [H, K], see cleat_series_errors */
} cleat_series;

/* The last `count` known values of a target of a sample, in the units of the file; NaN where a cell is
 * missing or the file begins later. The dataset is a series. */
void cleat_series_past(const cleat_dataset *dataset, size_t sample, size_t target, int64_t count, double *values);

/* Root mean square errors [H, K] of the forecasts of each step and target in the last evaluation of the training, in
 * standard deviations of the series; the first is not finite: unknown. NULL: not a series. */
double *cleat_series_errors(const cleat_dataset *dataset);
/* Reads them from a checkpoint; without the file they stay unknown (fit.c). */
#define CLEAT_SERIES_ERRORS "series_errors.json"
cleat_status cleat_series_errors_read(const char *folder, cleat_series *s, cleat_error *error);

/* Implements cleat_dataset_make_whole (open.c). */
cleat_status cleat_series_make_whole(cleat_dataset *dataset, cleat_error *error);

/* Completes the dataset of a series whose table and sizes are set: its class, fields and their shapes. */
void cleat_series_dataset_init(cleat_series *s);

#endif
