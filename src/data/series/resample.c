/* Coarser time frames of a series: means over a number of rows up to each row.
 *
 * Each mean is summed from its own rows alone, so that it has the same bits wherever the file begins. */
#include "data/series/series.h"

#include "core/memory.h"

#include <string.h>

cleat_status cleat_series_resample_rows(const char *path, const int64_t *resample_seconds, size_t n,
                                        const cleat_calendar *calendar, int64_t rows, int64_t *rows_of,
                                        cleat_error *error) {
    const int64_t step = calendar->step;
    char text[CLEAT_STEP_TEXT];
    if (n && calendar->months)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "%s: its rows are %s apart, and months are not equally long; remove the time frames, which "
                          "are in minutes (data.frames = none)",
                          path, cleat_calendar_text(calendar, text));
    for (size_t f = 0; f < n; ++f) {
        if (resample_seconds[f] <= step || resample_seconds[f] % step)
            return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                              "%s: a time frame of %lld s is not a multiple (2 x or more) of the file's step of %lld s",
                              path, (long long)resample_seconds[f], (long long)step);
        for (size_t earlier = 0; earlier < f; ++earlier)
            if (resample_seconds[earlier] == resample_seconds[f])
                return cleat_fail(error, CLEAT_ERR_ARGUMENT, "the time frame of %lld s is listed twice",
                                  (long long)resample_seconds[f]);
        rows_of[f] = resample_seconds[f] / step;
        if (rows_of[f] > rows)
            return cleat_fail(
                error, CLEAT_ERR_ARGUMENT,
                "%s: a time frame step of %lld s requires %lld rows, but the file has %lld; remove that time frame",
                path, (long long)resample_seconds[f], (long long)rows_of[f], (long long)rows);
        if (calendar->n_slots || calendar->business)
            cleat_log(CLEAT_LOG_WARNING,
                      "%s: a time frame of %lld s is %lld rows, which take longer if days or hours "
                      "are left out",
                      path, (long long)resample_seconds[f], (long long)rows_of[f]);
    }
    return CLEAT_OK;
}

cleat_status cleat_series_trailing_means(const cleat_series_table *table, int64_t per, float *means,
                                         cleat_error *error) {
    size_t width = table->columns.used.count, features = table->columns.features;
    double *sums = cleat_alloc(features, sizeof *sums);
    if (!sums) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu sums", features);
    for (int64_t r = per - 1; r < table->rows; ++r) {
        memset(sums, 0, features * sizeof *sums);
        for (int64_t i = r - per + 1; i <= r; ++i) {
            const float *row = table->cells + (size_t)i * width;
            for (size_t c = 0; c < features; ++c) sums[c] += row[c];
        }
        float *mean = means + (size_t)r * features;
        for (size_t c = 0; c < features; ++c) mean[c] = (float)(sums[c] / (double)per);
    }
    cleat_free(sums);
    return CLEAT_OK;
}
