/* Startup timing: the time before the first optimizer step of a process, part by part. */
#ifndef CLEAT_SRC_STARTUP_TIMING_H
#define CLEAT_SRC_STARTUP_TIMING_H

#include "checkpoint/state.h"
#include "session/session.h"
#include "train/run.h"
#include "train/run_clock.h"

/* Adds the time since the last call to *part, a member of report->start. The part of it spent waiting for
 * programs is added to `kernels` of report->start instead. `session` may be NULL if it is not open yet.
 * Does nothing after the first step. */
void cleat_startup_lap(cleat_run_clock *clock, cleat_train_report *report, const cleat_session *session, double *part);
/* Call when the device has finished the first step: completes the times of the report, prints and logs
 * them. */
cleat_status cleat_startup_done(cleat_run_clock *clock, cleat_run *run, const cleat_session *session,
                                const cleat_train_state *state, cleat_error *error);

#endif
