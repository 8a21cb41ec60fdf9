/* Residual networks of basic blocks (He et al. 2016), without the head. */
#ifndef CLEAT_SRC_NN_RESNET_H
#define CLEAT_SRC_NN_RESNET_H

#include "nn/conv.h"

enum { CLEAT_RESNET_STAGES = 4 };

typedef struct cleat_resnet {
    int64_t width;                       /* channels of the first stage; each further one has twice as many */
    int64_t stages;                      /* 1 .. CLEAT_RESNET_STAGES */
    int64_t blocks[CLEAT_RESNET_STAGES]; /* of each stage; the first of stages 2, 3, ... halves height and width */
    bool large_stem;  /* 7 x 7 with stride 2, and 3 x 3 max pooling with stride 2; else 3 x 3 with stride 1 */
    float last_gamma; /* where the scale of a block's last normalisation starts: 1, or 0 (Goyal et al. 2017) */
} cleat_resnet;

/* Parameters stem, bn, then of block i (from 1, over all stages) bI.c1, bI.b1, bI.c2, bI.b2, and where it changes the shape
 * bI.sc.0, bI.sc.1. Each block is a segment that may be computed again. x [B, H, W, C] -> [B, h, w, width 2^(stages - 1)] */
cleat_tensor *cleat_nn_resnet(cleat_graph *graph, cleat_tensor *x, const cleat_resnet *shape,
                              const cleat_norm_mode *mode);

#endif
