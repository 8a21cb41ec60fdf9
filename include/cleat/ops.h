/* The operations: each appends its nodes to a graph and returns its output, owned by the graph.
 *
 * Letters: B batch, L length, D width, H heads, K fan_in, N fan_out, V vocabulary. `[..., D]` is any
 * number of leading extents. Images: H height, W width, C channels, which lie side by side (channels
 * last). T is the storage type of activations (f32, f16, bf16); parameters, statistics and losses are f32.
 * Every op has a gradient unless it says otherwise. An op that gets a NULL required input returns NULL:
 * see cleat_graph_status. */
#ifndef CLEAT_OPS_H
#define CLEAT_OPS_H

#include "cleat/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Converts x to another storage type. [...] -> [...] */
CLEAT_API cleat_tensor *cleat_cast(cleat_graph *graph, cleat_tensor *x, cleat_dtype dtype);

/* Mixed precision (Micikevicius et al., "Mixed Precision Training", ICLR 2018). From this call on,
 * operations that compute in any storage type take their inputs in `storage` (f32, f16, bf16) and return
 * their results in it; all others (losses, statistics) take f32. Inputs of another type are cast first,
 * each once. Sums are f32 in any case. Parameters are read from a working copy in `storage`, which
 * cleat_adamw writes; their gradients stay f32. Call it before the first operation, and again to change
 * the type (a head in f32). Without the call, a graph has no automatic casts. */
CLEAT_API void cleat_autocast(cleat_graph *graph, cleat_dtype storage);
/* The type of autocast at this point; f32 where there is none. */
CLEAT_API cleat_dtype cleat_autocast_storage(const cleat_graph *graph);

/* Reshape: the same elements in the same order under another shape [rank], sharing the memory of x at no
 * cost. [...] -> [shape] */
CLEAT_API cleat_tensor *cleat_reshape(cleat_graph *graph, cleat_tensor *x, int rank, const int64_t *shape);

/* y = a + b, same shape and dtype. */
CLEAT_API cleat_tensor *cleat_add(cleat_graph *graph, cleat_tensor *a, cleat_tensor *b);

/* Row tokens[b, l] of the table; a token outside [0, V) gives a row of zeros and no gradient.
 * tokens i32 [B, L], table f32 [V, D] -> `storage` [B, L, D]. The table's gradient has a fixed order of
 * summation. */
CLEAT_API cleat_tensor *cleat_embedding(cleat_graph *graph, cleat_tensor *tokens, cleat_tensor *table,
                                        cleat_dtype storage);

/* x + sinusoidal positions (Vaswani et al. 2017, section 3.5): sine in even, cosine in odd columns. With
 * lengths (i32 [B], else NULL) the first half of the columns is the table of width D/2 at l, and the
 * second half is the table at lengths[b] - 1 - l (0 past the end), which encodes the distance from the end
 * of a chain. D even; a multiple of 4 with lengths. [B, L, D] -> [B, L, D] */
CLEAT_API cleat_tensor *cleat_positional_encoding(cleat_graph *graph, cleat_tensor *x, cleat_tensor *lengths);

/* y = x weight^T + bias + residual. x T [..., K], weight T [N, K] (stored as PyTorch does), bias f32 [N] or
 * NULL, residual T [..., N] or NULL -> T [..., N]. */
CLEAT_API cleat_tensor *cleat_linear(cleat_graph *graph, cleat_tensor *x, cleat_tensor *weight, cleat_tensor *bias,
                                     cleat_tensor *residual);

/* Layer normalisation over the last extent (Ba et al. 2016), biased variance, y = (x - mean) / sqrt(var +
 * eps) * gamma + beta. x T [..., D], gamma f32 [D], beta f32 [D] -> T [..., D]. */
CLEAT_API cleat_tensor *cleat_layer_norm(cleat_graph *graph, cleat_tensor *x, cleat_tensor *gamma, cleat_tensor *beta,
                                         float eps);

/* GELU with the error function (Hendrycks & Gimpel 2016): x * 0.5 * (1 + erf(x / sqrt(2))). [...] -> [...] */
CLEAT_API cleat_tensor *cleat_gelu(cleat_graph *graph, cleat_tensor *x);

/* max(x, 0); NaN stays NaN. The gradient needs y only. [...] -> [...] */
CLEAT_API cleat_tensor *cleat_relu(cleat_graph *graph, cleat_tensor *x);

/* exp(x) / sum of exp(x) over the last extent, at most 65536. [..., D] -> [..., D] */
CLEAT_API cleat_tensor *cleat_softmax(cleat_graph *graph, cleat_tensor *x);

/* Multi-head self-attention, softmax(Q K^T / sqrt(D/H)) V, computed block by block: no L x L tensor exists
 * (Dao et al. 2022). qkv T [B, L, 3D]: queries, keys, values side by side, each [H, D/H]. lengths i32 [B] or
 * NULL: keys at lengths[b] and later are hidden; outputs of rows at lengths[b] and later are 0 and pass no
 * gradient. D/H <= 128 -> T [B, L, D]. */
CLEAT_API cleat_tensor *cleat_attention(cleat_graph *graph, cleat_tensor *qkv, cleat_tensor *lengths, int heads);

/* Multi-head attention of one sequence to another: softmax(Q K^T / sqrt(D/H)) V, computed block by block
 * like cleat_attention. q T [B, L, D], kv T [B, S, 2D]: keys, values side by side, each [H, D/H]. D/H <=
 * 128 -> T [B, L, D]. */
CLEAT_API cleat_tensor *cleat_cross_attention(cleat_graph *graph, cleat_tensor *q, cleat_tensor *kv, int heads);

/* One layer of long short-term memory over whole sequences (Hochreiter & Schmidhuber 1997, with forget
 * gates), as PyTorch's nn.LSTM with batch_first: gates i, f, o = sigmoid, g = tanh of x[t] weight_ih^T +
 * bias_ih + h[t-1] weight_hh^T + bias_hh, in the order i, f, g, o; c[t] = f c[t-1] + i g; h[t] = o
 * tanh(c[t]); h and c are zero before the first step. x T [B, L, I], weight_ih T [4H, I], weight_hh T [4H,
 * H], biases f32 [4H], H <= 16384 -> h T [B, L, H]. Keeps 5H elements a step for backward (the gates,
 * where x weight_ih^T was, and c). */
CLEAT_API cleat_tensor *cleat_lstm(cleat_graph *graph, cleat_tensor *x, cleat_tensor *weight_ih,
                                   cleat_tensor *weight_hh, cleat_tensor *bias_ih, cleat_tensor *bias_hh);

/* The mean of each sample's rows: of the first lengths[b], or of all where lengths is NULL. A sample
 * without rows gives zeros and gets no gradient. x T [B, L, D], lengths i32 [B] -> T [B, D] */
CLEAT_API cleat_tensor *cleat_mean_pool(cleat_graph *graph, cleat_tensor *x, cleat_tensor *lengths);

typedef enum cleat_row { CLEAT_ROW_FIRST, CLEAT_ROW_LAST } cleat_row;

/* Each sample's first row, or its last: row lengths[b] - 1, or L - 1 where lengths is NULL. A sample
 * without rows gives zeros and gets no gradient. x T [B, L, D], lengths i32 [B] -> T [B, D] */
CLEAT_API cleat_tensor *cleat_select_row(cleat_graph *graph, cleat_tensor *x, cleat_tensor *lengths, cleat_row which);

/* Zeroes each element with probability `rate` and scales the rest by 1 / (1 - rate). The mask is
 * Philox4x32-10 keyed by rng[0..1] (seed) at counter ((element + rng[3] S) / 4, d, rng[2] (step)), d the
 * number of dropouts in the graph before this one; backward makes it again, nothing is stored. rng[3]:
 * samples of the global batch before this micro-batch; S: elements of a sample (x[0]) rounded up to a multiple
 * of 4. If the number of elements is such a multiple, the mask of a sample does not depend on how its global
 * batch is cut into micro-batches; otherwise it does, but still differs from sample to sample. rng u32 [4]. x [B, ...] -> [B, ...].
 * rate 0 returns x. */
CLEAT_API cleat_tensor *cleat_dropout(cleat_graph *graph, cleat_tensor *x, cleat_tensor *rng, float rate);

/* Cross entropy, a loss of classification: sum over rows of sample_weight[row] * -sum over c of q[c] log
 * softmax(logits)[c], q[c] = (1 - label_smoothing) [c = label] + label_smoothing / C. A row whose label is
 * not in [0, C) counts for nothing, and gets no gradient. A row is a sample, or a token: rows = B L.
 * logits T [..., C], labels i32 and sample_weight f32 of `rows` elements ([B, L] or [B L]; the host weighs
 * rows so that micro-batches add up), label_smoothing in [0, 1) -> f32 [1], in a fixed order of summation. */
CLEAT_API cleat_tensor *cleat_cross_entropy(cleat_graph *graph, cleat_tensor *logits, cleat_tensor *labels,
                                            cleat_tensor *sample_weight, float label_smoothing);

/* Squared error: sum over rows of sample_weight[row] * mean over D of (x - target)^2. x T [..., D], target
 * f32 [..., D], sample_weight f32 of `rows` elements -> f32 [1], in a fixed order of summation. */
CLEAT_API cleat_tensor *cleat_mse_loss(cleat_graph *graph, cleat_tensor *x, cleat_tensor *target,
                                       cleat_tensor *sample_weight);

/* The sum of scalars: n tensors f32 [1] -> f32 [1]. n <= 8. */
CLEAT_API cleat_tensor *cleat_sum(cleat_graph *graph, cleat_tensor *const *scalars, int n);

/* state[index] += scalar, a running sum that the host reads later. scalar f32 [1], state f32 [n]. No
 * gradient. */
CLEAT_API void cleat_accumulate_metric(cleat_graph *graph, cleat_tensor *scalar, cleat_tensor *state, int index);

/* --- images --------------------------------------------------------------------------------------------------- */

/* Convolution (cross-correlation, as every framework has it) with zeros around the image: y[b, p, q, n] =
 * bias[n] + sum over r, s, c of x[b, p stride + r - padding, q stride + s - padding, c] weight[n, r, s,
 * c]; P = (H + 2 padding - R) / stride + 1, Q likewise. x T [B, H, W, C], weight T [N, R, S, C] (PyTorch's
 * [N, C, R, S] with channels last), bias f32 [N] or NULL -> T [B, P, Q, N]. A matrix product whose left
 * operand is gathered on the way: no tensor of patches exists. R, S, stride <= 16, padding < R and < S. */
CLEAT_API cleat_tensor *cleat_conv2d(cleat_graph *graph, cleat_tensor *x, cleat_tensor *weight, cleat_tensor *bias,
                                     int64_t stride, int64_t padding);

/* Depth-wise convolution, stride 1, with zeros around, output of x's size: y[b, h, w, c] = bias[c] + sum
 * over r, s of x[b, h + r - R/2, w + s - S/2, c] weight[r, s, c]. R and S odd, at most 15. x T [B, H, W,
 * C], weight T [R, S, C], bias f32 [C] or NULL -> T [B, H, W, C] */
CLEAT_API cleat_tensor *cleat_depthwise_conv2d(cleat_graph *graph, cleat_tensor *x, cleat_tensor *weight,
                                               cleat_tensor *bias);

/* The largest of each window of size x size, every `stride`; what lies outside the image does not count.
 * The gradient goes to the first largest in reading order; a NaN is the largest. P, Q as in cleat_conv2d.
 * 2 padding <= size <= 16. x T [B, H, W, C] -> T [B, P, Q, C] */
CLEAT_API cleat_tensor *cleat_max_pool(cleat_graph *graph, cleat_tensor *x, int64_t size, int64_t stride,
                                       int64_t padding);

/* Bilinear interpolation between the centres of pixels (PyTorch's align_corners=False): output row p sees
 * the input at (p + 0.5) H / P - 0.5, not below 0, between that row and the next, the last one repeated;
 * columns likewise. Makes larger or smaller, without smoothing; extents up to 16384. x T [B, H, W, C] -> T
 * [B, P, Q, C] */
CLEAT_API cleat_tensor *cleat_resize(cleat_graph *graph, cleat_tensor *x, int64_t height, int64_t width);

/* Tensors side by side in the last extent. n <= 8 tensors T [..., C_i], all other extents equal -> T [...,
 * sum of C_i] */
CLEAT_API cleat_tensor *cleat_concat(cleat_graph *graph, cleat_tensor *const *parts, int n);

/* Splits the last dimension into n <= 5 equal chunks. x T [..., n C] -> parts[n] T [..., C]; false if x is
 * NULL or the graph has an error, and `parts` is then unchanged. */
CLEAT_API bool cleat_chunk(cleat_graph *graph, cleat_tensor *x, int n, cleat_tensor **parts);

/* Patches to an image: y[b, h patch + r, w patch + s, c] = x[b, h, w, (r patch + s) C + c].
 * patch <= 4096. x T [B, H, W, patch patch C] -> T [B, H patch, W patch, C] */
CLEAT_API cleat_tensor *cleat_depth_to_space(cleat_graph *graph, cleat_tensor *x, int64_t patch);

/* What batch normalisation of x T [B, ..., C] computes with besides x. Members left out are zero. */
typedef struct cleat_batch_norm_spec {
    cleat_tensor *gamma, *beta; /* f32 [C]: factor and offset of every channel */
    cleat_tensor *samples;      /* i32 [1]: number of the B samples that count; NULL: all. Not read by inference */
    cleat_tensor *residual;     /* T as x: added before relu; NULL: none. x itself only without `samples` */
    bool relu;                  /* max(., 0) at the end; false: nothing */
    float eps;                  /* added to every variance, in units of x^2, >= 0; 0: a constant channel gives NaN */
} cleat_batch_norm_spec;

/* Batch normalisation (Ioffe & Szegedy 2015) with the statistics of this batch: mean and biased variance of
 * every channel over all rows of the first samples[0] samples (empty slots behind them do not count and pass no
 * gradient); y = (x - mean) / sqrt(var + eps) gamma + beta, then + residual, then max(., 0) if `relu`.
 * *statistics (may be NULL) receives f32 [2, C]: mean, and the unbiased variance (biased if there is one row
 * only), for cleat_batch_norm_update_running_stats; NULL on failure. -> T as x; NULL if x, gamma or beta is
 * NULL. Backward keeps x and, with relu, y. */
CLEAT_API cleat_tensor *cleat_batch_norm(cleat_graph *graph, cleat_tensor *x, const cleat_batch_norm_spec *spec,
                                         cleat_tensor **statistics);
/* running = (1 - momentum) running + momentum statistics, where that is finite. statistics f32 [2, C]:
 * mean and variance; running: cleat_running_statistics, or two states f32 [C]. No gradient. */
CLEAT_API void cleat_batch_norm_update_running_stats(cleat_graph *graph, cleat_tensor *statistics,
                                                     cleat_running_stats running, float momentum);
/* Batch normalisation with known statistics, for evaluation: as cleat_batch_norm over all samples, with the
 * mean and variance of `running`. No gradient. */
CLEAT_API cleat_tensor *cleat_batch_norm_inference(cleat_graph *graph, cleat_tensor *x,
                                                   const cleat_batch_norm_spec *spec, cleat_running_stats running);

/* Settings of the loss of a two-class mask. */
typedef struct cleat_mask_loss_spec {
    float positive_weight; /* weight of the cross entropy of pixels with target 1; > 0 */
    /* Focal loss (Lin et al. 2017): the cross entropy of each pixel times (1 - p of the target)^gamma; 0:
     * off. */
    float focal_gamma;
    float dice_weight; /* factor on the Dice loss (Milletari et al. 2016); 0: off */
} cleat_mask_loss_spec;

/* sum over b of sample_weight[b] (mean over the sample's known pixels of the weighted binary cross entropy
 * of sigmoid(logits) + dice_weight (1 - (2 sum p t + 1) / (sum p + sum t + 1))). Pixels with a mask
 * outside {0, 1} are unknown: they count for nothing and get no gradient; a sample without known pixels
 * gives 0. logits T [B, ...], mask i32 with as many elements, sample_weight f32 [B] -> f32 [1], in a fixed
 * order of summation. */
CLEAT_API cleat_tensor *cleat_mask_loss(cleat_graph *graph, cleat_tensor *logits, cleat_tensor *mask,
                                        cleat_tensor *sample_weight, const cleat_mask_loss_spec *spec);

/* --- C1' traces (RNA) ----------------------------------------------------------------------------------------- */

/* Coordinates from each residue's step and turn relative to the one before, integrated along the chain as
 * rigid motions. All zero gives an ideal A-form helix (rise 2.81 A, 32.7 degrees, radius 8.9 A). Formulas:
 * cl/rigid_chain.cl. steps T [B, L, 6] (step in Angstrom, turn as a quaternion's vector part), lengths i32
 * [B] -> f32 [B, L, 3]; rows at lengths[b] and later are 0. *frames (may be NULL)
 * receives the residues' frames f32 [B, L, 9], 3 x 3 row by row. */
CLEAT_API cleat_tensor *cleat_rigid_chain(cleat_graph *graph, cleat_tensor *steps, cleat_tensor *lengths,
                                          cleat_tensor **rigid_frames);

/* Terms of a structure loss; formulas in cl/structure_loss.cl. All except COORDINATE are invariant to
 * rotation and translation. */
typedef enum cleat_structure_loss_kind {
    CLEAT_LOSS_DISTANCE,   /* Huber error of all pair distances */
    CLEAT_LOSS_LDDT,       /* smooth local distance difference within `lower` Angstrom */
    CLEAT_LOSS_CLASH,      /* residues 2 and more apart along the chain, nearer than `lower` */
    CLEAT_LOSS_COORDINATE, /* squared error of coordinates */
    CLEAT_LOSS_BOND,       /* neighbours' distance outside [lower, upper]; eps under the root */
    CLEAT_LOSS_ANGLE,      /* cosine of the turn below `lower` */
    /* signed volume of four residues; distances alone cannot distinguish mirror images */
    CLEAT_LOSS_CHIRALITY,
    CLEAT_LOSS_BASE_PAIR, /* Huber error of paired residues' distance from `lower` */
} cleat_structure_loss_kind;

typedef struct cleat_structure_loss_spec {
    cleat_structure_loss_kind kind;
    int term; /* row of sample_weight */
    float lower, upper, eps;
} cleat_structure_loss_spec;

/* The reference: coords f32 [B, L, 3], mask f32 [B, L] (1 known), lengths i32 [B], partner i32 [B, L] (-1
 * none). Only lengths is needed by every kind. */
typedef struct cleat_structure {
    cleat_tensor *coords, *mask, *lengths, *partner;
} cleat_structure;

/* sum over b of sample_weight[term, b] * mean over the chain's items. x f32 [B, L, 3], sample_weight f32
 * [terms, B] -> f32 [1]. No L x L tensor exists. */
CLEAT_API cleat_tensor *cleat_structure_loss(cleat_graph *graph, const cleat_structure_loss_spec *spec, cleat_tensor *x,
                                             const cleat_structure *target, cleat_tensor *sample_weight);

/* Frame-aligned point error of a trace with frames (cl/frame_loss.cl): sum over b of sample_weight[term,
 * b] * mean over pairs of a residue with a reference frame and a known atom. x f32 [B, L, 3], frames f32
 * [B, L, 9] -> f32 [1]. */
CLEAT_API cleat_tensor *cleat_frame_loss(cleat_graph *graph, cleat_tensor *x, cleat_tensor *rigid_frames,
                                         const cleat_structure *target, cleat_tensor *sample_weight, int term);

#ifdef __cplusplus
}
#endif
#endif
