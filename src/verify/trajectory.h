/* A model with one fixed batch of given arrays: what verification and benchmarks run. */
#ifndef CLEAT_SRC_TRAJECTORY_H
#define CLEAT_SRC_TRAJECTORY_H

#include "models/model.h"
#include "session/session.h"

typedef struct cleat_trajectory {
    cleat_device *device;
    cleat_profile *profile; /* with the optimizer's settings */
    cleat_model *model;
    cleat_session *session;
    bool borrowed; /* the device is somebody else's */
    cleat_staging *batch, *update;
    int64_t step;
} cleat_trajectory;

/* For a trajectory whose device and model are there: the session, and the batch, written once from `reference`; parameters
 * are drawn from seed 1. On failure it is good for closing. */
cleat_status cleat_trajectory_prepare(cleat_trajectory *trajectory, const cleat_reference *reference,
                                      cleat_error *error);
/* The variant number `rank` of those that serve a node on the device, the last where it has fewer; NULL where none does. Sets *more where it has
 * further ones, and leaves it alone where not. */
const cleat_variant *cleat_variant_of_rank(const cleat_node *node, const cleat_device_facts *facts, int rank,
                                           bool *more);
/* The same with each node's variant number `rank` of those that serve it on the device, the last where it has fewer. *more: some
 * node has further ones. */
cleat_status cleat_trajectory_prepare_rank(cleat_trajectory *trajectory, const cleat_reference *reference, int rank,
                                           bool *more, cleat_error *error);
/* The second half of it: draws the parameters and writes the batch, for a trajectory whose device, profile, model
 * and session (one bucket, of the reference's batch and length) are there. On failure it is good for closing. */
cleat_status cleat_trajectory_start(cleat_trajectory *trajectory, const cleat_reference *reference, cleat_error *error);
/* Every sample of the window weighs the same in every term of the loss: for models whose data are made up. */
void cleat_trajectory_weigh_evenly(cleat_trajectory *trajectory);
void cleat_trajectory_close(cleat_trajectory *trajectory);

/* Enqueues forward, loss and backward of the batch; gradients accumulate. */
cleat_status cleat_trajectory_forward_backward(cleat_trajectory *trajectory, cleat_error *error);
/* Enqueues the optimizer step, at the profile's learning rate. */
cleat_status cleat_trajectory_update(cleat_trajectory *trajectory, cleat_error *error);
/* The loss of the last forward pass; waits. */
cleat_status cleat_trajectory_loss(cleat_trajectory *trajectory, double *loss, cleat_error *error);

#endif
