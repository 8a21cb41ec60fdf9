/* SegFormer (Xie et al. 2021): a transformer over images in stages of decreasing resolution, with a decoder
 * of linear layers. */
#ifndef CLEAT_SRC_NN_SEGFORMER_H
#define CLEAT_SRC_NN_SEGFORMER_H

#include "nn/conv.h"

enum { CLEAT_SEGFORMER_STAGES = 4 };

typedef struct cleat_segformer {
    int64_t width[CLEAT_SEGFORMER_STAGES]; /* D of each stage */
    int64_t heads[CLEAT_SEGFORMER_STAGES]; /* attention heads */
    /* Factor by which attention reduces height and width of the map from which it takes keys and values. */
    int64_t reduction[CLEAT_SEGFORMER_STAGES];
    int64_t depth[CLEAT_SEGFORMER_STAGES]; /* number of blocks */
    int64_t decoder;                       /* width of the decoder */
    int64_t classes;                       /* outputs per pixel */
    int64_t stem_stride;                   /* stride of the first patch embedding: 4 as published */
    float dropout;                         /* dropout rate before the last layer */
} cleat_segformer;

/* The published B0 and B2 have 3.7 and 27 million parameters (tests/models/test_image_models.c checks them).
 *   stage i: pe.I (overlapping patches: convolution 7 x 7, later 3 x 3 with stride 2), pn.I (norm), blocks
 *            st.I.J, on.I (norm)
 *   block:   x += att(n1(x)); x += f2(gelu(dw(f1(n2(x)))))
 *   att:     queries from all positions (att.q), keys and values (att.kv) from the map reduced by att.red and
 *            att.n; att.out
 *   decoder: dec.I to a common width, resized to the map of the first stage, concatenated; fuse, bn, relu;
 *            cls; resized to the image
 * Each block is a segment that may be recomputed. x [B, H, W, C] -> logits [B, H, W, classes] */
cleat_tensor *cleat_nn_segformer(cleat_graph *graph, cleat_tensor *x, const cleat_segformer *shape, cleat_tensor *rng,
                                 const cleat_norm_mode *mode);

/* Number of blocks of all stages; depth of a parameter (layer_of of cleat_model_class): blocks are counted over the
 * stages; the patches of a later stage belong to its first block, its last norm to its last one, pe.0 and pn.0 are the
 * stem, and all other names are those of the decoder, which is the head. */
int64_t cleat_nn_segformer_layers(const cleat_segformer *shape);
int64_t cleat_nn_segformer_layer_of(const cleat_segformer *shape, const char *param);

#endif
