/* Baseline forecasts, which need no model, and forecasts as a file. */
#ifndef CLEAT_SRC_SERIES_FORECAST_H
#define CLEAT_SRC_SERIES_FORECAST_H

#include "cleat/models.h"

/* Standardised values [H, K]: the last known ones, those one season earlier, and the anchor. A forecast of
 * the model is a difference from the anchor, which is one of the two or zeros. */
typedef struct cleat_forecast {
    float *last, *season, *anchor; /* parts of one allocation */
} cleat_forecast;

/* Allocates `values` = H K elements for each member; the caller frees it. */
cleat_status cleat_forecast_create(int64_t values, cleat_forecast *forecast, cleat_error *error);
void cleat_forecast_free(cleat_forecast *forecast);
cleat_status cleat_forecast_fill(const cleat_dataset *dataset, size_t sample, int64_t horizon, int64_t columns,
                                 cleat_series_anchor kind, cleat_forecast *forecast, cleat_error *error);

/* Writes the columns series (of many), made_at, time, step and one per target, in the units of the data: a row for each
 * step ahead of each prediction, whose output is [H, K]. The file is written completely or not at all. */
cleat_status cleat_series_write(const char *path, cleat_series_anchor kind, const cleat_prediction *predictions,
                                size_t count, cleat_error *error);

#endif
