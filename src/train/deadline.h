/* The deadline of a run: what the run will take, a schedule shortened to the time budget, and when the run must stop.
 * budget.h computes; here is what it is told. */
#ifndef CLEAT_SRC_DEADLINE_H
#define CLEAT_SRC_DEADLINE_H

#include "checkpoint/state.h"
#include "train/budget.h"
#include "train/engine.h"
#include "train/run.h"
#include "train/run_clock.h"
#include "train/schedule.h"

typedef struct cleat_deadline {
    cleat_budget budget;
    cleat_session *session;     /* the engine's */
    cleat_schedule_shape shape; /* of the run; epochs: see cleat_schedule */
    bool may_shorten;           /* run.budget = fit */
    bool planned;               /* the forecast was made */
} cleat_deadline;

/* The work of an optimizer step. */
typedef struct cleat_step_work {
    size_t kind; /* length bucket */
    double work; /* positions, padding included */
} cleat_step_work;

/* After the session was bound and the schedule made. */
void cleat_deadline_open(cleat_deadline *deadline, const cleat_profile *profile, const cleat_engine *engine,
                         const cleat_run_data *data, const cleat_schedule *schedule, cleat_run_clock *clock);
/* CLEAT_ERR_TIME_UP where earlier processes left no time for a step. */
cleat_status cleat_deadline_check_resumed(const cleat_deadline *deadline, const cleat_run_clock *clock,
                                          const cleat_train_state *state, const char *folder, cleat_error *error);

cleat_step_work cleat_deadline_work(const cleat_deadline *deadline, const cleat_batches *batches,
                                    const cleat_global_batch *global_batch);
/* The step was enqueued. */
void cleat_deadline_queued(cleat_deadline *deadline, cleat_step_work step);
/* The device has done what was enqueued, or is about to train after something else. */
void cleat_deadline_synced(cleat_deadline *deadline, cleat_run_clock *clock);

/* Whether `step`, and the evaluation after it, could pass the budget: then the run is to stop before it, and
 * state->next_seconds is what it would need. */
cleat_status cleat_deadline_is_near(cleat_deadline *deadline, cleat_run_clock *clock, cleat_step_work step,
                                    bool evaluation, cleat_train_state *state, bool *near, cleat_error *error);
/* Prints what the run will take, and shortens its schedule where that is wanted. All steps are logged before. */
cleat_status cleat_deadline_plan(cleat_deadline *deadline, const cleat_run_clock *clock, cleat_schedule *schedule,
                                 cleat_train_state *state, cleat_run *run, cleat_error *error);
void cleat_deadline_report(const cleat_deadline *deadline, const cleat_run_clock *clock, const cleat_schedule *schedule,
                           int64_t steps, cleat_train_report *report);

#endif
