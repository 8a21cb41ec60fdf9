/* Whether a run still improved at its end, has levelled off, or overfits. */
#include "report/run.h"

#include <math.h>

enum { MIN_EVALUATIONS = 4, MIN_LEVEL = 8 };

/* A loss that is this much above its best is not noise of the evaluation. */
static const double rise = 1.05;
/* The last fifth of the evaluations brought at least this share of all progress: it still improves. */
static const double late_progress = 0.02;

/* Mean of the training loss in the steps (from, to]. */
static double mean_train_loss(const cleat_report_run *run, double from, double to) {
    const double *steps = cleat_history_values(run->train, "step"), *loss = cleat_history_values(run->train, "loss");
    double sum = 0, count = 0;
    for (size_t i = 0; steps && loss && i < run->train->rows; ++i)
        if (steps[i] > from && steps[i] <= to && isfinite(loss[i])) {
            sum += loss[i];
            ++count;
        }
    return count ? sum / count : NAN;
}

/* The evaluation loss reached its minimum well before the end and has risen since. */
static bool has_risen(const cleat_report_run *run, const double *loss, size_t rows, size_t *lowest) {
    *lowest = 0;
    double last = 0;
    size_t tail = rows / 10 + 1, counted = 0;
    for (size_t i = 0; i < rows; ++i)
        if (loss[i] < loss[*lowest] || !isfinite(loss[*lowest])) *lowest = i;
    for (size_t i = rows - tail; i < rows; ++i)
        if (isfinite(loss[i])) {
            last += loss[i];
            ++counted;
        }
    const double *steps = cleat_history_values(run->eval, "step");
    return counted && steps && steps[*lowest] < 0.8 * steps[rows - 1] &&
           last / (double)counted > rise * loss[*lowest] && loss[*lowest] > 0;
}

/* Best of values [from, to). */
static double best_in(const cleat_report_run *run, const double *values, size_t from, size_t to) {
    double best = NAN;
    for (size_t i = from; i < to; ++i)
        if (isfinite(values[i]) && (isnan(best) || (run->ascends ? values[i] > best : values[i] < best)))
            best = values[i];
    return best;
}

static double first_finite(const double *values, size_t rows) {
    for (size_t i = 0; i < rows; ++i)
        if (isfinite(values[i])) return values[i];
    return NAN;
}

void cleat_report_detect_trend(cleat_report_run *run) {
    const double *loss = cleat_history_values(run->eval, "loss"),
                 *metric = cleat_history_values(run->eval, run->metric);
    const double *steps = cleat_history_values(run->eval, "step"), *epochs = cleat_history_values(run->eval, "epoch");
    size_t rows = run->eval ? run->eval->rows : 0, lowest;
    if (rows < MIN_EVALUATIONS || !loss || !metric || !steps) return;
    if (has_risen(run, loss, rows, &lowest)) {
        double width = steps[rows - 1] - steps[lowest], at = steps[lowest];
        double before = mean_train_loss(run, at - width / 2, at),
               after = mean_train_loss(run, steps[rows - 1] - width / 2, steps[rows - 1]);
        run->trend = after > rise * before ? CLEAT_REPORT_TREND_WORSE : CLEAT_REPORT_TREND_OVERFIT;
        run->trend_epoch = epochs ? epochs[lowest] : NAN;
        return;
    }
    size_t late = rows - (rows + 4) / 5;
    double progress = fabs(run->best - first_finite(metric, rows));
    double earlier = best_in(run, metric, 0, late), later = best_in(run, metric, late, rows);
    double gain = run->ascends ? later - earlier : earlier - later;
    const double *rates = cleat_history_values(run->train, "learning_rate");
    const size_t last = rates ? run->train->rows - 1 : 0;
    if (gain > late_progress * progress)
        run->trend = CLEAT_REPORT_TREND_IMPROVING;
    else if (rows >= MIN_LEVEL)
        run->trend =
            rates && rates[last] < 0.2 * rates[last / 2] ? CLEAT_REPORT_TREND_DECAYED : CLEAT_REPORT_TREND_LEVEL;
}
