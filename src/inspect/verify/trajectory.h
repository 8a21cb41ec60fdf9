/* A model with one fixed batch of given arrays, as run by verification and benchmarks. */
#ifndef CLEAT_SRC_TRAJECTORY_H
#define CLEAT_SRC_TRAJECTORY_H

#include "session/session.h"
#include "verify/golden.h"

typedef struct cleat_trajectory {
    cleat_device *device;
    cleat_profile *profile; /* includes the optimizer settings */
    cleat_model *model;
    cleat_session *session;
    bool borrowed; /* the device is owned by the caller */
    cleat_staging *batch, *update;
    int64_t step;
} cleat_trajectory;

/* Creates the session of a trajectory whose device, profile and model are set, draws the parameters from seed
 * 1, and writes the batch once: all samples of `dataset`, which must live for this call only. After a failure
 * the trajectory can be closed. */
cleat_status cleat_trajectory_prepare(cleat_trajectory *trajectory, const cleat_dataset *dataset, cleat_error *error);
/* cleat_trajectory_prepare with variant number `rank` for each node, among those that support it on the
 * device (the last one if there are fewer). *more: some node has further variants. */
cleat_status cleat_trajectory_prepare_rank(cleat_trajectory *trajectory, const cleat_dataset *dataset, int rank,
                                           bool *more, cleat_error *error);
/* Second half of cleat_trajectory_prepare: draws the parameters and writes the batch of a trajectory whose
 * device, profile, model and session are set. The session has one bucket, with the dataset's length and a
 * micro-batch of all its samples. After a failure the trajectory can be closed. */
cleat_status cleat_trajectory_start(cleat_trajectory *trajectory, const cleat_dataset *dataset, cleat_error *error);
/* Overwrites the graph input `scale` with loss weights that differ from the model's. */
cleat_status cleat_trajectory_set_sample_weight(cleat_trajectory *trajectory, const cleat_golden_array *values,
                                                cleat_error *error);
void cleat_trajectory_close(cleat_trajectory *trajectory);

/* Runs the batch, all samples of `dataset`, through the evaluation graph. */
cleat_status cleat_trajectory_evaluate(cleat_trajectory *trajectory, const cleat_dataset *dataset, cleat_error *error);
/* Enqueues the forward pass, loss and backward pass of the batch; gradients accumulate. */
cleat_status cleat_trajectory_forward_backward(cleat_trajectory *trajectory, cleat_error *error);
/* Enqueues the optimizer step with the profile's learning rate. */
cleat_status cleat_trajectory_update(cleat_trajectory *trajectory, cleat_error *error);
/* Reads the loss of the last forward pass; blocks until it is computed. */
cleat_status cleat_trajectory_loss(cleat_trajectory *trajectory, double *loss, cleat_error *error);

#endif
