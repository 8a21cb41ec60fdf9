/* Test-time flips: the mean over the predictions of an image and of its mirror images. */
#ifndef CLEAT_SRC_TRAIN_FLIPS_H
#define CLEAT_SRC_TRAIN_FLIPS_H

#include "session/feed.h"
#include "train/load_model.h"

/* Runs a batch in the views of the profile's augmentation, then output [B, ...]. CLEAT_ERR_NOT_SUPPORTED: the model
 * has no images. */
cleat_status cleat_flips_run(const cleat_loaded_model *loaded, const cleat_profile *profile, cleat_feed *feed,
                             const cleat_work_graph *graph, const cleat_fed_batch *fed, float *output,
                             cleat_error *error);

#endif
