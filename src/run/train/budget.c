/* The time budget: rates of measured steps, the forecast of a run, and the decision to stop. */
#include "train/budget.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UP_STEPS = 3 };

/* Steps to measure before a forecast. A few slow steps are as reliable as many fast ones: ENOUGH_STEPS
 * must also have taken `enough_seconds` together, unless ENOUGH_FAST_STEPS were measured. */
enum { ENOUGH_STEPS = 8, ENOUGH_FAST_STEPS = 64, ENOUGH_AT_EPOCH_END = 3 };
static const double enough_seconds = 1, enough_of_the_work = 0.75;

static const double forward_part = 1.0 / 3;

/* --- measuring ------------------------------------------------------------------------------------------------ */

void cleat_event_stats_add(cleat_event_stats *event, double seconds) {
    ++event->count;
    event->total += seconds;
    event->slowest = fmax(event->slowest, seconds);
}

static void add_rate(cleat_budget *budget, double rate) {
    cleat_step_rates *kind = &budget->kinds[budget->queued_kind];
    bool warms_up = budget->seen++ < WARM_UP_STEPS;
    if (kind->seen++ == 0 || warms_up) {
        kind->warm_up = kind->warm_up > 0 ? fmin(kind->warm_up, rate) : rate;
        return;
    }
    kind->recent[kind->count++ % CLEAT_BUDGET_RECENT] = rate;
    budget->measured_seconds += rate * budget->queued_work;
    ++budget->measured;
}

void cleat_budget_queue(cleat_budget *budget, size_t kind, double work) {
    budget->queued_seconds += cleat_budget_step_seconds(budget, kind, work);
    budget->queued_kind = kind;
    budget->queued_work = work;
    ++budget->queued;
}

void cleat_budget_done(cleat_budget *budget, double seconds) {
    if (budget->queued == 0) return;
    if (budget->measured > 0 && budget->kinds[budget->queued_kind].seen > 0 && budget->queued_seconds > 0)
        budget->slowness[budget->n_slowness++ % CLEAT_BUDGET_RECENT] = seconds / budget->queued_seconds;
    if (budget->queued == 1) add_rate(budget, seconds / budget->queued_work);
    budget->queued = 0;
    budget->queued_seconds = 0;
}

bool cleat_budget_is_measured(const cleat_budget *budget, bool epoch_end) {
    double known = 0, all = 0;
    int64_t slow = epoch_end ? ENOUGH_AT_EPOCH_END : ENOUGH_STEPS;
    int64_t fast = epoch_end ? ENOUGH_STEPS : ENOUGH_FAST_STEPS;
    if (budget->measured < (budget->measured_seconds < enough_seconds ? fast : slow)) return false;
    if (epoch_end) return true;
    for (size_t k = 0; k < budget->n_kinds; ++k) {
        all += budget->epoch_work[k];
        if (budget->kinds[k].count > 0) known += budget->epoch_work[k];
    }
    return known >= enough_of_the_work * all;
}

/* --- durations ------------------------------------------------------------------------------------------------ */

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The lower median: of two rates, the larger one may be a hiccup. */
static double median_rate(const cleat_step_rates *kind) {
    double sorted[CLEAT_BUDGET_RECENT];
    size_t count = kind->count < CLEAT_BUDGET_RECENT ? (size_t)kind->count : CLEAT_BUDGET_RECENT;
    memcpy(sorted, kind->recent, sizeof sorted);
    qsort(sorted, count, sizeof *sorted, compare);
    return sorted[(count - 1) / 2];
}

/* Rate of kinds that were not measured: the mean of the measured kinds, weighted by their part of an
 * epoch. Before any kind is measured, it is the fastest warm-up step. */
static double common_rate(const cleat_budget *budget) {
    double seconds = 0, work = 0, warm_up = 0;
    for (size_t k = 0; k < budget->n_kinds; ++k) {
        const cleat_step_rates *kind = &budget->kinds[k];
        if (kind->count > 0) {
            seconds += budget->epoch_work[k] * median_rate(kind);
            work += budget->epoch_work[k];
        }
        if (kind->warm_up > 0) warm_up = warm_up > 0 ? fmin(warm_up, kind->warm_up) : kind->warm_up;
    }
    return work > 0 ? seconds / work : warm_up;
}

double cleat_budget_step_seconds(const cleat_budget *budget, size_t kind, double work) {
    const cleat_step_rates *rates = &budget->kinds[kind];
    return work * (rates->count > 0 ? median_rate(rates) : common_rate(budget));
}

static double epoch_seconds(const cleat_budget *budget) {
    double seconds = 0;
    for (size_t k = 0; k < budget->n_kinds; ++k) seconds += cleat_budget_step_seconds(budget, k, budget->epoch_work[k]);
    return seconds;
}

static double mean_seconds(const cleat_event_stats *event, double guess) {
    return event->count > 0 ? event->total / (double)event->count : guess;
}

static double slowest_seconds(const cleat_event_stats *event, double guess) {
    return event->count > 0 ? event->slowest : guess;
}

static double evaluation_guess(const cleat_budget *budget) {
    return forward_part * budget->evaluation_share * epoch_seconds(budget);
}

double cleat_budget_evaluation_seconds(const cleat_budget *budget) {
    return mean_seconds(&budget->evaluation, evaluation_guess(budget));
}

double cleat_budget_checkpoint_seconds(const cleat_budget *budget) {
    return mean_seconds(&budget->checkpoint, budget->checkpoint.guess);
}

/* --- the decision to stop ------------------------------------------------------------------------------------- */

static double worst_slowness(const cleat_budget *budget) {
    double worst = 1;
    for (int64_t i = 0; i < budget->n_slowness && i < CLEAT_BUDGET_RECENT; ++i)
        worst = fmax(worst, budget->slowness[i]);
    return worst;
}

double cleat_budget_needs(const cleat_budget *budget, size_t kind, double work, bool evaluation) {
    double steps = budget->queued_seconds + cleat_budget_step_seconds(budget, kind, work);
    double seconds = steps * worst_slowness(budget) + slowest_seconds(&budget->checkpoint, budget->checkpoint.guess);
    if (evaluation) seconds += slowest_seconds(&budget->evaluation, evaluation_guess(budget));
    return seconds;
}

double cleat_budget_limit(const cleat_budget *budget) {
    const double session = budget->earlier + budget->session;
    if (budget->session <= 0) return budget->seconds;
    return budget->seconds > 0 ? fmin(session, budget->seconds) : session;
}

bool cleat_budget_must_stop(const cleat_budget *budget, double used, size_t kind, double work, bool evaluation) {
    const double limit = cleat_budget_limit(budget);
    return limit > 0 && used + cleat_budget_needs(budget, kind, work, evaluation) > limit;
}

/* --- forecast ------------------------------------------------------------------------------------------------- */

/* Number of events in `epochs` epochs, with one event after each `every` epochs. If the run ends there,
 * the last epoch always has one. */
static double count_events(int64_t epochs, int64_t every, bool ends) {
    if (epochs <= 0) return 0;
    if (every <= 0) return ends ? 1 : 0;
    return (double)(epochs / every + (ends && epochs % every != 0 ? 1 : 0));
}

/* Seconds from the first step until `steps` steps are done. */
static double schedule_seconds(const cleat_budget *budget, const cleat_schedule_shape *shape, int64_t steps,
                               bool ends) {
    int64_t epochs = steps / shape->steps_per_epoch;
    double checkpoint = cleat_budget_checkpoint_seconds(budget);
    double checkpoints = count_events(epochs, shape->checkpoint_every, ends);
    double seconds = (double)steps / (double)shape->steps_per_epoch * epoch_seconds(budget);
    if (shape->evaluates) {
        double evaluations = count_events(epochs, shape->evaluate_every, ends);
        seconds += evaluations * cleat_budget_evaluation_seconds(budget);
        checkpoints = fmax(checkpoints, evaluations);
    }
    seconds += checkpoints * checkpoint;
    if (shape->checkpoint_minutes > 0)
        seconds += floor(seconds / (60 * (double)shape->checkpoint_minutes)) * checkpoint;
    return seconds;
}

/* Seconds of the budget used when a run of `epochs` epochs ends. */
static double end_seconds(const cleat_budget *budget, const cleat_schedule_shape *shape, int64_t steps, double used,
                          int64_t epochs) {
    double whole = schedule_seconds(budget, shape, epochs * shape->steps_per_epoch, true);
    return used + whole - schedule_seconds(budget, shape, steps, false);
}

/* Maximum number of epochs that end within `limit` seconds; 0 if none does. */
static int64_t max_epochs(const cleat_budget *budget, const cleat_schedule_shape *shape, int64_t steps, double used,
                          double limit) {
    int64_t fit = 0, too_many = shape->epochs + 1;
    while (too_many - fit > 1) {
        int64_t middle = fit + (too_many - fit) / 2;
        if (end_seconds(budget, shape, steps, used, middle) <= limit)
            fit = middle;
        else
            too_many = middle;
    }
    return fit;
}

/* Each session has its own startup, and a checkpoint at its end. */
static int64_t more_sessions(const cleat_budget *budget, double end) {
    const double length = budget->session - budget->start_seconds - cleat_budget_checkpoint_seconds(budget);
    const double rest = end - budget->earlier - budget->session;
    return budget->session > 0 && rest > 0 && length > 0 ? (int64_t)ceil(rest / length) : 0;
}

void cleat_budget_forecast(const cleat_budget *budget, const cleat_schedule_shape *shape, int64_t steps, double used,
                           cleat_time_forecast *forecast) {
    double limit = budget->seconds * (1 - budget->reserve);
    cleat_time_forecast made = {.epoch_seconds = epoch_seconds(budget), .fits = true, .epochs = shape->epochs};
    made.step_seconds = made.epoch_seconds / (double)shape->steps_per_epoch;
    made.run_seconds =
        budget->start_seconds + schedule_seconds(budget, shape, shape->epochs * shape->steps_per_epoch, true);
    made.end_seconds = end_seconds(budget, shape, steps, used, shape->epochs);
    if (budget->seconds > 0) {
        made.fits = made.end_seconds <= limit;
        made.runs = made.run_seconds > 0 ? (int64_t)(limit / made.run_seconds) : 0;
        int64_t most = made.fits ? shape->epochs : max_epochs(budget, shape, steps, used, limit);
        if (most >= shape->min_epochs && most * shape->steps_per_epoch > steps) made.epochs = most;
    }
    made.sessions =
        more_sessions(budget, budget->seconds > 0 ? fmin(made.end_seconds, budget->seconds) : made.end_seconds);
    *forecast = made;
}
