/* ConvNeXt (Liu et al. 2022), without the head. */
#ifndef CLEAT_SRC_NN_CONVNEXT_H
#define CLEAT_SRC_NN_CONVNEXT_H

#include "cleat/ops.h"

enum { CLEAT_CONVNEXT_STAGES = 4 };

typedef struct cleat_convnext {
    int64_t stages; /* 1 .. CLEAT_CONVNEXT_STAGES */
    /* Per stage; stages 2, 3, ... begin by halving height and width. */
    int64_t widths[CLEAT_CONVNEXT_STAGES], blocks[CLEAT_CONVNEXT_STAGES];
    float norm_eps, last_norm_eps; /* of the blocks, and of the norm after the mean */
} cleat_convnext;

/* Parameters: pe (4 x 4 convolution with stride 4) and pn (its norm); for stage S from 1 on (counted from 0)
 * dn.S (norm) and dc.S (2 x 2 convolution with stride 2); for block J st.S.J.dw (7 x 7, depthwise), st.S.J.n
 * (norm), st.S.J.f1, st.S.J.f2, st.S.J.gamma [D] (layer scale); and norm, after the mean over height and
 * width. Each block is a segment that may be recomputed. x [B, H, W, C] -> [B, width of the last stage] */
cleat_tensor *cleat_nn_convnext(cleat_graph *graph, cleat_tensor *x, const cleat_convnext *shape);

/* Number of blocks; depth of a parameter (layer_of of cleat_model_class): blocks count from 1 over all stages, a
 * stage's downsampling belongs to its first block, the stem is 0, all other names are those of a head. */
int64_t cleat_nn_convnext_layers(const cleat_convnext *shape);
int64_t cleat_nn_convnext_layer_of(const cleat_convnext *shape, const char *param);

#endif
