/* Residual networks (He et al. 2016), without the head. */
#ifndef CLEAT_SRC_NN_RESNET_H
#define CLEAT_SRC_NN_RESNET_H

#include "nn/conv.h"

enum { CLEAT_RESNET_STAGES = 4 };

typedef struct cleat_resnet {
    int64_t stem_width; /* channels of the stem */
    int64_t stages;     /* 1 .. CLEAT_RESNET_STAGES */
    /* Per stage: channels of the 3 x 3 convolutions, and number of blocks; the first block of stages 2, 3,
     * ... halves height and width. */
    int64_t widths[CLEAT_RESNET_STAGES], blocks[CLEAT_RESNET_STAGES];
    /* 1: basic blocks, two 3 x 3 convolutions. Else bottlenecks: 1 x 1, 3 x 3 (which has the stride, as in
     * torchvision and timm), and 1 x 1 with `expansion` times as many channels. */
    int64_t expansion;
    /* 7 x 7 with stride 2, then 3 x 3 max pooling with stride 2; else 3 x 3 with stride 1. */
    bool large_stem;
    /* Initial scale of a block's last normalisation: 1, or 0 (Goyal et al. 2017). */
    float last_gamma;
} cleat_resnet;

/* Parameters: stem, bn, then for block I (from 1, over all stages) bI.c1, bI.b1, bI.c2, bI.b2, in bottlenecks
 * also bI.c3, bI.b3, and bI.sc.0, bI.sc.1 if the block changes the shape. Each block is a segment that may be
 * recomputed. x [B, H, W, C] -> [B, h, w, expansion width of the last stage] */
cleat_tensor *cleat_nn_resnet(cleat_graph *graph, cleat_tensor *x, const cleat_resnet *shape,
                              const cleat_norm_mode *mode);

/* Number of blocks; depth of a parameter (layer_of of cleat_model_class): that of block I is I, of the stem 0; all
 * other names are those of a head. */
int64_t cleat_nn_resnet_layers(const cleat_resnet *shape);
int64_t cleat_nn_resnet_layer_of(const cleat_resnet *shape, const char *param);

#endif
