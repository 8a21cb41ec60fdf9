/* SegFormer (Xie et al. 2021): a transformer over images in stages of decreasing resolution, with a decoder
 * of linear layers. */
#ifndef CLEAT_SRC_NN_SEGFORMER_H
#define CLEAT_SRC_NN_SEGFORMER_H

#include "nn/conv.h"

enum { CLEAT_SEGFORMER_STAGES = 4 };

/* Each array has a value for each stage. */
typedef struct cleat_segformer {
    int64_t width[CLEAT_SEGFORMER_STAGES]; /* D */
    int64_t heads[CLEAT_SEGFORMER_STAGES]; /* attention heads */
    /* Factor by which attention reduces height and width of the map from which it takes keys and values. */
    int64_t reduction[CLEAT_SEGFORMER_STAGES];
    int64_t depth[CLEAT_SEGFORMER_STAGES];     /* number of blocks */
    int64_t expansion[CLEAT_SEGFORMER_STAGES]; /* width of the hidden layer of a block, in units of D; published: 4 */
    int64_t patch[CLEAT_SEGFORMER_STAGES]; /* side of a patch, in pixels of the previous stage; published: 7, 3, 3, 3 */
    int64_t stride[CLEAT_SEGFORMER_STAGES]; /* distance of the patches; published: 4, 2, 2, 2 */
    int64_t decoder;                        /* width of the decoder */
    int64_t classes;                        /* outputs per pixel */
    /* The parts of fuse.weight are for the stages from the last to the first, as in published files. */
    bool descending;
    float dropout; /* dropout rate before the last layer */
} cleat_segformer;

/* The published B0 to B5 have 3.7 to 85 million parameters (tests/models/test_image_models.c checks them).
 *   stage i: pe.I (overlapping patches: convolution 7 x 7, later 3 x 3 with stride 2), pn.I (norm), blocks
 *            st.I.J, on.I (norm)
 *   block:   x += att(n1(x)); x += f2(gelu(dw(f1(n2(x)))))
 *   att:     queries from all positions (att.q), keys and values (att.kv) from the map reduced by att.red and
 *            att.n; att.out
 *   decoder: dec.I to a common width, resized to the map of the first stage, concatenated; fuse, bn, relu;
 *            cls, whose output is the tensor "logits_small"; resized to the image
 * Layer norms have eps 1e-5: transformers ignores the layer_norm_eps of config.json.
 * Each block is a segment that may be recomputed. x [B, H, W, C] -> logits [B, H, W, classes] */
cleat_tensor *cleat_nn_segformer(cleat_graph *graph, cleat_tensor *x, const cleat_segformer *shape, cleat_tensor *rng,
                                 const cleat_norm_mode *mode);

/* Number of blocks of all stages; depth of a parameter (layer_of of cleat_model_class): blocks are counted
 * over the stages; the patches of a later stage belong to its first block, its last norm to its last one,
 * pe.0 and pn.0 are the stem, and all other names are those of the decoder, which is the head. */
int64_t cleat_nn_segformer_layers(const cleat_segformer *shape);
int64_t cleat_nn_segformer_layer_of(const cleat_segformer *shape, const char *param);

#endif
