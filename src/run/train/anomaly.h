/* Anomaly detection: finds the tensor that made the loss or the gradient of a step not finite. */
#ifndef CLEAT_SRC_ANOMALY_H
#define CLEAT_SRC_ANOMALY_H

#include "checkpoint/state.h"
#include "exec/finite_check.h"
#include "train/engine.h"

/* The detector owns only `check`; the other pointers belong to the trainer. */
typedef struct cleat_anomaly_detector {
    cleat_engine *engine;
    const cleat_run_data *data;     /* batches of the epoch in progress */
    const cleat_train_state *state; /* step and position of training */
    cleat_finite_check *check;      /* run.check_finite: used for every step; NULL before the first one */
    int64_t next;                   /* earlier steps are not diagnosed */
    int64_t skipped;                /* consecutive steps whose loss or gradient norm was not finite */
    /* run.check_finite: an overflow caused by the loss scale has been logged */
    bool overflow_logged;
} cleat_anomaly_detector;

/* Results of one step, as the device recorded them in its ring. */
typedef struct cleat_step_stats {
    int64_t step;    /* counted from 0 */
    int64_t updates; /* parameter updates since that step */
    float loss, norm;
    float loss_scale; /* factor of the step's gradients; 0: no loss scaling */
} cleat_step_stats;

/* Examines the results of each step, in order. If they are not finite, and this is not an occasional
 * overflow under a loss scale, the global batch of the step is run again (same samples, same dropout) with
 * finite checks, and one message is logged: step, samples, tensor, op, cause, remedy. At most one
 * diagnosis is made in a thousand steps. Parameters, moments and states are restored, so training may
 * continue. A failure of the diagnosis itself becomes part of its message; an error is returned only if
 * the states on the device could not be restored. Call it between two global batches of a pass; without a
 * pass it does nothing. */
cleat_status cleat_detect_anomaly(cleat_anomaly_detector *detector, const cleat_step_stats *stats, cleat_error *error);

/* Frees the finite check. */
void cleat_anomaly_end(cleat_anomaly_detector *detector);

/* run.check_finite. Replaces cleat_feed_run, and precedes the update. CLEAT_ERR_NAN, with a description of
 * the tensor, if a value is not finite. A gradient that overflows under a loss scale, and is finite with a
 * scale of 1, is not an error: the step continues, and the scale is reduced; the first such overflow is
 * logged. */
cleat_status cleat_check_micro_batch(cleat_anomaly_detector *detector, const cleat_work_graph *graph,
                                     const cleat_fed_batch *fed, cleat_error *error);
cleat_status cleat_check_gradient(cleat_anomaly_detector *detector, cleat_error *error);

#endif
