/* The deadline of a run: forecast of the run time, a schedule shortened to the time budget, and the
 * decision to stop. budget.h contains the calculations; this file supplies its measurements. */
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
    cleat_session *session;     /* owned by the engine */
    cleat_schedule_shape shape; /* shape of the run; epochs: see cleat_schedule */
    bool may_shorten;           /* run.budget = fit */
    bool planned;               /* the forecast has been made */
} cleat_deadline;

/* The work of an optimizer step. */
typedef struct cleat_step_work {
    size_t kind; /* index of the length bucket */
    double work; /* positions, padding included */
} cleat_step_work;

/* Call after the session is bound and the schedule created. */
void cleat_deadline_open(cleat_deadline *deadline, const cleat_profile *profile, const cleat_engine *engine,
                         const cleat_run_data *data, const cleat_schedule *schedule, cleat_run_clock *clock);
/* CLEAT_ERR_TIME_UP if earlier processes of the run left too little time for a step. */
cleat_status cleat_deadline_check_resumed(const cleat_deadline *deadline, const cleat_run_clock *clock,
                                          const cleat_train_state *state, const char *folder, cleat_error *error);

cleat_step_work cleat_deadline_work(const cleat_deadline *deadline, const cleat_batches *batches,
                                    const cleat_global_batch *global_batch);
/* Records that the step was enqueued. */
void cleat_deadline_queued(cleat_deadline *deadline, cleat_step_work step);
/* Records that the device has finished all enqueued work, or that the time since the last call was not
 * spent on training. */
void cleat_deadline_synced(cleat_deadline *deadline, cleat_run_clock *clock);

/* Sets *near if `step`, and the evaluation after it, could exceed the budget: the run must then stop
 * before it. state->next_seconds is the time they would need. */
cleat_status cleat_deadline_is_near(cleat_deadline *deadline, cleat_run_clock *clock, cleat_step_work step,
                                    bool evaluation, cleat_train_state *state, bool *near, cleat_error *error);
/* After CLEAT_ERR_TIME_UP: how the run can be continued, as text after "with --resume". `has_trained`:
 * this process has made a step. */
const char *cleat_deadline_advice(const cleat_deadline *deadline, bool has_trained);
/* Logs the forecast of the run, and shortens the schedule if that is allowed. All steps must have been
 * logged before. */
cleat_status cleat_deadline_plan(cleat_deadline *deadline, const cleat_run_clock *clock, cleat_schedule *schedule,
                                 cleat_train_state *state, cleat_run *run, cleat_error *error);
void cleat_deadline_report(const cleat_deadline *deadline, const cleat_run_clock *clock, const cleat_schedule *schedule,
                           int64_t steps, cleat_train_report *report);

#endif
