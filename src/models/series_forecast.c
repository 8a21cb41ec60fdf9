/* Baseline forecasts (persistence, seasonal persistence), anchors, and forecasts as a CSV file. */
#include "models/series_forecast.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/string.h"

#include <string.h>

/* Indices of the dataset's fields. */
enum { X, TARGET, LAST, SEASON, N_FIELDS };

cleat_status cleat_forecast_create(int64_t values, cleat_forecast *forecast, cleat_error *error) {
    float *all = cleat_alloc(3 * (size_t)values, sizeof *all);
    if (!all) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for forecasts of %lld values", (long long)values);
    *forecast = (cleat_forecast){.last = all, .season = all + values, .anchor = all + 2 * values};
    return CLEAT_OK;
}

void cleat_forecast_free(cleat_forecast *forecast) {
    cleat_free(forecast->last);
    *forecast = (cleat_forecast){0};
}

cleat_status cleat_forecast_fill(const cleat_dataset *dataset, size_t sample, int64_t horizon, int64_t columns,
                                 cleat_series_anchor kind, cleat_forecast *forecast, cleat_error *error) {
    void *slots[N_FIELDS] = {[LAST] = forecast->last, [SEASON] = forecast->season};
    size_t bytes = (size_t)(horizon * columns) * sizeof(float);
    cleat_status status =
        cleat_dataset_fill(dataset, sample, cleat_dataset_length(dataset, sample), NULL, slots, error);
    if (status) return status;
    for (int64_t i = columns; i < horizon * columns; ++i) forecast->last[i] = forecast->last[i - columns];
    switch (kind) {
    case CLEAT_SERIES_ANCHOR_AUTO: /* of no dataset */
    case CLEAT_SERIES_ANCHOR_NONE:
        memset(forecast->anchor, 0, bytes);
        break;
    case CLEAT_SERIES_ANCHOR_LAST:
        memcpy(forecast->anchor, forecast->last, bytes);
        break;
    case CLEAT_SERIES_ANCHOR_SEASON:
        memcpy(forecast->anchor, forecast->season, bytes);
        break;
    }
    return CLEAT_OK;
}

static void add_rows(const cleat_prediction *prediction, const cleat_series_info *info, const float *anchor,
                     cleat_string *text) {
    const cleat_dataset *dataset = prediction->dataset;
    const char *zone = cleat_series_zone(dataset);
    char made[CLEAT_TIME_TEXT], time[CLEAT_TIME_TEXT];
    cleat_time_text(cleat_series_time(dataset, prediction->sample, 0), made);
    for (int64_t h = 0; h < info->horizon; ++h) {
        const int64_t at = cleat_series_time(dataset, prediction->sample, h + 1);
        if (at == INT64_MIN)
            time[0] = 0;
        else
            cleat_time_text(at, time);
        const char *series = cleat_series_name(dataset, prediction->sample);
        if (series) cleat_string_add_field(text, series);
        cleat_string_add(text, "%s%s%s,%s%s,%lld", series ? "," : "", made, zone, time, *time ? zone : "",
                         (long long)(h + 1));
        for (int64_t k = 0; k < info->targets; ++k) {
            int64_t i = h * info->targets + k;
            double value = (double)prediction->output[i] + (double)anchor[i];
            char number[32];
            double mean, std;
            cleat_series_scale(dataset, prediction->sample, (size_t)k, &mean, &std);
            cleat_number_print_digits(value * std + mean, 9, number);
            cleat_string_add(text, ",%s", number);
        }
        cleat_string_add(text, "\n");
    }
}

cleat_status cleat_series_write(const char *path, cleat_series_anchor kind, const cleat_prediction *predictions,
                                size_t count, cleat_error *error) {
    cleat_series_info info = count ? cleat_series_describe(predictions[0].dataset) : (cleat_series_info){0};
    cleat_forecast known = {0};
    cleat_string text = {0};
    if (count && cleat_series_name(predictions[0].dataset, predictions[0].sample)) cleat_string_add(&text, "series,");
    cleat_string_add(&text, "made_at,time,step");
    for (size_t k = 0; count && cleat_series_target(predictions[0].dataset, k); ++k) {
        cleat_string_add(&text, ",");
        cleat_string_add_field(&text, cleat_series_target(predictions[0].dataset, k));
    }
    cleat_string_add(&text, "\n");
    cleat_status status = cleat_forecast_create(info.horizon * info.targets, &known, error);
    if (count &&
        cleat_series_time(predictions[count - 1].dataset, predictions[count - 1].sample, info.horizon) == INT64_MIN)
        cleat_log(CLEAT_LOG_WARNING,
                  "%s: times past the end of the data are empty: its rows follow no rule (data.step names one)", path);
    for (size_t i = 0; i < count && !status; ++i) {
        status = cleat_forecast_fill(predictions[i].dataset, predictions[i].sample, info.horizon, info.targets, kind,
                                     &known, error);
        if (!status) add_rows(&predictions[i], &info, known.anchor, &text);
    }
    cleat_forecast_free(&known);
    if (status) {
        cleat_string_free(&text);
        return status;
    }
    return cleat_file_write_text(path, &text, error);
}
