/* Which tensor made a step's loss or gradient not finite. */
#ifndef CLEAT_SRC_ANOMALY_H
#define CLEAT_SRC_ANOMALY_H

#include "checkpoint/state.h"
#include "exec/finite_check.h"
#include "train/engine.h"

typedef struct cleat_anomaly_detector {
    cleat_engine *engine;           /* what it looks into: */
    const cleat_run_data *data;     /* the epoch in progress, */
    const cleat_train_state *state; /* and where training stands */
    cleat_finite_check *check;      /* run.check_finite: of every step; NULL before the first */
    int64_t next;                   /* steps before this one are not looked into */
    int64_t skipped;                /* steps in a row whose norm was not finite */
    bool overflow_logged;           /* run.check_finite: what a loss scale made overflow was named once */
} cleat_anomaly_detector;

/* What the ring says of a step. */
typedef struct cleat_step_stats {
    int64_t step;    /* the first is 0 */
    int64_t updates; /* of the parameters since */
    float loss, norm;
    float loss_scale; /* that its gradients were multiplied by; 0: there is none */
} cleat_step_stats;

/* Looks at the figures of each step, in order. Where they are not finite and that is not what a loss scale does now and then, runs the
 * step's window again (same samples, same dropout) under the watch and logs one message: step, samples, tensor, op, cause, what to do.
 * At most once in a thousand steps. Parameters, moments and states stay as they are, and training may go on. What goes wrong with
 * the diagnosis itself is part of its message; an error is returned only where the device's states could not be brought back. Between
 * two windows of a pass; nothing happens without a pass. */
cleat_status cleat_detect_anomaly(cleat_anomaly_detector *detector, const cleat_step_stats *stats, cleat_error *error);

/* Gives back what was allocated for it. */
void cleat_anomaly_end(cleat_anomaly_detector *detector);

/* run.check_finite. Instead of cleat_feed_run, and before the update: CLEAT_ERR_NAN with what the watch found. A gradient that overflows
 * under a loss scale, and is finite with a scale of 1, is no error: the step goes its way and the scale falls; the first one is named in
 * the log. */
cleat_status cleat_check_micro_batch(cleat_anomaly_detector *detector, const cleat_work_graph *graph,
                                     const cleat_fed *fed, cleat_error *error);
cleat_status cleat_check_gradient(cleat_anomaly_detector *detector, cleat_error *error);

#endif
