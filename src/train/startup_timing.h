/* What the first optimizer step of a process waited for, part by part. */
#ifndef CLEAT_SRC_STARTUP_TIMING_H
#define CLEAT_SRC_STARTUP_TIMING_H

#include "checkpoint/state.h"
#include "session/session.h"
#include "train/run.h"
#include "train/run_clock.h"

/* Adds the time since the last part to *part, of report->start, and what of it was waiting for programs to its
 * `kernels`. `session` may be NULL: not open yet. Nothing happens after the first step. */
void cleat_startup_lap(cleat_run_clock *clock, cleat_train_report *report, const cleat_session *session, double *part);
/* The device has done the first step: completes the report's times, prints and logs them. */
cleat_status cleat_startup_done(cleat_run_clock *clock, cleat_run *run, const cleat_session *session,
                                const cleat_train_state *state, cleat_error *error);

#endif
