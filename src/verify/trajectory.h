/* A model with one fixed batch of given arrays: what verification and benchmarks run. */
#ifndef CLEAT_SRC_TRAJECTORY_H
#define CLEAT_SRC_TRAJECTORY_H

#include "session/session.h"
#include "verify/golden.h"

typedef struct cleat_trajectory {
    cleat_device *device;
    cleat_profile *profile; /* with the optimizer's settings */
    cleat_model *model;
    cleat_session *session;
    bool borrowed; /* the device is somebody else's */
    cleat_staging *batch, *update;
    int64_t step;
} cleat_trajectory;

/* For a trajectory whose device, profile and model are there: the session, and the batch, written once:
 * all samples of `dataset`, which is needed for the call only; parameters are drawn from seed 1. On
 * failure it is good for closing. */
cleat_status cleat_trajectory_prepare(cleat_trajectory *trajectory, const cleat_dataset *dataset, cleat_error *error);
/* The variant number `rank` of those that serve a node on the device, the last where it has fewer; NULL
 * where none does. Sets *more where it has further ones, and leaves it alone where not. */
const cleat_variant *cleat_variant_of_rank(const cleat_node *node, const cleat_device_facts *facts, int rank,
                                           bool *more);
/* The same with each node's variant number `rank` of those that serve it on the device, the last where it
 * has fewer. *more: some node has further ones. */
cleat_status cleat_trajectory_prepare_rank(cleat_trajectory *trajectory, const cleat_dataset *dataset, int rank,
                                           bool *more, cleat_error *error);
/* The second half of it: draws the parameters and writes the batch, for a trajectory whose device,
 * profile, model and session (one bucket, of the dataset's length and of as many samples a micro-batch)
 * are there. On failure it is good for closing. */
cleat_status cleat_trajectory_start(cleat_trajectory *trajectory, const cleat_dataset *dataset, cleat_error *error);
/* Overwrites the graph's input `scale`, for a loss that weighs its samples otherwise than the model does. */
cleat_status cleat_trajectory_set_sample_weight(cleat_trajectory *trajectory, const cleat_golden_array *values,
                                                cleat_error *error);
void cleat_trajectory_close(cleat_trajectory *trajectory);

/* Enqueues forward, loss and backward of the batch; gradients accumulate. */
cleat_status cleat_trajectory_forward_backward(cleat_trajectory *trajectory, cleat_error *error);
/* Enqueues the optimizer step, at the profile's learning rate. */
cleat_status cleat_trajectory_update(cleat_trajectory *trajectory, cleat_error *error);
/* The loss of the last forward pass; waits. */
cleat_status cleat_trajectory_loss(cleat_trajectory *trajectory, double *loss, cleat_error *error);

#endif
