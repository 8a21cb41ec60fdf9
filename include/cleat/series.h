/* Time series: sliding windows over the rows of a CSV file. */
#ifndef CLEAT_SERIES_H
#define CLEAT_SERIES_H

#include "cleat/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Datasets of sliding windows over a CSV file with a time column and numeric columns: one row per time step,
 * oldest row first. With `series_column` the file holds many series, whose rows may interleave.
 *
 * Each sample is identified by its last known row, the last row of its look-back window. Letters: T lookback,
 * H horizon, F features, C = F x resolutions channels, K targets. The fields are, in this order, and all
 * standardised as (value - mean) / std of their column:
 *   x       f32 [T, C]  look-back window: the features at the step of the file, then at each further
 *                       resolution
 *   target  f32 [H, K]  targets of the H rows after the last known row
 *   last    f32 [K]     targets at the last known row: the persistence forecast
 *   season  f32 [H, K]  the latest known value a whole number of seasons earlier: the seasonal
 *                       persistence forecast
 * cleat_dataset_length is T for every sample. The id is the ISO time of the last known row.
 *
 * Resampling: a step of a resolution of m file steps is the mean of m rows. Steps are counted back from the
 * last known row: step j covers the m rows that end (T-1-j) m rows before it. Every interval is therefore
 * complete, and no row after the last known row is read. All resolutions use the mean and std of the file's
 * rows.
 *
 * Splits are consecutive in time: training rows, then validation rows, then test rows; later rows are not
 * used. A sample belongs to the split that contains all its targets; cleat_dataset_make_whole removes the
 * borders. The look-back window may extend into the previous split, as is usual for these data. Means and
 * (biased) standard deviations are those of the training rows only; the std of a column that is constant
 * there is 1.
 *
 * Many series: each has its own splits (fractions; of at least one horizon), means and standard deviations, and no
 * window crosses from one to another. A series that the training did not have is standardised by its own rows. Series
 * with fewer rows than a window are left out, with a warning. */

/* Handling of consecutive rows that are not one step apart. */
typedef enum cleat_series_gaps {
    CLEAT_GAPS_ERROR, /* an error */
    CLEAT_GAPS_FILL,  /* missing rows are inserted as copies of the row before; more than half of a series: an error */
    CLEAT_GAPS_SKIP,  /* windows that contain a gap are omitted */
    CLEAT_GAPS_ROWS   /* rows are consecutive steps regardless of their times, for example business days */
} cleat_series_gaps;

/* Steps between rows. */
typedef enum cleat_series_rule {
    CLEAT_STEP_FIRST, /* the interval of the first two rows; with CLEAT_GAPS_ERROR, business days if only they fit */
    CLEAT_STEP_AUTO,  /* the rule that most rows follow: the median interval, calendar months, or business days */
    CLEAT_STEP_DAY,
    CLEAT_STEP_BUSINESS_DAY, /* Monday to Friday */
    CLEAT_STEP_WEEK,
    CLEAT_STEP_MONTH, /* on the same day, which is the last one in shorter months, or always on the last one */
    CLEAT_STEP_QUARTER,
    CLEAT_STEP_YEAR
} cleat_series_rule;

/* Handling of cells that are empty or contain nan, na, n/a, null or none. */
typedef enum cleat_series_missing {
    CLEAT_MISSING_ERROR, /* an error */
    CLEAT_MISSING_FILL,  /* value of the same column in the row before */
    CLEAT_MISSING_SKIP   /* windows that contain such a row are omitted; means are over the other rows */
} cleat_series_missing;

/* Reference value that is subtracted from x and target. It helps networks at levels outside the training
 * range. */
typedef enum cleat_series_anchor {
    CLEAT_SERIES_ANCHOR_NONE,
    CLEAT_SERIES_ANCHOR_LAST,   /* for both x and target: the last known row */
    CLEAT_SERIES_ANCHOR_SEASON, /* for x: the last known row; for target: `season` */
    CLEAT_SERIES_ANCHOR_AUTO    /* one of the two, chosen from the training rows */
} cleat_series_anchor;

/* For lookback, horizon and season: chosen from the training rows, and logged. The season is the period of the
 * calendar (a day, a week, a year, ...) with the highest autocorrelation of the differences, or the one that is
 * repeated with the smallest error; the horizon is the usual one of the step, the lookback two seasons or four
 * horizons, as far as the rows suffice. Not for evaluations and forecasts. */
enum { CLEAT_SERIES_AUTO = -1 };

enum { CLEAT_SERIES_MAX_RESAMPLES = 8 };

typedef struct cleat_series_options {
    const char *file;          /* file name within `path` if that is a folder; NULL or "": its only *.csv */
    const char *time_column;   /* NULL or "": the first column */
    const char *series_column; /* names the series of each row; NULL or "": the file holds one series */
    const char *features;      /* comma-separated names; NULL or "": all columns except the time */
    const char *targets;       /* comma-separated names; NULL or "": all features */
    /* Seconds per step of each further resolution; each is a multiple of the file's step. */
    int64_t resample_seconds[CLEAT_SERIES_MAX_RESAMPLES];
    size_t n_resamples;
    /* Seconds between rows. 0: the interval between the first two rows, or with CLEAT_GAPS_ROWS the shortest
     * interval between rows. */
    int64_t step;
    cleat_series_rule rule;             /* unless `step` is set; with CLEAT_GAPS_ROWS only of times past the end */
    int64_t lookback, horizon;          /* T steps at each resolution, H rows */
    int64_t stride;                     /* rows from one training window to the next */
    int64_t eval_stride;                /* rows from one validation or test window to the next */
    int64_t season;                     /* rows; 0: no season, `season` repeats `last` */
    double val_fraction, test_fraction; /* fractions of the rows, at the end of the file */
    /* Row counts that replace the fractions; all 0: the fractions apply. */
    int64_t train_rows, val_rows, test_rows;
    cleat_series_anchor anchor;
    cleat_series_gaps gaps;
    cleat_series_missing missing;
    /* Maximum number of consecutive rows, or cells of a column, that are filled; more are an error. */
    int64_t longest_fill;
    /* Folder of an earlier cleat_dataset_save: columns, means, standard deviations, step and resolutions are
     * read from its series.csv, exact to the bit. NULL or "": fitted to the training rows. */
    const char *fitted;
    /* For evaluation of a trained model; requires `fitted`. A split may be empty. If all splits are empty, or
     * the row counts exceed the rows of the file, the dataset is whole (cleat_dataset_is_whole): all windows,
     * eval_stride rows apart, belong to CLEAT_SPLIT_TEST. */
    bool evaluation;
    /* For prediction; requires `fitted`. The windows extend to the last row; unknown targets are 0. All
     * samples belong to CLEAT_SPLIT_TEST. */
    bool forecast;
} cleat_series_options;

/* lookback 96, horizon 24, strides 1, season 0, no anchor, val_fraction 0.1, test_fraction 0.1,
 * longest_fill 24; gaps and missing cells are errors. */
CLEAT_API cleat_series_options cleat_series_defaults(void);

/* Opens `path`, a CSV file (RFC 4180, UTF-8) or a folder that contains one. Times are YYYY-MM-DD, YYYY-MM,
 * YYYY/MM/DD, D.M.YYYY (D/M/YYYY and D-M-YYYY if a day above 12 shows the order), with or without HH:MM[:SS] and Z or
 * +hh:mm, or Unix seconds from 1e8 on; all rows use the same kind. Times with one offset are those of its clock; if
 * daylight saving changes it, too, unless this makes their steps less regular than in UTC. `options` NULL: the
 * defaults. The file is read in parts, one of many series as a whole; the dataset takes 4 bytes per used cell and
 * resolution, 9 bytes per row and 30 bytes per sample. CLEAT_ERR_FORMAT, with file:line, cause and remedy: malformed
 * input. CLEAT_ERR_ARGUMENT: options that are invalid or do not match the file. The numbers of filled and omitted rows,
 * cells and windows are logged as a warning. */
CLEAT_API cleat_status cleat_series_open(const char *path, const cleat_series_options *options, cleat_dataset **dataset,
                                         cleat_error *error);
/* Sizes and counts of a series dataset. */
typedef struct cleat_series_info {
    int64_t lookback, horizon, season, step; /* T, H; rows; seconds */
    cleat_series_anchor anchor;
    int64_t features, resolutions, channels, targets; /* F; resolutions, including the file's; C; K */
    int64_t rows;                                     /* including filled rows */
    int64_t split_rows[CLEAT_SPLITS], windows[CLEAT_SPLITS];
    int64_t gaps;         /* Places where consecutive rows are not one step apart; 0 with CLEAT_GAPS_ROWS. */
    int64_t filled_rows;  /* inserted rows */
    int64_t missing;      /* empty cells of used columns in the file */
    int64_t left_out;     /* windows omitted because of a gap or a missing cell */
    int64_t series;       /* number of series; 1 without a series column */
    int64_t short_series; /* series with fewer rows than a window */
} cleat_series_info;
/* Returns the values counted when the dataset was opened; all 0 if it is not a series. */
CLEAT_API cleat_series_info cleat_series_describe(const cleat_dataset *dataset);

/* Names of feature or target columns, borrowed; NULL past the last one, or if the dataset is not a series. */
CLEAT_API const char *cleat_series_feature(const cleat_dataset *dataset, size_t feature);
CLEAT_API const char *cleat_series_target(const cleat_dataset *dataset, size_t target);
/* Mean and std of a target column in the units of the file: value = standardised value x std + mean; of many series,
 * those of the first. 0 past the last target. */
CLEAT_API double cleat_series_mean(const cleat_dataset *dataset, size_t target);
CLEAT_API double cleat_series_std(const cleat_dataset *dataset, size_t target);
/* The same for the series of a sample. */
CLEAT_API void cleat_series_scale(const cleat_dataset *dataset, size_t sample, size_t target, double *mean,
                                  double *std);
/* Name of the sample's series, borrowed; NULL without a series column. */
CLEAT_API const char *cleat_series_name(const cleat_dataset *dataset, size_t sample);
/* Seconds per step of a resolution; 0 is that of the file. Returns 0 past the last resolution. */
CLEAT_API int64_t cleat_series_resample_seconds(const cleat_dataset *dataset, size_t resample);
/* Time, in seconds since 1970-01-01 00:00 on the file's clock, of the row `ahead` rows after the sample's last known
 * row (0: that row; 1 .. H: its targets). Rows past the end of the file are one step apart: seconds, calendar months,
 * or business days. With CLEAT_GAPS_ROWS, unless a rule is set, the step is the rule that gives most times of the file:
 * seconds, calendar months, or the next time of the week at which rows occur (business days, trading hours); INT64_MIN
 * (unknown) if a row contradicts the rule, or it leaves out more than one of 16. */
CLEAT_API int64_t cleat_series_time(const cleat_dataset *dataset, size_t sample, int64_t ahead);
/* What to write behind these times, borrowed: "Z", an offset from UTC such as "+05:30", or "" (unknown, or those of a
 * clock whose offset changes). */
CLEAT_API const char *cleat_series_zone(const cleat_dataset *dataset);
/* Number of rows of the sample's `target` that the file contains: H, or fewer at the end of a forecast. */
CLEAT_API int64_t cleat_series_known(const cleat_dataset *dataset, size_t sample);
/* Formats a time as "2016-07-01T00:00:00" into `text`, which is returned. Times outside the years 1 to
 * 9999 are clamped. */
enum { CLEAT_TIME_TEXT = 20 };
CLEAT_API const char *cleat_time_text(int64_t seconds, char text[CLEAT_TIME_TEXT]);

#ifdef __cplusplus
}
#endif
#endif
