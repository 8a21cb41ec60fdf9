/* Opens a series: finds the file, reads and standardizes it, and creates the dataset. */
#include "data/series/series.h"

#include "core/files.h"
#include "core/memory.h"
#include "data/common/csv_stream.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 1 << 20 };

/* Means and standard deviations of the used columns: fitted to the training rows, or taken from `fitted`. */
static cleat_status find_means(const char *path, const cleat_series_options *options, cleat_series *s,
                               const cleat_series_preprocessor *fitted, cleat_error *error) {
    const cleat_series_columns *columns = &s->table.columns;
    const size_t width = columns->used.count, n = s->table.n_series;
    size_t unknown = 0;
    cleat_status status = CLEAT_OK;
    s->mean = cleat_alloc(n * width, sizeof *s->mean);
    s->std = cleat_alloc(n * width, sizeof *s->std);
    if (!s->mean || !s->std) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for %zu means", path, n * width);
    for (size_t p = 0; p < n && !status; ++p) {
        const cleat_series_part *part = &s->table.series[p];
        const cleat_name_list *names = fitted ? &fitted->series : NULL;
        double *mean = s->mean + p * width, *std = s->std + p * width;
        int at = 0;
        if (fitted && part->name)
            at = p < names->count && strcmp(names->names[p], part->name) == 0 ? (int)p
                                                                              : cleat_name_list_find(names, part->name);
        for (size_t i = 0; fitted && at >= 0 && i < fitted->count; ++i) {
            size_t c = i < columns->features ? i : columns->target[i - columns->features];
            const size_t value = i + (part->name ? (size_t)at + 1 : 0) * fitted->count;
            mean[c] = fitted->mean[value];
            std[c] = fitted->std[value];
        }
        if (fitted && at >= 0) continue;
        unknown += fitted != NULL;
        cleat_series_part rows = {.begin = part->begin, .end = part->end, .name = part->name};
        const int64_t training = cleat_series_training_rows(options, part->end - part->begin);
        if (!s->windows.whole && !options->forecast && training) rows.end = part->begin + training;
        status = cleat_series_fit_preprocessor(path, &s->table, &rows, mean, std, error);
    }
    if (!status && unknown)
        cleat_log(CLEAT_LOG_WARNING,
                  "%s: %zu of %zu series are not in the training; they are standardised by their own rows", path,
                  unknown, n);
    return status;
}

/* Cells without a value become 0, the mean; no window reads them. */
static cleat_status standardise(const char *path, cleat_series *s, cleat_error *error) {
    const cleat_series_table *t = &s->table;
    size_t width = t->columns.used.count;
    char text[CLEAT_TIME_TEXT];
    for (int64_t r = 0, p = 0; r < t->rows; ++r) {
        while (r >= t->series[p].end) ++p;
        const double *mean = s->mean + (size_t)p * width, *std = s->std + (size_t)p * width;
        for (size_t c = 0; c < width; ++c) {
            float *cell = &t->cells[(size_t)r * width + c], value = *cell;
            *cell = isnan(value) ? 0 : (float)((value - mean[c]) / std[c]);
            if (!isfinite(*cell))
                return cleat_fail(
                    error, CLEAT_ERR_FORMAT,
                    "%s: '%.100s' is %g at %s, which exceeds single precision after division by the standard deviation "
                    "(%g) of the training rows; correct the value, or remove the column",
                    path, t->columns.used.names[c], value, cleat_time_text(t->times[r], text), std[c]);
        }
    }
    return CLEAT_OK;
}

static cleat_status resample_all(const char *path, cleat_series *s, cleat_error *error) {
    size_t features = s->table.columns.features;
    cleat_status status = CLEAT_OK;
    for (size_t f = 0; f < s->n_resamples && !status; ++f) {
        s->means[f] = cleat_alloc((size_t)s->table.rows * features, sizeof *s->means[f]);
        if (!s->means[f])
            return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for the time frame of %lld s", path,
                              (long long)s->resample_seconds[f]);
        status = cleat_series_trailing_means(&s->table, s->rows_of[f], s->means[f], error);
    }
    return status;
}

/* Number of rows of lookback that a window needs, including its last known one. */
static int64_t reach_of(const cleat_series *s) {
    int64_t most = 1;
    for (size_t f = 0; f < s->n_resamples; ++f) most = s->rows_of[f] > most ? s->rows_of[f] : most;
    return most * s->lookback > s->season ? most * s->lookback : s->season;
}

/* Replaces the samples of the series by the windows, and takes ownership of windows->last on success. */
static cleat_status set_samples(cleat_series *s, const cleat_series_windows *windows, cleat_error *error) {
    char(*ids)[CLEAT_TIME_TEXT + 6] = cleat_alloc(windows->count, sizeof *ids);
    if (!ids) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for %zu ids", s->path, windows->count);
    for (size_t i = 0; i < windows->count; ++i) {
        cleat_time_text(s->table.times[windows->last[i]], ids[i]);
        strcat(ids[i], s->table.zone);
    }
    cleat_free(s->windows.last);
    cleat_free(s->ids);
    s->windows = *windows;
    s->ids = ids;
    s->base.count = windows->count;
    s->base.whole = windows->whole;
    return CLEAT_OK;
}

/* Divides the rows into splits and lists their windows. whole: no splits. */
static cleat_status find_samples(cleat_series *s, const cleat_series_options *options, bool whole, cleat_error *error) {
    cleat_series_windows windows = {.whole = whole};
    cleat_status status = cleat_series_windows_find(s->path, options, &s->table, reach_of(s), &windows, error);
    if (!status) status = set_samples(s, &windows, error);
    if (status) cleat_free(windows.last);
    return status;
}

cleat_status cleat_series_make_whole(cleat_dataset *dataset, cleat_error *error) {
    cleat_series *s = (cleat_series *)dataset;
    if (s->forecast) return CLEAT_OK;
    const cleat_series_options options = {.horizon = s->horizon, .eval_stride = s->eval_stride};
    cleat_status status = find_samples(s, &options, true, error);
    if (!status) cleat_log(CLEAT_LOG_INFO, "%s: %zu windows of the whole file, without splits", s->path, s->base.count);
    return status;
}

static void log_summary(const char *path, const cleat_series *s) {
    const cleat_series_table *t = &s->table;
    const int64_t *of = s->windows.of_split;
    char step[CLEAT_STEP_TEXT];
    cleat_log(CLEAT_LOG_INFO,
              "%s: %lld rows, %s%s apart; features: %zu, time frames: %zu, targets: %zu; %lld training, %lld "
              "validation and %lld test windows",
              path, (long long)t->rows, t->calendar.n_slots ? "at least " : "", cleat_calendar_text(&t->calendar, step),
              t->columns.features, s->n_resamples + 1, t->columns.targets, (long long)of[CLEAT_SPLIT_TRAIN],
              (long long)of[CLEAT_SPLIT_VAL], (long long)of[CLEAT_SPLIT_TEST]);
    if (t->columns.series >= 0 && of[CLEAT_SPLIT_TRAIN])
        cleat_log(CLEAT_LOG_INFO, "%s: %zu series, one model for the %lld with training windows", path, t->n_series,
                  (long long)s->windows.trained);
    if (t->columns.series >= 0 && s->windows.short_series)
        cleat_log(CLEAT_LOG_WARNING, "%s: %lld of %zu series are shorter than a window (%lld rows) and are left out",
                  path, (long long)s->windows.short_series, t->n_series,
                  (long long)(reach_of(s) + (s->forecast ? 0 : s->horizon)));
    if (t->filled_rows)
        cleat_log(CLEAT_LOG_WARNING, "%s: gaps: %lld; rows missing there, filled with the previous row: %lld%s", path,
                  (long long)t->gaps, (long long)t->filled_rows,
                  t->calendar.step == 86400 && 2 * t->filled_weekends > t->filled_rows
                      ? " (weekends: data.step = business_day)"
                      : "");
    if (t->missing) cleat_log(CLEAT_LOG_WARNING, "%s: %lld cells have no value", path, (long long)t->missing);
    if (s->windows.left_out)
        cleat_log(CLEAT_LOG_WARNING, "%s: %lld windows contain a gap or a missing value and are skipped%s", path,
                  (long long)s->windows.left_out, s->next_only ? "; data.gaps=fill, data.missing=fill, or --all" : "");
}

/* Takes ownership of the table. */
static cleat_status make_dataset(const char *path, cleat_series_table *table, const cleat_series_options *options,
                                 const cleat_series_preprocessor *fitted, cleat_dataset **dataset, cleat_error *error) {
    cleat_series *s = cleat_alloc(1, sizeof *s);
    if (!s) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for the dataset", path);
    s->table = *table;
    *table = (cleat_series_table){0};
    s->lookback = options->lookback;
    s->horizon = options->horizon;
    s->eval_stride = options->eval_stride;
    s->season = options->season;
    s->anchor = options->anchor;
    s->forecast = options->forecast;
    s->next_only = options->next_only;
    s->n_resamples = fitted ? fitted->n_resamples : options->n_resamples;
    memcpy(s->resample_seconds, fitted ? fitted->resample_seconds : options->resample_seconds,
           sizeof s->resample_seconds);
    cleat_series_dataset_init(s);
    cleat_status status = cleat_series_resample_rows(path, s->resample_seconds, s->n_resamples, &s->table.calendar,
                                                     s->table.rows, s->rows_of, error);
    const size_t errors = (size_t)s->horizon * s->table.columns.targets;
    if (!status && (!(s->path = cleat_strdup(path)) || !(s->errors = cleat_alloc(errors, sizeof *s->errors))))
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: no memory for the dataset", path);
    if (!status) s->errors[0] = NAN;
    if (!status && fitted) status = cleat_series_errors_read(options->fitted, s, error);
    if (!status) status = find_samples(s, options, false, error);
    if (!status) status = find_means(path, options, s, fitted, error);
    if (!status) status = standardise(path, s, error);
    if (!status) status = resample_all(path, s, error);
    if (status) {
        cleat_dataset_destroy(&s->base);
        return status;
    }
    log_summary(path, s);
    *dataset = &s->base;
    return CLEAT_OK;
}

static bool is_csv(const char *name) {
    return cleat_ends_in(name, ".csv");
}

static cleat_status only_csv(const char *folder, char path[CLEAT_FILE_PATH], cleat_error *error) {
    cleat_name_list listing = {0};
    cleat_status status = cleat_listing_read(folder, is_csv, &listing, error);
    if (status) return status;
    if (listing.count == 1)
        status = cleat_path_join(folder, listing.names[0], path, CLEAT_FILE_PATH, error);
    else if (listing.count == 0)
        status = cleat_fail(error, CLEAT_ERR_NOT_FOUND, "%s: no *.csv file in this folder (data.path)", folder);
    else
        status = cleat_fail(error, CLEAT_ERR_ARGUMENT,
                            "%s: %zu *.csv files in this folder (%.100s, %.100s, ...); set data.path to one of them",
                            folder, listing.count, listing.names[0], listing.names[1]);
    cleat_name_list_free(&listing);
    return status;
}

static cleat_status find_file(const char *path, const char *name, char found[CLEAT_FILE_PATH], cleat_error *error) {
    if (cleat_folder_exists(path))
        return name && *name ? cleat_path_join(path, name, found, CLEAT_FILE_PATH, error)
                             : only_csv(path, found, error);
    if (!cleat_file_exists(path))
        return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "%s: no such file or folder (data.path)", path);
    if ((size_t)snprintf(found, CLEAT_FILE_PATH, "%s", path) < CLEAT_FILE_PATH) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_ARGUMENT, "path too long: %.100s...", path);
}

static cleat_status check_options(const cleat_series_options *o, cleat_error *error) {
    const struct {
        const char *name;
        int64_t value, least;
    } numbers[] = {
        {"lookback", o->lookback == CLEAT_SERIES_AUTO ? 1 : o->lookback, 1},
        {"horizon", o->horizon == CLEAT_SERIES_AUTO ? 1 : o->horizon, 1},
        {"season", o->season == CLEAT_SERIES_AUTO ? 0 : o->season, 0},
        {"stride", o->stride, 1},
        {"eval_stride", o->eval_stride, 1},
        {"step", o->step, 0},
        {"train_rows", o->train_rows, 0},
        {"val_rows", o->val_rows, 0},
        {"test_rows", o->test_rows, 0},
        {"longest_fill", o->longest_fill, 0},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i)
        if (numbers[i].value < numbers[i].least || numbers[i].value > INT32_MAX)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s is %lld; it must be %lld to %d", numbers[i].name,
                              (long long)numbers[i].value, (long long)numbers[i].least, INT32_MAX);
    if (o->lookback > LONGEST || o->horizon > LONGEST)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "lookback %lld and horizon %lld must be at most %d rows",
                          (long long)o->lookback, (long long)o->horizon, LONGEST);
    if (!(o->val_fraction >= 0 && o->test_fraction >= 0 && o->val_fraction + o->test_fraction <= 1))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "val_fraction %g and test_fraction %g, and their sum, must be in 0..1", o->val_fraction,
                          o->test_fraction);
    if (o->n_resamples > CLEAT_SERIES_MAX_RESAMPLES)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%zu time frames; the maximum is %d", o->n_resamples,
                          CLEAT_SERIES_MAX_RESAMPLES);
    if ((unsigned)o->gaps > CLEAT_GAPS_ROWS || (unsigned)o->missing > CLEAT_MISSING_SKIP)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "unknown policy for gaps (%d) or missing values (%d)",
                          (int)o->gaps, (int)o->missing);
    if ((unsigned)o->rule > CLEAT_STEP_YEAR)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "unknown rule of steps (%d)", (int)o->rule);
    if (o->series_column && o->train_rows)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "data.train_rows counts rows of one series; many series are divided by fractions: set "
                          "data.train_rows=none data.val_rows=none data.test_rows=none");
    if ((o->evaluation || o->forecast) &&
        (o->lookback < 0 || o->horizon < 0 || o->season < 0 || o->anchor == CLEAT_SERIES_ANCHOR_AUTO))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "lookback, horizon, season or anchor is auto; only a training chooses it");
    if ((unsigned)o->anchor > CLEAT_SERIES_ANCHOR_AUTO)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "unknown anchor (%d)", (int)o->anchor);
    if ((o->forecast || o->evaluation) && !o->fitted)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%s requires the preprocessing state saved by training",
                          o->forecast ? "a forecast" : "an evaluation");
    return CLEAT_OK;
}

static cleat_status check_resamples(const cleat_series_options *o, const cleat_series_preprocessor *fitted,
                                    cleat_error *error) {
    bool same = o->n_resamples == 0 || o->n_resamples == fitted->n_resamples;
    for (size_t f = 0; same && f < o->n_resamples; ++f) same = o->resample_seconds[f] == fitted->resample_seconds[f];
    if (same) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                      "%s: data.frames differs from the time frames of the training; do not change it", o->fitted);
}

const char *const cleat_series_rule_names[] = {"first",   "auto", "day", "business_day", "week", "month",
                                               "quarter", "year", NULL};
const char *const cleat_series_gaps_names[] = {"error", "fill", "skip", "rows", NULL};
const char *const cleat_series_missing_names[] = {"error", "fill", "skip", NULL};
const char *const cleat_series_anchor_names[] = {"none", "last", "season", "auto", NULL};

cleat_series_options cleat_series_defaults(void) {
    return (cleat_series_options){.lookback = 96,
                                  .horizon = 24,
                                  .stride = 1,
                                  .eval_stride = 1,
                                  .val_fraction = 0.1,
                                  .test_fraction = 0.1,
                                  .longest_fill = 24};
}

static cleat_status check_columns(const cleat_csv *csv, const void *options, cleat_error *error) {
    cleat_series_columns columns = {0};
    cleat_status status = cleat_series_columns_choose(csv, options, NULL, &columns, error);
    if (!status) cleat_series_columns_free(&columns);
    return status;
}

cleat_status cleat_series_check_columns(const char *path, const cleat_series_options *options, cleat_error *error) {
    char file[CLEAT_FILE_PATH];
    cleat_status status = find_file(path, options->file, file, error);
    return status ? status : cleat_csv_check_header(file, check_columns, options, error);
}

cleat_status cleat_series_open(const char *path, const cleat_series_options *options, cleat_dataset **dataset,
                               cleat_error *error) {
    cleat_series_options chosen = options ? *options : cleat_series_defaults();
    if (chosen.fitted && !*chosen.fitted) chosen.fitted = NULL;
    if (chosen.series_column && !*chosen.series_column) chosen.series_column = NULL;
    char file[CLEAT_FILE_PATH];
    cleat_series_table table = {0};
    cleat_series_preprocessor fitted = {0};
    const cleat_series_preprocessor *earlier = chosen.fitted ? &fitted : NULL;
    cleat_status status = check_options(&chosen, error);
    if (!status) status = find_file(path, chosen.file, file, error);
    if (!status && earlier) status = cleat_series_preprocessor_read(chosen.fitted, &fitted, error);
    if (!status && earlier) status = check_resamples(&chosen, earlier, error);
    if (!status) status = cleat_series_read(file, &chosen, earlier, &table, error);
    if (!status) status = cleat_series_choose(file, &table, &chosen, error);
    if (!status) status = make_dataset(file, &table, &chosen, earlier, dataset, error);
    cleat_series_table_free(&table);
    cleat_series_preprocessor_free(&fitted);
    return status;
}
