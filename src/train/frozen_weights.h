/* Frozen parameters of a run in half precision, as exact as the weights that it started from. A device has only halves of
 * them, so that is what a checkpoint has too. */
#ifndef CLEAT_SRC_TRAIN_FROZEN_WEIGHTS_H
#define CLEAT_SRC_TRAIN_FROZEN_WEIGHTS_H

#include "checkpoint/checkpoint.h"
#include "models/model.h"
#include "profile/schema.h"

typedef struct cleat_frozen_weights {
    cleat_st_tensor *items; /* [count]: names are those of the checkpoint, data are owned */
    size_t count, capacity;
} cleat_frozen_weights;

/* Reads the parameters that the checkpoint of a run has in halves from model.init: all of them, or, where these weights
 * are gone or are others, none. Either is logged in a line. The weights are the same if each of their frozen values,
 * rounded, is the checkpoint's. *frozen is empty for a run in f32. `model` as cleat_model_of_checkpoint makes it; the
 * checkpoint must outlive *frozen, which the caller clears. */
cleat_status cleat_frozen_weights_read(const cleat_profile *profile, const cleat_model *model,
                                       const cleat_checkpoint *checkpoint, cleat_frozen_weights *frozen,
                                       cleat_error *error);
/* The values of a tensor of the checkpoint: those read, else its own. */
const void *cleat_frozen_weights_data(const cleat_frozen_weights *frozen, const cleat_st_tensor *tensor);
void cleat_frozen_weights_clear(cleat_frozen_weights *frozen);

#endif
