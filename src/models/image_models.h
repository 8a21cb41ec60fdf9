/* What models of images share. */
#ifndef CLEAT_SRC_IMAGE_MODELS_H
#define CLEAT_SRC_IMAGE_MODELS_H

#include "models/model.h"
#include "nn/conv.h"

/* The profile's settings as options of a dataset; `classes` is the caller's. Borrows the profile's texts. */
cleat_image_options cleat_model_image_options(const cleat_model *model, cleat_mode mode, const char *fitted);

/* How batch normalisation works in a graph of this mode; in training with an input of its own, `samples`. */
cleat_norm_mode cleat_model_norm_mode(cleat_graph *graph, cleat_mode mode, cleat_model_inputs *inputs);

/* The mean over height and width. [B, H, W, D] -> [B, D] */
cleat_tensor *cleat_model_global_avg_pool(cleat_graph *graph, cleat_tensor *x);

#endif
