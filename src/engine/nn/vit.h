/* Vision transformers (Dosovitskiy et al. 2021), without the head. */
#ifndef CLEAT_SRC_NN_VIT_H
#define CLEAT_SRC_NN_VIT_H

#include "nn/transformer.h"

typedef struct cleat_vit {
    cleat_transformer blocks;
    int64_t patch;    /* side of a patch in pixels */
    bool class_token; /* a learned token in front of the patches */
    bool mean;        /* the result is the mean over the patches; else the class token */
} cleat_vit;

/* Parameters: pe (a convolution whose stride is its kernel), cls [D] if there is a class token, pos [positions, D],
 * cleat_nn_encoder's blocks, and norm, which is applied to the class token, or to the mean. Pixels beyond the
 * last whole patch are ignored. rng may be NULL if dropout is 0.
 * x [B, H, W, C] -> [B, D] */
cleat_tensor *cleat_nn_vit(cleat_graph *graph, cleat_tensor *x, cleat_tensor *rng, const cleat_vit *shape);

#endif
