/* Means and deviations of a series' columns, and the file that keeps them: series.csv, one line a thing learnt,
 *   kind,name,mean,deviation
 *   step,3600,,
 *   frame,14400,,
 *   feature,OT,13.3,8.5
 *   target,OT,13.3,8.5 */
#include "data/series.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 4096 };

/* --- learning ------------------------------------------------------------------------------------------------- */

static cleat_status learn_column(const char *path, const cleat_series_table *table, int64_t rows, size_t column,
                                 double *mean, double *deviation, cleat_error *error) {
    size_t width = table->columns.used.count;
    const float *cells = table->cells + column;
    double sum = 0, squares = 0;
    float least = INFINITY, most = -INFINITY;
    int64_t known = 0;
    for (int64_t r = 0; r < rows; ++r) {
        float value = cells[(size_t)r * width];
        if (isnan(value)) continue;
        sum += value;
        least = value < least ? value : least;
        most = value > most ? value : most;
        ++known;
    }
    if (!known)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "%s: '%.100s' has no value in the %lld training rows; leave the column out", path,
                          table->columns.used.names[column], (long long)rows);
    bool constant = least == most; /* the squares of its rounding errors are no deviation */
    *mean = constant ? least : sum / (double)known;
    for (int64_t r = 0; r < rows; ++r) {
        double off = cells[(size_t)r * width] - *mean;
        if (!isnan(off)) squares += off * off;
    }
    *deviation = constant ? 1 : sqrt(squares / (double)known);
    if (constant)
        cleat_log(CLEAT_LOG_WARNING, "%s: '%s' is %g in all training rows; its deviation is taken as 1", path,
                  table->columns.used.names[column], *mean);
    return CLEAT_OK;
}

cleat_status cleat_series_learn(const char *path, const cleat_series_table *table, int64_t rows, double *mean,
                                double *deviation, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t c = 0; c < table->columns.used.count && status == CLEAT_OK; ++c)
        status = learn_column(path, table, rows, c, &mean[c], &deviation[c], error);
    return status;
}

/* --- the file ------------------------------------------------------------------------------------------------- */

cleat_status cleat_series_learnt_add(cleat_series_learnt *learnt, bool target, const char *name, double mean,
                                     double deviation, cleat_error *error) {
    size_t means = learnt->capacity, deviations = learnt->capacity;
    cleat_status status = cleat_grow(&learnt->mean, learnt->count, &means, sizeof *learnt->mean, error);
    if (status == CLEAT_OK)
        status = cleat_grow(&learnt->deviation, learnt->count, &deviations, sizeof *learnt->deviation, error);
    if (status == CLEAT_OK) status = cleat_series_names_add(target ? &learnt->targets : &learnt->features, name, error);
    learnt->capacity = status == CLEAT_OK ? means : learnt->capacity;
    if (status != CLEAT_OK) return status;
    learnt->mean[learnt->count] = mean;
    learnt->deviation[learnt->count++] = deviation;
    return CLEAT_OK;
}

void cleat_series_learnt_free(cleat_series_learnt *learnt) {
    cleat_series_names_free(&learnt->features);
    cleat_series_names_free(&learnt->targets);
    cleat_free(learnt->mean);
    cleat_free(learnt->deviation);
    *learnt = (cleat_series_learnt){0};
}

static void add_columns(cleat_text *text, const char *kind, const cleat_series_names *names, const double *mean,
                        const double *deviation) {
    char a[32], b[32];
    for (size_t i = 0; i < names->count; ++i) {
        cleat_number_print(mean[i], a);
        cleat_number_print(deviation[i], b);
        cleat_text_add(text, "%s,", kind);
        cleat_text_add_field(text, names->names[i]);
        cleat_text_add(text, ",%s,%s\n", a, b);
    }
}

static const char FILE_NAME[] = "series.csv";

cleat_status cleat_series_learnt_write(const char *folder, const cleat_series_learnt *learnt, cleat_error *error) {
    char path[PATH_BYTES];
    cleat_text text = {0};
    size_t features = learnt->features.count;
    cleat_status status = cleat_path_join(folder, FILE_NAME, path, PATH_BYTES, error);
    if (status == CLEAT_OK) status = cleat_folder_make(folder, error);
    if (status != CLEAT_OK) return status;
    cleat_text_add(&text, "kind,name,mean,deviation\nstep,%lld,,\n", (long long)learnt->step);
    for (size_t f = 0; f < learnt->n_frames; ++f) cleat_text_add(&text, "frame,%lld,,\n", (long long)learnt->frames[f]);
    add_columns(&text, "feature", &learnt->features, learnt->mean, learnt->deviation);
    add_columns(&text, "target", &learnt->targets, learnt->mean + features, learnt->deviation + features);
    return cleat_file_write_text(path, &text, error);
}

typedef struct line_columns {
    int kind, name, mean, deviation;
} line_columns;

static cleat_status bad_line(const cleat_csv *csv, const char *what, cleat_error *error) {
    return cleat_fail(error, CLEAT_ERR_FORMAT,
                      "%s:%zu: %s; the file is written in training and must not be edited: take it from the run again",
                      csv->source.path, csv->line, what);
}

static bool whole_seconds(const char *text, int64_t *seconds) {
    double value;
    if (!cleat_number_parse(text, &value) || value < 1 || value > 1e15 || value != floor(value)) return false;
    *seconds = (int64_t)value;
    return true;
}

static cleat_status add_column(const cleat_csv *csv, const line_columns *at, bool target, cleat_series_learnt *learnt,
                               cleat_error *error) {
    const char *name = csv->fields[at->name];
    const cleat_series_names *names = target ? &learnt->targets : &learnt->features;
    double mean, deviation;
    if (!*name || cleat_series_names_find(names, name) >= 0)
        return bad_line(csv, "a column without a name, or there twice", error);
    if (!target && learnt->targets.count) return bad_line(csv, "a feature behind the targets", error);
    if (!cleat_number_parse(csv->fields[at->mean], &mean) ||
        !cleat_number_parse(csv->fields[at->deviation], &deviation) || !(deviation > 0))
        return bad_line(csv, "mean and deviation must be numbers, the deviation above 0", error);
    return cleat_series_learnt_add(learnt, target, name, mean, deviation, error);
}

static cleat_status add_line(const cleat_csv *csv, const line_columns *at, cleat_series_learnt *learnt,
                             cleat_error *error) {
    const char *kind = csv->fields[at->kind], *name = csv->fields[at->name];
    if (strcmp(kind, "feature") == 0) return add_column(csv, at, false, learnt, error);
    if (strcmp(kind, "target") == 0) return add_column(csv, at, true, learnt, error);
    if (strcmp(kind, "step") == 0)
        return whole_seconds(name, &learnt->step) ? CLEAT_OK : bad_line(csv, "the step must be whole seconds", error);
    if (strcmp(kind, "frame") != 0) return bad_line(csv, "kind must be step, frame, feature or target", error);
    if (learnt->n_frames == CLEAT_SERIES_FRAMES || !whole_seconds(name, &learnt->frames[learnt->n_frames]))
        return bad_line(csv, "frames are whole seconds, and at most eight", error);
    ++learnt->n_frames;
    return CLEAT_OK;
}

cleat_status cleat_series_learnt_read(const char *folder, cleat_series_learnt *learnt, cleat_error *error) {
    char path[PATH_BYTES];
    cleat_csv csv;
    line_columns at = {0};
    cleat_series_learnt found = {0};
    cleat_status status = cleat_path_join(folder, FILE_NAME, path, PATH_BYTES, error);
    if (status == CLEAT_OK) status = cleat_csv_open(path, &csv, error);
    if (status != CLEAT_OK) return status;
    status = cleat_csv_need_column(&csv, "kind", &at.kind, error);
    if (status == CLEAT_OK) status = cleat_csv_need_column(&csv, "name", &at.name, error);
    if (status == CLEAT_OK) status = cleat_csv_need_column(&csv, "mean", &at.mean, error);
    if (status == CLEAT_OK) status = cleat_csv_need_column(&csv, "deviation", &at.deviation, error);
    for (bool more = true; status == CLEAT_OK && more;) {
        status = cleat_csv_next(&csv, &more, error);
        if (status == CLEAT_OK && more) status = add_line(&csv, &at, &found, error);
    }
    if (status == CLEAT_OK && (!found.step || !found.features.count || !found.targets.count))
        status = bad_line(&csv, "step, features or targets are missing", error);
    cleat_csv_close(&csv);
    if (status != CLEAT_OK) {
        cleat_series_learnt_free(&found);
        return status;
    }
    *learnt = found;
    return CLEAT_OK;
}
