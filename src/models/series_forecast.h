/* What is known of a moment without a model, and forecasts as a file. */
#ifndef CLEAT_SRC_SERIES_FORECAST_H
#define CLEAT_SRC_SERIES_FORECAST_H

#include "cleat/models.h"

/* Standardised values [H, K]: the last known ones, those a season earlier, and which of them (or zeros) a forecast of the
 * model is a difference from. */
typedef struct cleat_forecast {
    float *last, *season, *anchor; /* of one allocation */
} cleat_forecast;

/* Room for `values` = H K of each; the caller frees it. */
cleat_status cleat_forecast_create(int64_t values, cleat_forecast *forecast, cleat_error *error);
void cleat_forecast_free(cleat_forecast *forecast);
cleat_status cleat_forecast_fill(const cleat_dataset *dataset, size_t sample, int64_t horizon, int64_t columns,
                                 cleat_series_anchor kind, cleat_forecast *forecast, cleat_error *error);

/* made_at,time,step and a column a target, in the units of the data: a row for each step ahead of each prediction, whose
 * output is [H, K]. Written completely or not at all. */
cleat_status cleat_series_write(const char *path, cleat_series_anchor kind, const cleat_prediction *predictions,
                                size_t count, cleat_error *error);

#endif
