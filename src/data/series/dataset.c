/* Dataset of a time series: filling samples, and queries. */
#include "data/dataset.h"
#include "data/series/series.h"
#include "json/member.h"

#include "core/memory.h"

#include <math.h>
#include <string.h>

enum { X, TARGET, LAST, SEASON };

static const char *series_id(const cleat_dataset *dataset, size_t sample) {
    return ((const cleat_series *)dataset)->ids[sample];
}

static int64_t series_length(const cleat_dataset *dataset, size_t sample) {
    (void)sample;
    return ((const cleat_series *)dataset)->lookback;
}

static cleat_split series_split(const cleat_dataset *dataset, size_t sample) {
    const cleat_series *s = (const cleat_series *)dataset;
    const int64_t *of = s->windows.of_split, at = (int64_t)sample;
    if (at < of[CLEAT_SPLIT_TRAIN]) return CLEAT_SPLIT_TRAIN;
    return at < of[CLEAT_SPLIT_TRAIN] + of[CLEAT_SPLIT_VAL] ? CLEAT_SPLIT_VAL : CLEAT_SPLIT_TEST;
}

/* x [T, C]: the file's own time frame and the coarser ones side by side. */
static void fill_x(const cleat_series *s, int64_t last, float *x) {
    size_t width = s->table.columns.used.count, features = s->table.columns.features;
    int64_t first = last - s->lookback + 1;
    if (s->n_resamples == 0 && width == features) {
        memcpy(x, s->table.cells + (size_t)first * width, (size_t)s->lookback * width * sizeof *x);
        return;
    }
    for (int64_t t = 0; t < s->lookback; ++t) {
        memcpy(x, s->table.cells + (size_t)(first + t) * width, features * sizeof *x);
        x += features;
        for (size_t f = 0; f < s->n_resamples; ++f, x += features) {
            int64_t row = last - s->rows_of[f] * (s->lookback - 1 - t);
            memcpy(x, s->means[f] + (size_t)row * features, features * sizeof *x);
        }
    }
}

/* Copies the targets [K] of a row. */
static void copy_targets(const cleat_series *s, int64_t row, float *targets) {
    const cleat_series_columns *columns = &s->table.columns;
    const float *cells = s->table.cells + (size_t)row * columns->used.count;
    for (size_t k = 0; k < columns->targets; ++k) targets[k] = cells[columns->target[k]];
}

/* The last known row that is a whole number of seasons before row last + 1 + h. */
static int64_t row_a_season_before(const cleat_series *s, int64_t last, int64_t h) {
    return s->season ? last + 1 - s->season + h % s->season : last;
}

static void subtract_targets(const cleat_series *s, int64_t row, float *targets) {
    const cleat_series_columns *columns = &s->table.columns;
    const float *cells = s->table.cells + (size_t)row * columns->used.count;
    for (size_t k = 0; k < columns->targets; ++k) targets[k] -= cells[columns->target[k]];
}

static void anchor_x(const cleat_series *s, int64_t last, float *x) {
    const cleat_series_columns *columns = &s->table.columns;
    const float *cells = s->table.cells + (size_t)last * columns->used.count;
    int64_t rows = s->lookback * (int64_t)(s->n_resamples + 1);
    for (int64_t i = 0; i < rows; ++i, x += columns->features)
        for (size_t f = 0; f < columns->features; ++f) x[f] -= cells[f];
}

/* The series of a row. */
static const cleat_series_part *part_of(const cleat_series *s, int64_t row) {
    const cleat_series_part *part = s->table.series;
    for (size_t rest = s->table.n_series; rest > 1;) { /* it is one of the `rest` parts from `part` on */
        const size_t half = rest / 2;
        part += part[half].begin <= row ? half : 0;
        rest = rest - half > half ? rest - half : half;
    }
    return part;
}

static int64_t known_of(const cleat_series *s, int64_t last) {
    const int64_t end = part_of(s, last)->end;
    int64_t known = 0;
    while (known < s->horizon && last + known + 1 < end && !s->table.flags[last + known + 1]) ++known;
    return known;
}

static cleat_status series_fill(const cleat_dataset *dataset, size_t sample, int64_t length,
                                const cleat_rng_key *rng_key, void *const *slots, cleat_error *error) {
    (void)length;
    (void)rng_key;
    (void)error;
    const cleat_series *s = (const cleat_series *)dataset;
    int64_t last = s->windows.last[sample], known = s->forecast ? known_of(s, last) : s->horizon;
    size_t targets = s->table.columns.targets;
    float *target = slots[TARGET], *season = slots[SEASON];
    if (slots[X]) fill_x(s, last, slots[X]);
    if (slots[LAST]) copy_targets(s, last, slots[LAST]);
    for (int64_t h = 0; target && h < known; ++h) copy_targets(s, last + 1 + h, target + (size_t)h * targets);
    for (int64_t h = 0; season && h < s->horizon; ++h)
        copy_targets(s, row_a_season_before(s, last, h), season + (size_t)h * targets);
    if (slots[X] && s->anchor) anchor_x(s, last, slots[X]);
    for (int64_t h = 0; target && s->anchor && h < known; ++h)
        subtract_targets(s, s->anchor == CLEAT_SERIES_ANCHOR_LAST ? last : row_a_season_before(s, last, h),
                         target + (size_t)h * targets);
    return CLEAT_OK;
}

static cleat_status series_save(const cleat_dataset *dataset, const char *folder, cleat_error *error) {
    const cleat_series *s = (const cleat_series *)dataset;
    const cleat_series_columns *columns = &s->table.columns;
    cleat_series_preprocessor fitted = {.step = s->table.calendar.step,
                                        .months = s->table.calendar.months,
                                        .business = s->table.calendar.business,
                                        .thousands = s->table.thousands,
                                        .n_resamples = s->n_resamples};
    memcpy(fitted.resample_seconds, s->resample_seconds, sizeof fitted.resample_seconds);
    cleat_status status = CLEAT_OK;
    for (size_t p = 0; p <= (columns->series >= 0 ? s->table.n_series : 0) && !status; ++p) {
        const size_t first = (p ? p - 1 : 0) * columns->used.count;
        if (p) status = cleat_name_list_add(&fitted.series, s->table.series[p - 1].name, error);
        for (size_t i = 0; i < columns->features + columns->targets && !status; ++i) {
            const bool target = i >= columns->features;
            const size_t c = target ? columns->target[i - columns->features] : i;
            const double mean = s->mean[first + c], std = s->std[first + c];
            status = p ? cleat_series_preprocessor_add_value(&fitted, mean, std, error)
                       : cleat_series_preprocessor_add(&fitted, target, columns->used.names[c], mean, std, error);
        }
    }
    if (!status) status = cleat_series_preprocessor_write(folder, &fitted, error);
    cJSON *errors = cJSON_CreateDoubleArray(s->errors, (int)(s->horizon * (int64_t)columns->targets));
    if (!status && isfinite(s->errors[0])) status = cleat_json_write_file(folder, CLEAT_SERIES_ERRORS, errors, error);
    cJSON_Delete(errors);
    cleat_series_preprocessor_free(&fitted);
    return status;
}

static cleat_status series_check_saved(const cleat_dataset *dataset, const char *folder, cleat_error *error) {
    cleat_series_preprocessor read = {0};
    (void)dataset;
    cleat_status status = cleat_series_preprocessor_read(folder, &read, error);
    if (!status) cleat_series_preprocessor_free(&read);
    return status;
}

static void series_destroy(cleat_dataset *dataset) {
    cleat_series *s = (cleat_series *)dataset;
    cleat_series_table_free(&s->table);
    for (size_t f = 0; f < CLEAT_SERIES_MAX_RESAMPLES; ++f) cleat_free(s->means[f]);
    cleat_free(s->mean);
    cleat_free(s->std);
    cleat_free(s->errors);
    cleat_free(s->windows.last);
    cleat_free(s->ids);
    cleat_free(s->path);
    cleat_free(s);
}

static const cleat_dataset_class series_class = {
    .name = "series",
    .n_fields = CLEAT_SERIES_FIELDS,
    .id = series_id,
    .length = series_length,
    .split = series_split,
    .fill = series_fill,
    .save = series_save,
    .check_saved = series_check_saved,
    .make_whole = cleat_series_make_whole,
    .destroy = series_destroy,
};

void cleat_series_dataset_init(cleat_series *s) {
    int64_t channels = (int64_t)(s->table.columns.features * (s->n_resamples + 1));
    int64_t targets = (int64_t)s->table.columns.targets;
    s->fields[X] = (cleat_field){.name = "x", .dtype = CLEAT_F32, .rank = 2, .shape = {s->lookback, channels}};
    s->fields[TARGET] = (cleat_field){.name = "target", .dtype = CLEAT_F32, .rank = 2, .shape = {s->horizon, targets}};
    s->fields[LAST] = (cleat_field){.name = "last", .dtype = CLEAT_F32, .rank = 1, .shape = {targets}};
    s->fields[SEASON] = (cleat_field){.name = "season", .dtype = CLEAT_F32, .rank = 2, .shape = {s->horizon, targets}};
    s->type = series_class;
    s->type.fields = s->fields;
    s->base.type = &s->type;
}

static const cleat_series *as_series(const cleat_dataset *dataset) {
    return dataset->type->destroy == series_destroy ? (const cleat_series *)dataset : NULL;
}

cleat_series_info cleat_series_describe(const cleat_dataset *dataset) {
    const cleat_series *s = as_series(dataset);
    if (!s) return (cleat_series_info){0};
    const cleat_series_columns *columns = &s->table.columns;
    cleat_series_info info = {
        .lookback = s->lookback,
        .horizon = s->horizon,
        .season = s->season,
        .step = s->table.calendar.step,
        .anchor = s->anchor,
        .features = (int64_t)columns->features,
        .resolutions = (int64_t)s->n_resamples + 1,
        .channels = s->fields[X].shape[1],
        .targets = (int64_t)columns->targets,
        .rows = s->table.rows,
        .gaps = s->table.gaps,
        .filled_rows = s->table.filled_rows,
        .missing = s->table.missing,
        .left_out = s->windows.left_out,
        .series = (int64_t)s->table.n_series,
        .short_series = s->windows.short_series,
    };
    for (int split = 0; split < CLEAT_SPLITS; ++split) {
        info.split_rows[split] = s->windows.end[split] - s->windows.begin[split];
        info.windows[split] = s->windows.of_split[split];
    }
    return info;
}

const char *cleat_series_feature(const cleat_dataset *dataset, size_t feature) {
    const cleat_series *s = as_series(dataset);
    return s && feature < s->table.columns.features ? s->table.columns.used.names[feature] : NULL;
}

/* The column of target k, or SIZE_MAX if there is none. */
static size_t column_of(const cleat_series *s, size_t target) {
    return s && target < s->table.columns.targets ? s->table.columns.target[target] : SIZE_MAX;
}

const char *cleat_series_target(const cleat_dataset *dataset, size_t target) {
    const cleat_series *s = as_series(dataset);
    size_t column = column_of(s, target);
    return column != SIZE_MAX ? s->table.columns.used.names[column] : NULL;
}

double cleat_series_mean(const cleat_dataset *dataset, size_t target) {
    const cleat_series *s = as_series(dataset);
    size_t column = column_of(s, target);
    return column != SIZE_MAX ? s->mean[column] : 0;
}

double cleat_series_std(const cleat_dataset *dataset, size_t target) {
    const cleat_series *s = as_series(dataset);
    size_t column = column_of(s, target);
    return column != SIZE_MAX ? s->std[column] : 0;
}

void cleat_series_scale(const cleat_dataset *dataset, size_t sample, size_t target, double *mean, double *std) {
    const cleat_series *s = as_series(dataset);
    const size_t column = column_of(s, target);
    *mean = *std = 0;
    if (column == SIZE_MAX || sample >= dataset->count) return;
    const size_t at = (size_t)(part_of(s, s->windows.last[sample]) - s->table.series) * s->table.columns.used.count;
    *mean = s->mean[at + column];
    *std = s->std[at + column];
}

const char *cleat_series_name(const cleat_dataset *dataset, size_t sample) {
    const cleat_series *s = as_series(dataset);
    return s && sample < dataset->count ? part_of(s, s->windows.last[sample])->name : NULL;
}

void cleat_series_past(const cleat_dataset *dataset, size_t sample, size_t target, int64_t count, double *values) {
    const cleat_series *s = (const cleat_series *)dataset;
    const size_t column = s->table.columns.target[target], width = s->table.columns.used.count;
    const int64_t first = s->windows.last[sample] - count + 1, begin = part_of(s, s->windows.last[sample])->begin;
    double mean, std;
    cleat_series_scale(dataset, sample, target, &mean, &std);
    for (int64_t i = 0; i < count; ++i)
        values[i] = first + i < begin ? NAN : (double)s->table.cells[(size_t)(first + i) * width + column] * std + mean;
}

int64_t cleat_series_resample_seconds(const cleat_dataset *dataset, size_t resample) {
    const cleat_series *s = as_series(dataset);
    if (!s || resample > s->n_resamples) return 0;
    return resample ? s->resample_seconds[resample - 1] : s->table.calendar.step;
}

int64_t cleat_series_time(const cleat_dataset *dataset, size_t sample, int64_t ahead) {
    const cleat_series *s = as_series(dataset);
    if (!s || sample >= dataset->count) return 0;
    const cleat_series_part *part = part_of(s, s->windows.last[sample]);
    int64_t row = s->windows.last[sample] + ahead, end = part->end - 1;
    if (row < part->begin) return INT64_MIN;
    return row <= end ? s->table.times[row] : cleat_calendar_after(&part->calendar, s->table.times[end], row - end);
}

const char *cleat_series_zone(const cleat_dataset *dataset) {
    const cleat_series *s = as_series(dataset);
    return s ? s->table.zone : "";
}

int64_t cleat_series_known(const cleat_dataset *dataset, size_t sample) {
    const cleat_series *s = as_series(dataset);
    if (!s || sample >= dataset->count) return 0;
    return s->forecast ? known_of(s, s->windows.last[sample]) : s->horizon;
}

double *cleat_series_errors(const cleat_dataset *dataset) {
    const cleat_series *s = as_series(dataset);
    return s ? s->errors : NULL;
}
