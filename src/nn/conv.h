/* Layers of convolutional networks. Images are [B, H, W, C], channels last. */
#ifndef CLEAT_SRC_NN_CONV_H
#define CLEAT_SRC_NN_CONV_H

#include "cleat/ops.h"

typedef struct cleat_conv_layer {
    int64_t features, kernel, stride, padding; /* N, R = S */
    bool bias;
} cleat_conv_layer;

/* Convolution with parameters PREFIX.weight [N, R, S, C] (of a 1 x 1 with stride 1, a linear layer: [N, C]) and, with a bias,
 * PREFIX.bias [N], both uniform in +-1/sqrt(fan_in) as torch.nn.Conv2d starts; without a bias normal with variance
 * 2 / fan_out, for normalisation and ReLU to follow (He et al. 2015). x [B, H, W, C] -> [B, P, Q, N] */
cleat_tensor *cleat_nn_conv(cleat_graph *graph, const char *prefix, cleat_tensor *x, const cleat_conv_layer *layer);

/* Depth-wise convolution 3 x 3 with PREFIX.weight [3, 3, C] and PREFIX.bias [C]. [B, H, W, C] -> [B, H, W, C] */
cleat_tensor *cleat_nn_depthwise_conv2d(cleat_graph *graph, const char *prefix, cleat_tensor *x);

/* How batch normalisation works in a graph. */
typedef struct cleat_norm_mode {
    bool training;         /* statistics of the batch, which are tracked; else the tracked ones */
    cleat_tensor *samples; /* i32 [1]: samples of the batch that count; NULL: all */
    float momentum;        /* of the running statistics: the share of the new ones */
} cleat_norm_mode;

/* Batch normalisation, eps 1e-5, of x, then + residual (NULL: none), then ReLU where `relu`. Parameters PREFIX.weight [C],
 * which starts at `gamma`, and PREFIX.bias [C] (zero); buffer PREFIX.running [2, C]. [..., C] -> [..., C] */
cleat_tensor *cleat_nn_batch_norm(cleat_graph *graph, const char *prefix, cleat_tensor *x, cleat_tensor *residual,
                                  bool relu, float gamma, const cleat_norm_mode *mode);

#endif
