/* Frozen parameters of a run in half precision, as exact as the weights that it started from. The device,
 * and so the checkpoint, has only their half values. */
#ifndef CLEAT_SRC_TRAIN_FROZEN_WEIGHTS_H
#define CLEAT_SRC_TRAIN_FROZEN_WEIGHTS_H

#include "checkpoint/checkpoint.h"
#include "models/model.h"
#include "profile/schema.h"
#include "weights/architecture.h"

/* A checkpoint, and the weights that have some of its tensors in full precision. */
typedef struct cleat_frozen_weights {
    const cleat_checkpoint *checkpoint;
    cleat_weights *weights; /* NULL: the checkpoint has all of them exactly */
    cleat_store *store;
    cleat_graph *graph;
    cleat_weight_target target; /* how the store's parameters are found in `weights` */
    cleat_tensor **items;       /* [count] parameters of the store that are taken from there */
    size_t count, capacity;
} cleat_frozen_weights;

/* Finds in model.init the parameters of which the checkpoint has only half values: all of them, or none if
 * those weights are missing or differ; the outcome is logged. Weights are the same if each of their frozen
 * values rounds to the checkpoint's. A run in f32 has none. `model` as cleat_model_of_checkpoint makes it;
 * it and the checkpoint must outlive *frozen, which the caller clears. */
cleat_status cleat_frozen_weights_open(const cleat_profile *profile, const cleat_model *model,
                                       const cleat_checkpoint *checkpoint, cleat_frozen_weights *frozen,
                                       cleat_error *error);
/* Reads the values of a tensor of the checkpoint, or of a copy of one, from those weights, or else from the
 * checkpoint, to values [elements]. */
cleat_status cleat_frozen_weights_read(const cleat_frozen_weights *frozen, const cleat_st_tensor *tensor, float *values,
                                       cleat_error *error);
void cleat_frozen_weights_clear(cleat_frozen_weights *frozen); /* accepts a zero-initialised one */

#endif
