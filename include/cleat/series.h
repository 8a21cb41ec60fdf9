/* Time series: windows of a CSV file. */
#ifndef CLEAT_SERIES_H
#define CLEAT_SERIES_H

#include "cleat/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Windows of a CSV file with a time column and number columns, one row a step, oldest first.
 *
 * A sample is a moment: its LAST KNOWN ROW. Letters: T lookback, H horizon, F features, C = F x frames
 * channels, K targets. Fields, in this order, all standardised (value - mean) / std of their column:
 *   x       f32 [T, C]  look-back: the features of the file's own frame, then those of each further frame
 *   target  f32 [H, K]  the H rows behind the last known one
 *   last    f32 [K]     targets at the last known row: the persistence forecast
 *   season  f32 [H, K]  the latest known value a whole number of seasons earlier: the seasonal
 *                       persistence forecast
 * cleat_dataset_length is T for every sample; the id is the ISO time of the last known row.
 *
 * Frames: a step of a frame of m file steps is the mean of m rows. They are counted back from the last
 * known row, so step j covers the m rows that end (T-1-j) m rows before it, and every interval is
 * complete: nothing behind the last known row is ever read. Coarse frames share mean and std with the
 * file's own.
 *
 * Splits are in order of time: training, then validation, then test rows; rows behind them are not used. A
 * sample is of the split in which all its targets lie; cleat_dataset_make_whole lifts the borders.
 * Look-back may reach over the border into the split before, as is usual for these data. Means and
 * (biased) deviations are those of the training rows only; a column that is constant there has std 1. */

/* Treatment of rows that are not one step apart. */
typedef enum cleat_series_gaps {
    CLEAT_GAPS_ERROR, /* refused */
    CLEAT_GAPS_FILL,  /* the missing rows repeat the row before them */
    CLEAT_GAPS_SKIP,  /* windows across a gap are left out */
    CLEAT_GAPS_ROWS   /* rows are consecutive steps whatever their times: business days */
} cleat_series_gaps;

/* Treatment of cells that are empty or contain nan, na, n/a, null or none. */
typedef enum cleat_series_missing {
    CLEAT_MISSING_ERROR, /* refused */
    CLEAT_MISSING_FILL,  /* the column's value of the row before */
    CLEAT_MISSING_SKIP   /* windows that touch such a row are left out; means are those of the other rows */
} cleat_series_missing;

/* Reference that is subtracted from x and target. It helps networks on levels outside the training range. */
typedef enum cleat_series_anchor {
    CLEAT_SERIES_ANCHOR_NONE,
    CLEAT_SERIES_ANCHOR_LAST,  /* both from the last known row */
    CLEAT_SERIES_ANCHOR_SEASON /* x from the last known row, target from `season` */
} cleat_series_anchor;

enum { CLEAT_SERIES_MAX_RESAMPLES = 8 };

typedef struct cleat_series_options {
    const char *file;        /* name within `path` where that is a folder; NULL or "": its only *.csv */
    const char *time_column; /* NULL or "": the first column */
    const char *features;    /* names between commas; NULL or "": all columns but the time */
    const char *targets;     /* names between commas; NULL or "": all features */
    /* seconds per step of each further resolution; multiples of the step */
    int64_t resample_seconds[CLEAT_SERIES_MAX_RESAMPLES];
    size_t n_resamples;
    /* seconds between rows; 0: as between the first two rows, or with CLEAT_GAPS_ROWS the least there is */
    int64_t step;
    int64_t lookback, horizon;          /* T of each frame's steps, H rows */
    int64_t stride;                     /* rows from one training window to the next */
    int64_t eval_stride;                /* rows from one validation or test window to the next */
    int64_t season;                     /* rows; 0: no season, `season` repeats `last` */
    double val_fraction, test_fraction; /* of the rows, at their end */
    /* row counts that replace the fractions; all 0: the fractions */
    int64_t train_rows, val_rows, test_rows;
    cleat_series_anchor anchor;
    cleat_series_gaps gaps;
    cleat_series_missing missing;
    /* Maximum number of consecutive rows, or cells of a column, that are filled; more is an error. */
    int64_t longest_fill;
    /* Folder of an earlier cleat_dataset_save: columns, means, deviations, step and frames are read from
     * its series.csv, bit by bit. NULL or "": fitted from the training rows. */
    const char *fitted;
    /* of a trained model, needs `fitted`: a split may have no window. Where no split has one, or the row
     * counts ask for more rows than there are, the file is whole (cleat_dataset_is_whole): every window,
     * eval_stride rows apart, is of CLEAT_SPLIT_TEST */
    bool evaluation;
    /* for prediction, needs `fitted`: every window up to the last row, whether its targets are known or
     * not (unknown ones are 0); all samples are of CLEAT_SPLIT_TEST */
    bool forecast;
} cleat_series_options;

/* lookback 96, horizon 24, strides 1, season 0, no anchor, val_fraction 0.1, test_fraction 0.1,
 * longest_fill 24; gaps and missing cells are errors. */
CLEAT_API cleat_series_options cleat_series_defaults(void);

/* Reads `path`, a CSV file (RFC 4180, UTF-8) or a folder with one. Times are YYYY-MM-DD, YYYY-MM-DD
 * HH:MM[:SS] (or with a T), the same with Z or +hh:mm, or Unix seconds; all rows of one kind. `options`
 * NULL: the defaults. Memory: 4 bytes a used cell and frame, 9 bytes a row, 24 bytes a sample; the file is
 * read in parts. CLEAT_ERR_FORMAT with file:line, cause and remedy for malformed input, CLEAT_ERR_ARGUMENT
 * for options that make no sense or do not suit the file. What is filled or left out is counted and logged
 * as a warning. */
CLEAT_API cleat_status cleat_series_open(const char *path, const cleat_series_options *options, cleat_dataset **dataset,
                                         cleat_error *error);
/* Sizes and counts of a series. All 0 for a dataset of another kind. */
typedef struct cleat_series_info {
    int64_t lookback, horizon, season, step;          /* T, H; rows; seconds */
    int64_t features, resolutions, channels, targets; /* F, the file's own included, C, K */
    int64_t rows;                                     /* filled ones included */
    int64_t split_rows[CLEAT_SPLITS], windows[CLEAT_SPLITS];
    int64_t gaps;        /* places where rows do not follow by one step (not counted with CLEAT_GAPS_ROWS) */
    int64_t filled_rows; /* inserted rows */
    int64_t missing;     /* empty cells of used columns in the file */
    int64_t left_out;    /* windows that touch a gap or a missing cell */
} cleat_series_info;
/* Counted when the dataset was opened; all 0 for a dataset of another kind. */
CLEAT_API cleat_series_info cleat_series_describe(const cleat_dataset *dataset);

/* Borrowed names; NULL behind the last one, and for a dataset of another kind. */
CLEAT_API const char *cleat_series_feature(const cleat_dataset *dataset, size_t feature);
CLEAT_API const char *cleat_series_target(const cleat_dataset *dataset, size_t target);
/* Of target k, in the units of the file: value = standardised x std + mean. 0 behind the last one. */
CLEAT_API double cleat_series_mean(const cleat_dataset *dataset, size_t target);
CLEAT_API double cleat_series_std(const cleat_dataset *dataset, size_t target);
/* Seconds a step of frame f, 0 being the file's own. 0 behind the last one. */
CLEAT_API int64_t cleat_series_resample_seconds(const cleat_dataset *dataset, size_t resample);
/* The time of row `ahead` rows behind the sample's last known one (0: that one; 1 .. H: its targets) in
 * Unix seconds. Rows behind the end of the file are a step apart. */
CLEAT_API int64_t cleat_series_time(const cleat_dataset *dataset, size_t sample, int64_t ahead);
/* Rows of the sample's `target` that the file holds: H, or fewer at the end of a forecast. */
CLEAT_API int64_t cleat_series_known(const cleat_dataset *dataset, size_t sample);
/* "2016-07-01T00:00:00", in `text`, which is returned. In UTC where the file gave offsets or Unix seconds,
 * else as in the file. Times outside the years 1 to 9999 come out as their limits. */
enum { CLEAT_TIME_TEXT = 20 };
CLEAT_API const char *cleat_time_text(int64_t seconds, char text[CLEAT_TIME_TEXT]);

#ifdef __cplusplus
}
#endif
#endif
