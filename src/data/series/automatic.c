/* Chooses lookback, horizon, season and anchor of a series from its training rows, and logs how. */
#include "data/series/series.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CANDIDATES = 8, MINUTE = 60, HOUR = 3600, DAY = 86400, WEEK = 7 * DAY, YEAR = 31557600, LONGEST = 65536 };
enum { MANY = 2000 }; /* rows of which a network learns a season */

/* Calendar periods that may be seasons, in steps, ascending; returns their number. */
static int find_candidates(const cleat_calendar *c, int64_t most, int64_t found[CANDIDATES]) {
    static const int64_t periods[] = {MINUTE, HOUR, DAY, WEEK, YEAR};
    int count = 0;
    if (c->months) {
        if (12 % c->months == 0 && c->months < 12) found[count++] = 12 / c->months;
    } else if (c->business || c->n_slots) {
        found[count++] = c->business ? 5 : (int64_t)c->n_slots; /* a week */
    } else {
        for (size_t i = 0; i < sizeof periods / sizeof *periods; ++i) {
            const int64_t steps = (periods[i] + c->step / 2) / c->step;
            if (steps >= 2 && llabs(steps * c->step - periods[i]) * 50 <= periods[i]) found[count++] = steps;
        }
    }
    while (count && found[count - 1] > most) --count;
    return count;
}

/* A forecast of usual length: the next hour, day, week, month or year, whichever suits the step. */
static int64_t usual_horizon(const cleat_calendar *c) {
    if (c->months) return c->months >= 12 ? 3 : (12 + c->months - 1) / c->months;
    if (c->business) return 5;
    if (c->step <= MINUTE) return MINUTE;
    if (c->step < 10 * MINUTE) return HOUR / c->step;
    if (c->step < DAY) return (DAY + c->step - 1) / c->step;
    return c->step < WEEK ? WEEK / c->step : 4;
}

static double value_at(const cleat_series_table *t, int64_t row, size_t column) {
    return (double)t->cells[(size_t)row * t->columns.used.count + column];
}

/* Autocorrelation at the lag `season` of the differences of a column over rows [begin, end); NaN: unknown. */
static double correlation(const cleat_series_table *t, int64_t begin, int64_t end, size_t column,
                          const cleat_series_options *o) {
    const double mean = (value_at(t, end - 1, column) - value_at(t, begin, column)) / (double)(end - 1 - begin);
    double square = 0, product = 0;
    for (int64_t r = begin + 1; r < end; ++r) {
        const double d = value_at(t, r, column) - value_at(t, r - 1, column) - mean;
        square += d * d;
        if (r + o->season < end)
            product += d * (value_at(t, r + o->season, column) - value_at(t, r + o->season - 1, column) - mean);
    }
    return end - begin > 2 * o->season ? product / square : NAN;
}

/* The mean of a function of a column's training rows over all targets of the first 100 series, where it is known. */
typedef double (*measure)(const cleat_series_table *t, int64_t begin, int64_t end, size_t column,
                          const cleat_series_options *o);

static double mean_of(const cleat_series_table *t, const cleat_series_options *o, measure of) {
    double sum = 0, count = 0;
    for (size_t i = 0; i < t->n_series && i < 100; ++i)
        for (size_t k = 0; k < t->columns.targets; ++k) {
            const int64_t begin = t->series[i].begin, rows = cleat_series_training_rows(o, t->series[i].end - begin);
            const double found = rows > 2 ? of(t, begin, begin + rows, t->columns.target[k], o) : NAN;
            if (!isfinite(found)) continue;
            sum += found;
            ++count;
        }
    return sum / count;
}

/* Squared error of repeating the season over the horizon, divided by that of repeating the last value. */
static double season_error(const cleat_series_table *t, int64_t begin, int64_t end, size_t column,
                           const cleat_series_options *o) {
    const int64_t stride = 1 + (end - begin) * o->horizon / 1000000; /* enough of a long series */
    double by_season = 0, by_last = 0;
    for (int64_t at = begin + o->season - 1; at + o->horizon < end; at += stride)
        for (int64_t h = 0; h < o->horizon; ++h) {
            const double truth = value_at(t, at + 1 + h, column);
            by_season += pow(truth - value_at(t, at + 1 - o->season + h % o->season, column), 2);
            by_last += pow(truth - value_at(t, at, column), 2);
        }
    return by_season / by_last;
}

/* The calendar's period with the highest autocorrelation, which exceeds by a margin that of half of it and those of
 * shorter periods, whose multiples correlate too. As noise hides a season of many steps in the differences: unless its
 * error when repeated is small, as a part of that of the last value, the period with the smallest one. */
static void choose_season(const char *path, const cleat_series_table *t, int64_t rows, cleat_series_options *o) {
    int64_t found[CANDIDATES];
    const double margin = 0.05, spread = 1 / sqrt((double)rows), least = fmax(0.1, 2 * spread);
    const int64_t horizon = o->horizon;
    double best = least, highest = 0, most = 1 - fmax(0.3, 3 * spread), error = most;
    char step[CLEAT_STEP_TEXT], number[24], why[160];
    const int count = find_candidates(&t->calendar, rows / 3 < LONGEST ? rows / 3 : LONGEST, found);
    int64_t chosen = 0;
    for (int i = 0; i < count; ++i) {
        o->season = found[i] / 2;
        const double half = mean_of(t, o, correlation); /* high too where values change slowly */
        o->season = found[i];
        const double r = mean_of(t, o, correlation);
        highest = fmax(highest, r);
        if (!(r > half + margin && r > best + (chosen ? margin : 0))) continue;
        best = r;
        chosen = found[i];
    }
    snprintf(why, sizeof why, "the differences of the training rows correlate most at it (%.2f; none: %.2f or less)",
             highest, least);
    o->season = o->horizon = chosen;
    for (int i = 0, good = chosen && mean_of(t, o, season_error) < most; !good && i < count; ++i) {
        o->season = o->horizon = found[i];
        const double ratio = mean_of(t, o, season_error);
        if (!(ratio < error - (error < most ? margin : 0))) continue;
        error = ratio;
        chosen = found[i];
        snprintf(why, sizeof why, "repeating it has %.2f times the error of the last value", error);
    }
    o->season = chosen;
    o->horizon = horizon;
    snprintf(number, sizeof number, "%lld", (long long)chosen);
    if (!count) snprintf(why, sizeof why, "none takes from 2 to a third of %lld (the training rows)", (long long)rows);
    cleat_log(CLEAT_LOG_INFO, "%s: data.season = %s: of the calendar's periods in steps of %s, %s", path,
              chosen ? number : "none", cleat_calendar_text(&t->calendar, step), why);
}

/* The season if repeating it is much better, and the rows are few: a network learns the season from many (validation
 * MSE with season and with last: 0.026 and 0.059 of 102 months, 0.33 and 0.29 of 12,194 hours of ETTh1). */
static void choose_anchor(const char *path, const cleat_series_table *t, int64_t rows, cleat_series_options *o) {
    const double ratio = o->season ? mean_of(t, o, season_error) : NAN;
    char why[160] = "there is no season";
    o->anchor = ratio < 0.5 && rows < MANY ? CLEAT_SERIES_ANCHOR_SEASON : CLEAT_SERIES_ANCHOR_LAST;
    if (o->season)
        snprintf(why, sizeof why, "the season has %.3g times the error of the last value in %lld training rows%s",
                 ratio, (long long)rows, ratio < 0.5 && rows >= MANY ? ", enough for the network to learn it" : "");
    cleat_log(CLEAT_LOG_INFO, "%s: data.anchor = %s: %s", path, cleat_series_anchor_names[o->anchor], why);
}

static void choose_horizon(const char *path, const cleat_series_table *t, int64_t rows, cleat_series_options *o) {
    char step[CLEAT_STEP_TEXT];
    const int64_t usual = usual_horizon(&t->calendar);
    const double part =
        o->val_fraction > 0 && !o->series_column ? o->val_fraction / (1 - o->val_fraction - o->test_fraction) : 0.25;
    const int64_t val = o->train_rows ? o->val_rows : (int64_t)((double)rows * fmin(part, 0.25));
    o->horizon = usual < val ? usual : val > 1 ? val : 1;
    cleat_log(CLEAT_LOG_INFO, "%s: data.horizon = %lld: %s in steps of %s", path, (long long)o->horizon,
              o->horizon == usual ? "as usual" : "the validation rows", cleat_calendar_text(&t->calendar, step));
}

static cleat_status choose_lookback(const char *path, int64_t rows, cleat_series_options *o, cleat_error *error) {
    const int64_t seasons = 2 * o->season, horizons = 4 * o->horizon, most = (rows - o->horizon) / 2,
                  wanted = seasons > horizons ? seasons : horizons;
    if (most < 1)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "%s: %lld training rows are too few for a horizon of %lld; add rows, or set data.horizon "
                          "and data.lookback",
                          path, (long long)rows, (long long)o->horizon);
    o->lookback = wanted < most ? wanted : most;
    cleat_log(CLEAT_LOG_INFO, "%s: data.lookback = %lld: %s", path, (long long)o->lookback,
              wanted > most         ? "half of the training rows"
              : seasons >= horizons ? "two seasons"
                                    : "four horizons");
    return CLEAT_OK;
}

cleat_status cleat_series_choose(const char *path, const cleat_series_table *table, cleat_series_options *o,
                                 cleat_error *error) {
    cleat_status status = CLEAT_OK;
    int64_t rows = 0;
    for (size_t i = 0; i < table->n_series; ++i)
        rows += cleat_series_training_rows(o, table->series[i].end - table->series[i].begin);
    rows /= (int64_t)table->n_series; /* on average */
    if (o->season == CLEAT_SERIES_AUTO) choose_season(path, table, rows, o);
    if (o->horizon == CLEAT_SERIES_AUTO) choose_horizon(path, table, rows, o);
    if (o->lookback == CLEAT_SERIES_AUTO) status = choose_lookback(path, rows, o, error);
    if (!status && o->anchor == CLEAT_SERIES_ANCHOR_AUTO) choose_anchor(path, table, rows, o);
    if (status || o->anchor != CLEAT_SERIES_ANCHOR_SEASON || o->season) return status;
    return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                      "%s: data.anchor = season, but no season was found; set data.season, or data.anchor=last", path);
}
