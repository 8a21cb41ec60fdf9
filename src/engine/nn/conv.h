/* Layers of convolutional networks. Images are [B, H, W, C], channels last. */
#ifndef CLEAT_SRC_NN_CONV_H
#define CLEAT_SRC_NN_CONV_H

#include "cleat/ops.h"

typedef struct cleat_conv_layer {
    int64_t features, kernel, stride, padding; /* N, R = S */
    bool bias;
} cleat_conv_layer;

/* Convolution with the parameters PREFIX.weight [N, R, S, C] (a 1 x 1 convolution with stride 1 is a linear
 * layer: [N, C]) and, with a bias, PREFIX.bias [N]. Both are initialised uniformly in +-1/sqrt(fan_in), as in
 * torch.nn.Conv2d. Without a bias the weights are normal with variance 2 / fan_out, as normalisation and ReLU
 * follow (He et al. 2015).
 * x [B, H, W, C] -> [B, P, Q, N] */
cleat_tensor *cleat_nn_conv(cleat_graph *graph, const char *prefix, cleat_tensor *x, const cleat_conv_layer *layer);

/* Depthwise convolution with PREFIX.weight [kernel, kernel, C] and PREFIX.bias [C]; kernel is odd.
 * x [B, H, W, C] -> [B, H, W, C] */
cleat_tensor *cleat_nn_depthwise_conv2d(cleat_graph *graph, const char *prefix, cleat_tensor *x, int64_t kernel);

/* The mode of batch normalisation in a graph. */
typedef struct cleat_norm_mode {
    /* Normalises with batch statistics, which update the running ones; else, or if the layer is frozen, with
     * the running statistics. */
    bool training;
    /* i32 [1]: number of valid samples of the batch; NULL: all. */
    cleat_tensor *samples;
    float momentum; /* weight of the new statistics in the running ones */
} cleat_norm_mode;

/* Batch normalisation of x with eps 1e-5, then + residual (NULL: none), then ReLU if `relu`. Parameters
 * PREFIX.weight [C], initialised to `gamma`, and PREFIX.bias [C], initialised to zero; buffers
 * PREFIX.running_mean and PREFIX.running_var [C]. [..., C] -> [..., C] */
cleat_tensor *cleat_nn_batch_norm(cleat_graph *graph, const char *prefix, cleat_tensor *x, cleat_tensor *residual,
                                  bool relu, float gamma, const cleat_norm_mode *mode);

#endif
