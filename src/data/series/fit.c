/* Fits means and standard deviations of a series' columns, and reads and writes series.csv:
 *
 *   kind,name,mean,deviation
 *   step,3600,,
 *   months,1,,          (only if rows are months apart)
 *   business_day,1,,    (only if rows are business days apart)
 *   thousands,.,,       (only if numbers have marks between thousands)
 *   frame,14400,,
 *   feature,OT,13.3,8.5
 *   target,OT,13.3,8.5
 *   series,A,,          (only of many series: its scales follow, for the features and the targets)
 *   scale,OT,12.1,7.9 */
#include "data/series/series.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/name_table.h"
#include "core/string.h"
#include "data/common/extremes.h"
#include "json/member.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static cleat_status fit_column(const char *path, const cleat_series_table *table, const cleat_series_part *rows,
                               size_t column, double *mean, double *std, cleat_error *error) {
    size_t width = table->columns.used.count;
    const float *cells = table->cells + column;
    double sum = 0, squares = 0;
    cleat_extremes extremes = cleat_extremes_none();
    char what[128];
    int64_t known = 0;
    for (int64_t r = rows->begin; r < rows->end; ++r) {
        float value = cells[(size_t)r * width];
        if (isnan(value)) continue;
        sum += value;
        cleat_extremes_add(&extremes, value);
        ++known;
    }
    if (!known && !rows->name) /* of many, the series has no windows */
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s: '%.100s' has no value in the %lld training rows; remove the column", path,
                          table->columns.used.names[column], (long long)(rows->end - rows->begin));
    bool constant =
        !known || extremes.least == extremes.most; /* the sum of squares would be nothing but rounding errors */
    *mean = !known ? 0 : constant ? extremes.least : sum / (double)known;
    for (int64_t r = rows->begin; r < rows->end; ++r) {
        double off = cells[(size_t)r * width] - *mean;
        if (!isnan(off)) squares += off * off;
    }
    *std = constant ? 1 : sqrt(squares / (double)known);
    if (rows->name) return CLEAT_OK; /* not a line for each of many series */
    if (constant)
        cleat_log(CLEAT_LOG_WARNING,
                  "%s: '%s' is constant (%g) in all training rows; its standard deviation is set to 1", path,
                  table->columns.used.names[column], *mean);
    snprintf(what, sizeof what, "'%.100s'", table->columns.used.names[column]);
    cleat_extremes_warn(&extremes, path, what, "if it stands for missing values, leave these cells empty");
    return CLEAT_OK;
}

cleat_status cleat_series_fit_preprocessor(const char *path, const cleat_series_table *table,
                                           const cleat_series_part *rows, double *mean, double *std,
                                           cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t c = 0; c < table->columns.used.count && !status; ++c)
        status = fit_column(path, table, rows, c, &mean[c], &std[c], error);
    return status;
}

cleat_status cleat_series_preprocessor_add_value(cleat_series_preprocessor *fitted, double mean, double std,
                                                 cleat_error *error) {
    size_t means = fitted->capacity, std_capacity = fitted->capacity;
    cleat_status status = cleat_grow(&fitted->mean, fitted->values, &means, error);
    if (!status) status = cleat_grow(&fitted->std, fitted->values, &std_capacity, error);
    fitted->capacity = status ? fitted->capacity : means;
    if (status) return status;
    fitted->mean[fitted->values] = mean;
    fitted->std[fitted->values++] = std;
    return CLEAT_OK;
}

cleat_status cleat_series_preprocessor_add(cleat_series_preprocessor *fitted, bool target, const char *name,
                                           double mean, double std, cleat_error *error) {
    cleat_status status = cleat_series_preprocessor_add_value(fitted, mean, std, error);
    if (!status) status = cleat_name_list_add(target ? &fitted->targets : &fitted->features, name, error);
    fitted->count += !status;
    return status;
}

void cleat_series_preprocessor_free(cleat_series_preprocessor *fitted) {
    cleat_name_list_free(&fitted->features);
    cleat_name_list_free(&fitted->targets);
    cleat_free(fitted->mean);
    cleat_free(fitted->std);
    cleat_name_list_free(&fitted->series);
    *fitted = (cleat_series_preprocessor){0};
}

static void add_columns(cleat_string *text, const char *kind, const cleat_name_list *names, const double *mean,
                        const double *std) {
    char a[32], b[32];
    for (size_t i = 0; i < names->count; ++i) {
        cleat_number_print(mean[i], a);
        cleat_number_print(std[i], b);
        cleat_string_add(text, "%s,", kind);
        cleat_string_add_field(text, names->names[i]);
        cleat_string_add(text, ",%s,%s\n", a, b);
    }
}

static const char FILE_NAME[] = "series.csv";

cleat_status cleat_series_preprocessor_write(const char *folder, const cleat_series_preprocessor *fitted,
                                             cleat_error *error) {
    cleat_string text = {0};
    size_t features = fitted->features.count;
    const cleat_status status = cleat_folder_make(folder, error);
    if (status) return status;
    cleat_string_add(&text, "kind,name,mean,deviation\nstep,%lld,,\n", (long long)fitted->step);
    if (fitted->months) cleat_string_add(&text, "months,%d,,\n", fitted->months);
    if (fitted->business) cleat_string_add(&text, "business_day,1,,\n");
    if (fitted->thousands) cleat_string_add(&text, "thousands,\"%c\",,\n", fitted->thousands);
    for (size_t f = 0; f < fitted->n_resamples; ++f)
        cleat_string_add(&text, "frame,%lld,,\n", (long long)fitted->resample_seconds[f]);
    add_columns(&text, "feature", &fitted->features, fitted->mean, fitted->std);
    add_columns(&text, "target", &fitted->targets, fitted->mean + features, fitted->std + features);
    for (size_t i = 0; i < fitted->series.count; ++i) {
        const double *mean = fitted->mean + (i + 1) * fitted->count, *std = fitted->std + (i + 1) * fitted->count;
        cleat_string_add(&text, "series,");
        cleat_string_add_field(&text, fitted->series.names[i]);
        cleat_string_add(&text, ",,\n");
        add_columns(&text, "scale", &fitted->features, mean, std);
        add_columns(&text, "scale", &fitted->targets, mean + features, std + features);
    }
    return cleat_file_write_in(folder, FILE_NAME, &text, error);
}

typedef struct line_columns {
    int kind, name, mean, std;
    cleat_name_table known[2]; /* names of the features and of the targets so far */
} line_columns;

static cleat_status bad_line(const cleat_csv *csv, const char *what, cleat_error *error) {
    return cleat_csv_fail(
        csv, error, "%s; the file is written by training and must not be edited: copy it from the run folder again",
        what);
}

static bool whole_seconds(const char *text, int64_t *seconds) {
    double value;
    if (!cleat_number_parse(text, &value) || value < 1 || value > 1e15 || value != floor(value)) return false;
    *seconds = (int64_t)value;
    return true;
}

static cleat_status add_column(const cleat_csv *csv, line_columns *at, bool target, cleat_series_preprocessor *fitted,
                               cleat_error *error) {
    const char *name = csv->fields[at->name];
    uint32_t before;
    double mean, std;
    const bool is_scale = fitted->series.count > 0; /* of a column that is known */
    if (!is_scale && (!*name || cleat_name_table_find(&at->known[target], name, &before)))
        return bad_line(csv, "a column without a name, or a duplicate column", error);
    if (!is_scale && !target && fitted->targets.count) return bad_line(csv, "a feature after the targets", error);
    if (!cleat_number_parse(csv->fields[at->mean], &mean) || !cleat_number_parse(csv->fields[at->std], &std) ||
        !(std > 0))
        return bad_line(csv, "mean and standard deviation must be numbers, the standard deviation greater than 0",
                        error);
    if (is_scale) return cleat_series_preprocessor_add_value(fitted, mean, std, error);
    cleat_status status = cleat_name_table_add(&at->known[target], name, 0, error);
    return status ? status : cleat_series_preprocessor_add(fitted, target, name, mean, std, error);
}

static cleat_status add_line(const cleat_csv *csv, line_columns *at, cleat_series_preprocessor *fitted,
                             cleat_error *error) {
    const char *kind = csv->fields[at->kind], *name = csv->fields[at->name];
    if (strcmp(kind, "feature") == 0) return add_column(csv, at, false, fitted, error);
    if (strcmp(kind, "target") == 0) return add_column(csv, at, true, fitted, error);
    if (strcmp(kind, "series") == 0) return cleat_name_list_add(&fitted->series, name, error);
    if (strcmp(kind, "scale") == 0) return add_column(csv, at, false, fitted, error);
    if (strcmp(kind, "step") == 0)
        return whole_seconds(name, &fitted->step) ? CLEAT_OK
                                                  : bad_line(csv, "the step must be a whole number of seconds", error);
    if (strcmp(kind, "months") == 0) {
        int64_t months = 0;
        if (!whole_seconds(name, &months) || months > 12 * 9999)
            return bad_line(csv, "the months of a step must be a whole number", error);
        fitted->months = (int)months;
        return CLEAT_OK;
    }
    if (strcmp(kind, "business_day") == 0) {
        fitted->business = true;
        return strcmp(name, "1") == 0 ? CLEAT_OK : bad_line(csv, "a step must be 1 business day", error);
    }
    if (strcmp(kind, "thousands") == 0) {
        fitted->thousands = *name;
        return strcmp(name, ".") == 0 || strcmp(name, ",") == 0
                   ? CLEAT_OK
                   : bad_line(csv, "the mark between thousands must be a point or a comma", error);
    }
    if (strcmp(kind, "frame") != 0)
        return bad_line(
            csv, "kind must be step, months, business_day, thousands, frame, feature, target, series or scale", error);
    if (fitted->n_resamples == CLEAT_SERIES_MAX_RESAMPLES ||
        !whole_seconds(name, &fitted->resample_seconds[fitted->n_resamples]))
        return bad_line(csv, "at most eight frames are allowed, each a whole number of seconds", error);
    ++fitted->n_resamples;
    return CLEAT_OK;
}

cleat_status cleat_series_preprocessor_read(const char *folder, cleat_series_preprocessor *fitted, cleat_error *error) {
    char path[CLEAT_FILE_PATH];
    cleat_csv csv;
    line_columns at = {.kind = 0};
    cleat_series_preprocessor found = {0};
    cleat_status status = cleat_path_join(folder, FILE_NAME, path, CLEAT_FILE_PATH, error);
    if (!status) status = cleat_csv_open(path, &csv, error);
    if (status) return status;
    status = cleat_csv_need_column(&csv, "kind", &at.kind, error);
    if (!status) status = cleat_csv_need_column(&csv, "name", &at.name, error);
    if (!status) status = cleat_csv_need_column(&csv, "mean", &at.mean, error);
    if (!status) status = cleat_csv_need_column(&csv, "deviation", &at.std, error);
    for (bool more = true; !status && more;) {
        status = cleat_csv_next(&csv, &more, error);
        if (!status && more) status = add_line(&csv, &at, &found, error);
    }
    if (!status && (!found.step || !found.features.count || !found.targets.count))
        status = bad_line(&csv, "step, features or targets are missing", error);
    if (!status && found.values != (1 + found.series.count) * found.count)
        status = bad_line(&csv, "scales of series are missing", error);
    for (int target = 0; target < 2; ++target) cleat_name_table_free(&at.known[target]);
    cleat_csv_close(&csv);
    if (status) {
        cleat_series_preprocessor_free(&found);
        return status;
    }
    *fitted = found;
    return CLEAT_OK;
}

cleat_status cleat_series_errors_read(const char *folder, cleat_series *s, cleat_error *error) {
    const int64_t count = s->horizon * (int64_t)s->table.columns.targets;
    cJSON *numbers = NULL;
    int64_t read = 0;
    cleat_status status = cleat_json_read_file(folder, CLEAT_SERIES_ERRORS, &numbers, error);
    for (const cJSON *item = numbers ? numbers->child : NULL; item; item = item->next, ++read)
        if (read < count) s->errors[read] = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    if (!status && numbers && read != count)
        status = cleat_fail(error, CLEAT_ERR_FORMAT,
                            "%s/%s: %lld numbers instead of %lld; copy the folder from the run again", folder,
                            CLEAT_SERIES_ERRORS, (long long)read, (long long)count);
    cJSON_Delete(numbers);
    return status;
}
