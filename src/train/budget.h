/* The time budget: what steps, evaluations and checkpoints were measured to take, what an epoch and the run will take,
 * how many epochs fit, and when a run must stop. Pure: durations go in; it looks at no clock.
 *
 * Windows of different length buckets ("kinds") take different times, so a step is measured in seconds per unit of
 * work, a kind at a time; the unit is the caller's (here positions, padding included). A device works
 * asynchronously: steps are queued, and done at the next point where the host waited for it. */
#ifndef CLEAT_SRC_BUDGET_H
#define CLEAT_SRC_BUDGET_H

#include "cleat/core.h"

enum { CLEAT_BUDGET_KINDS = 16, CLEAT_BUDGET_RECENT = 16 };

/* Something that happens now and then. */
typedef struct cleat_event_stats {
    int64_t count;
    double total, slowest; /* seconds */
    double guess;          /* seconds, until the first was measured */
} cleat_event_stats;

typedef struct cleat_step_rates {
    int64_t seen;                       /* steps of this kind measured by themselves */
    int64_t count;                      /* of these, without the ones that warm up */
    double warm_up;                     /* seconds a unit of work, the fastest of those */
    double recent[CLEAT_BUDGET_RECENT]; /* and of the others, the last ones in turn */
} cleat_step_rates;

typedef struct cleat_budget {
    double seconds; /* all processes of the run together; 0: no budget */
    double reserve; /* part of it that forecasts leave free */
    size_t n_kinds;
    double epoch_work[CLEAT_BUDGET_KINDS];
    double evaluation_share; /* samples to evaluate / samples to train on */
    double start_seconds;    /* from the process's start to its first step */
    cleat_event_stats evaluation, checkpoint;

    cleat_step_rates kinds[CLEAT_BUDGET_KINDS];
    int64_t seen, measured;               /* steps, as in cleat_step_rates */
    double measured_seconds;              /* of the measured steps */
    int64_t queued;                       /* steps handed to the device, not known to be done */
    size_t queued_kind;                   /* of the last one */
    double queued_work, queued_seconds;   /* of the last one; of all, predicted */
    double slowness[CLEAT_BUDGET_RECENT]; /* measured / predicted seconds, the last ones in turn */
    int64_t n_slowness;
} cleat_budget;

/* What a run consists of. */
typedef struct cleat_schedule_shape {
    int64_t steps_per_epoch, epochs;
    int64_t min_epochs;         /* a schedule is not shortened below: the warm-up and one more */
    bool evaluates;             /* there are samples to evaluate */
    int64_t evaluate_every;     /* epochs; 0: after the last one only */
    int64_t checkpoint_every;   /* epochs; 0: after the last one only */
    int64_t checkpoint_minutes; /* 0: none by time */
} cleat_schedule_shape;

typedef struct cleat_time_forecast {
    double step_seconds;  /* mean of an epoch */
    double epoch_seconds; /* its steps */
    double run_seconds;   /* the whole run: start, steps, evaluations, checkpoints */
    double end_seconds;   /* of the budget used when the run ends */
    bool fits;            /* end_seconds is within the budget less the reserve; true without a budget */
    int64_t runs;         /* such runs that fit into the whole budget less the reserve */
    int64_t epochs;       /* the schedule: as asked for, or what fits, if that is at least shape->min_epochs */
} cleat_time_forecast;

/* The seconds of `event`, measured. */
void cleat_event_stats_add(cleat_event_stats *event, double seconds);

/* A step was handed to the device: a window of `kind`, `work` units (> 0). */
void cleat_budget_queue(cleat_budget *budget, size_t kind, double work);
/* All queued steps are done, `seconds` after the steps before them were. A step that was alone in the queue measures
 * its kind. The first three of all and the first of a kind compile and fault in: they count only while
 * there is nothing else. */
void cleat_budget_done(cleat_budget *budget, double seconds);
/* Enough was measured for a forecast: 8 steps that took a second together, or 64, over kinds that make up three
 * quarters of an epoch's work. At the end of an epoch 3 steps that took a second will do, or 8. Until then steps are to
 * be measured one by one. */
bool cleat_budget_is_measured(const cleat_budget *budget, bool epoch_end);

/* The seconds of a step, by the median of what was measured; a kind that was not measured goes by the others. 0:
 * nothing is known. */
double cleat_budget_step_seconds(const cleat_budget *budget, size_t kind, double work);
/* Evaluation and checkpoint, mean of the measured ones. Before: an evaluation takes a third of an epoch's time for as
 * many samples (forward without backward), a checkpoint its guess. */
double cleat_budget_evaluation_seconds(const cleat_budget *budget);
double cleat_budget_checkpoint_seconds(const cleat_budget *budget);

/* Seconds that the next step (as in cleat_budget_queue) may need until its checkpoint is written: what is queued and
 * the step as slow as the slowest of late, the slowest evaluation if one is due, the slowest checkpoint. */
double cleat_budget_needs(const cleat_budget *budget, size_t kind, double work, bool evaluation);
/* The next step could end with `used` seconds and its own beyond the budget. */
bool cleat_budget_must_stop(const cleat_budget *budget, double used, size_t kind, double work, bool evaluation);

/* After `steps` optimizer steps that used `used` seconds of the budget. Each evaluation is taken to leave a checkpoint,
 * as it does while the metric gets better. */
void cleat_budget_forecast(const cleat_budget *budget, const cleat_schedule_shape *shape, int64_t steps, double used,
                           cleat_time_forecast *forecast);

#endif
