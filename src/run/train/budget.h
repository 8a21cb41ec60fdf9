/* The time budget: measured times of steps, evaluations and checkpoints; the forecast of an epoch and of
 * the run; the number of epochs that fit; the decision to stop. The functions are pure: durations are
 * passed in, and no clock is read.
 * Global batches of different length buckets ("kinds") take different times, so a step is measured in
 * seconds per unit of work, separately for each kind. The caller chooses the unit (the trainer uses
 * positions, padding included). A device works asynchronously: steps are queued, and are known to be done
 * when the host next waits for it. */
#ifndef CLEAT_SRC_BUDGET_H
#define CLEAT_SRC_BUDGET_H

#include "cleat/core.h"

enum { CLEAT_BUDGET_KINDS = 16, CLEAT_BUDGET_RECENT = 16 };

/* Durations of a recurring event (evaluation, checkpoint), in seconds. */
typedef struct cleat_event_stats {
    int64_t count;
    double total, slowest; /* of the measured events */
    double guess;          /* estimate used until the first event is measured */
} cleat_event_stats;

typedef struct cleat_step_rates {
    int64_t seen;   /* steps of this kind measured individually */
    int64_t count;  /* of these, the steps after the warm-up */
    double warm_up; /* fastest warm-up step, in seconds per unit of work */
    /* ring buffer of the latest other steps, in seconds per unit of work */
    double recent[CLEAT_BUDGET_RECENT];
} cleat_step_rates;

typedef struct cleat_budget {
    double seconds; /* for all processes of the run together; 0: no budget */
    double session; /* for this process; 0: no limit */
    double earlier; /* seconds used by earlier processes */
    double reserve; /* fraction of the budget that forecasts leave free */
    size_t n_kinds;
    double epoch_work[CLEAT_BUDGET_KINDS];
    double evaluation_share; /* number of evaluation samples / number of training samples */
    double start_seconds;    /* from the start of the process to its first step */
    cleat_event_stats evaluation, checkpoint;

    cleat_step_rates kinds[CLEAT_BUDGET_KINDS];
    int64_t seen, measured;  /* steps, as in cleat_step_rates */
    double measured_seconds; /* total of the measured steps */
    int64_t queued;          /* steps passed to the device and not known to be done */
    size_t queued_kind;      /* of the last queued step */
    /* work of the last queued step; predicted seconds of all queued steps */
    double queued_work, queued_seconds;
    double slowness[CLEAT_BUDGET_RECENT]; /* measured / predicted seconds; ring buffer */
    int64_t n_slowness;
} cleat_budget;

/* The parts of a run that a forecast adds up. */
typedef struct cleat_schedule_shape {
    int64_t steps_per_epoch, epochs;
    int64_t min_epochs;         /* minimum length of a shortened schedule: the warm-up and one more epoch */
    bool evaluates;             /* evaluation samples exist */
    int64_t evaluate_every;     /* period in epochs; 0: only after the last epoch */
    int64_t checkpoint_every;   /* period in epochs; 0: only after the last epoch */
    int64_t checkpoint_minutes; /* period in minutes; 0: no checkpoints by time */
} cleat_schedule_shape;

typedef struct cleat_time_forecast {
    double step_seconds;  /* mean over an epoch */
    double epoch_seconds; /* training steps of an epoch only */
    double run_seconds;   /* the whole run: startup, steps, evaluations, checkpoints */
    double end_seconds;   /* time of the budget used when the run ends */
    int64_t sessions;     /* after this one, until the run ends or its budget is used up; 0 without budget->session */
    /* end_seconds is within the budget less the reserve; always true without a budget */
    bool fits;
    int64_t runs; /* number of such runs that fit the whole budget less the reserve */
    /* length of the schedule: as requested, or as many epochs as fit if these are at least
     * shape->min_epochs */
    int64_t epochs;
} cleat_time_forecast;

/* Adds a measured event of `seconds` seconds. */
void cleat_event_stats_add(cleat_event_stats *event, double seconds);

/* Records a step that was passed to the device: a global batch of `kind` with `work` units (> 0). */
void cleat_budget_queue(cleat_budget *budget, size_t kind, double work);
/* Records that all queued steps are done, `seconds` after the previous ones. Only a step that was alone in
 * the queue measures its kind. The first three steps of all, and the first of each kind, include
 * compilation and page faults: their rates are used only while there are no others. */
void cleat_budget_done(cleat_budget *budget, double seconds);
/* Whether enough steps were measured for a forecast: 8 steps that took a second together, or 64 steps, of
 * kinds that make up three quarters of the work of an epoch. At the end of an epoch, 3 steps that took a
 * second, or 8 steps, are sufficient. Until then the caller should measure steps individually. */
bool cleat_budget_is_measured(const cleat_budget *budget, bool epoch_end);

/* Predicted seconds of a step, from the median of its measured kind; a kind that was not measured uses the
 * rates of the others. 0: nothing was measured. */
double cleat_budget_step_seconds(const cleat_budget *budget, size_t kind, double work);
/* Mean seconds of the measured evaluations and checkpoints. Before the first one, an evaluation is taken
 * to cost a third of the training time of the same number of samples (forward without backward), and a
 * checkpoint its `guess`. */
double cleat_budget_evaluation_seconds(const cleat_budget *budget);
double cleat_budget_checkpoint_seconds(const cleat_budget *budget);

/* Upper estimate of the seconds until the checkpoint after the next step (as in cleat_budget_queue) is
 * written: the queued steps and this step at the slowest recent rate, the slowest evaluation if one is
 * due, and the slowest checkpoint. */
double cleat_budget_needs(const cleat_budget *budget, size_t kind, double work, bool evaluation);
/* Time of the budget used when this process must have stopped: the end of its session, or of the budget; 0:
 * no limit. */
double cleat_budget_limit(const cleat_budget *budget);
/* Whether the next step could end beyond the limit; `used` seconds are already spent. */
bool cleat_budget_must_stop(const cleat_budget *budget, double used, size_t kind, double work, bool evaluation);

/* Forecast after `steps` optimizer steps that used `used` seconds of the budget. Every evaluation is
 * assumed to write a checkpoint, as it does while the metric improves. */
void cleat_budget_forecast(const cleat_budget *budget, const cleat_schedule_shape *shape, int64_t steps, double used,
                           cleat_time_forecast *forecast);

#endif
