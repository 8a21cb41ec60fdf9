/* Operations: each function appends its nodes to a graph and returns the output tensor, which the graph owns.
 *
 * Letters: B batch, L length, D width, H heads, K fan_in, N fan_out, V vocabulary. `[..., D]` has any number
 * of leading dimensions. Images: H height, W width, C channels, stored channels last. T is the storage type
 * of activations (f32, f16, bf16); parameters, statistics and losses are f32. Every operation has a gradient
 * unless its comment says otherwise. An operation returns NULL if a required input is NULL or if it fails:
 * see cleat_graph_status. */
#ifndef CLEAT_OPS_H
#define CLEAT_OPS_H

#include "cleat/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Converts x to another storage type. [...] -> [...] */
CLEAT_API cleat_tensor *cleat_cast(cleat_graph *graph, cleat_tensor *x, cleat_dtype dtype);

/* Automatic mixed precision (Micikevicius et al., "Mixed Precision Training", ICLR 2018). After this call,
 * operations that support every storage type take their inputs and return their results in `storage` (f32,
 * f16, bf16); all others (losses, statistics) take f32. Inputs of another type are cast first, each of them
 * once. Sums are always f32. Parameters are read from a working copy in `storage`, which cleat_adamw writes;
 * their gradients remain f32. Call it before the first operation, and again to change the type (for example a
 * head in f32). A graph without this call has no automatic casts.
 *
 * CLEAT_TF32 is f32, but linear layers and convolutions may round the operands of their products to TF32, in
 * forward and backward, on matrix units that have it (NVIDIA's from 8.0 on): what PyTorch calls
 * allow_tf32. */
CLEAT_API void cleat_autocast(cleat_graph *graph, cleat_dtype storage);
/* Current storage type of autocast; f32 with CLEAT_TF32, and without autocast. */
CLEAT_API cleat_dtype cleat_autocast_storage(const cleat_graph *graph);

/* Reshape: the same elements in the same order with another shape [rank]. The result shares the memory of x,
 * so it costs nothing. [...] -> [shape] */
CLEAT_API cleat_tensor *cleat_reshape(cleat_graph *graph, cleat_tensor *x, int rank, const int64_t *shape);

/* y = a + b; a, b and y have the same shape and dtype. */
CLEAT_API cleat_tensor *cleat_add(cleat_graph *graph, cleat_tensor *a, cleat_tensor *b);
/* y = a - b and y = a b, element by element; a, b and y have the same shape and dtype. a may be b. */
CLEAT_API cleat_tensor *cleat_subtract(cleat_graph *graph, cleat_tensor *a, cleat_tensor *b);
CLEAT_API cleat_tensor *cleat_multiply(cleat_graph *graph, cleat_tensor *a, cleat_tensor *b);

/* The indices start to stop - 1 of one axis; 0 <= axis < rank, 0 <= start < stop <= shape[axis]. [..., D, ...] ->
 * [..., stop - start, ...]. The gradient is zero outside the range. */
CLEAT_API cleat_tensor *cleat_slice(cleat_graph *graph, cleat_tensor *x, int axis, int64_t start, int64_t stop);

/* Permutes the dimensions: dimension i of the result is dimension axes[i] of x, as torch.permute does; {1, 0}
 * transposes a matrix. axes [rank] holds each of 0 to rank - 1 once. x has at most 2^30 elements. T [...] -> T [...] */
CLEAT_API cleat_tensor *cleat_permute(cleat_graph *graph, cleat_tensor *x, const int *axes);

/* Embedding: row tokens[b, l] of the table. A token outside [0, V) gives a row of zeros and no gradient.
 * tokens i32 [B, L], table f32 [V, D] -> `storage` [B, L, D]. The gradient of the table is summed in a fixed
 * order. */
CLEAT_API cleat_tensor *cleat_embedding(cleat_graph *graph, cleat_tensor *tokens, cleat_tensor *table,
                                        cleat_dtype storage);
/* The same, but row `padding` of the table gets no gradient, as with padding_idx of torch.nn.Embedding; -1:
 * every row has one. */
CLEAT_API cleat_tensor *cleat_embedding_padded(cleat_graph *graph, cleat_tensor *tokens, cleat_tensor *table,
                                               int64_t padding, cleat_dtype storage);

/* x + sinusoidal positional encoding (Vaswani et al. 2017, section 3.5): sine in even, cosine in odd columns.
 * With lengths (i32 [B], else NULL), the first half of the columns is the table of width D/2 at l. The second
 * half is that table at lengths[b] - 1 - l (0 past the end), which encodes the distance from the end of a
 * chain. D is even; with lengths, a multiple of 4. [B, L, D] -> [B, L, D] */
CLEAT_API cleat_tensor *cleat_positional_encoding(cleat_graph *graph, cleat_tensor *x, cleat_tensor *lengths);

/* Frequencies of rotary positions. Pair i of a head turns by base^(-2 i / width) radians a position; with a factor
 * slower: with old_length > 0, frequencies of at least high_turns turns in old_length positions are kept, those of at
 * most low_turns are divided by `factor`, those between interpolate in their turns ("rope_type": "llama3"); without,
 * all are divided ("linear"). */
typedef struct cleat_rotary_angles {
    int64_t width; /* columns of a head that turn, even */
    double base;   /* "rope_theta", > 1 */
    double factor; /* >= 1; 1: none */
    int64_t old_length;
    float low_turns, high_turns;
} cleat_rotary_angles;
/* Radians a position of a pair. */
CLEAT_API double cleat_rotary_frequency(const cleat_rotary_angles *angles, int64_t pair);
/* The table for cleat_rotary, computed at each run -> f32 [length, width]: sine and cosine of each pair. */
CLEAT_API cleat_tensor *cleat_rotary_table(cleat_graph *graph, int64_t length, const cleat_rotary_angles *angles);
/* Rotary positions (Su et al. 2021): of `heads` heads side by side, the first `turning` turn by the angles of their
 * positions, in the first W columns of each head: pairs of columns (i, i + W / 2), as in Hugging Face's Llama, or
 * neighbours if `interleaved`; the others are copied (values behind queries and keys). x T [B, L, D], D / heads even;
 * table f32 [P, W]; positions i32 [B, L], those outside of the table as the nearest, or NULL: l -> T [B, L, D]. */
CLEAT_API cleat_tensor *cleat_rotary(cleat_graph *graph, cleat_tensor *x, cleat_tensor *table, cleat_tensor *positions,
                                     int heads, int turning, bool interleaved);

/* x + learned position embeddings: position l of every sample gets row first + l of the table, or nothing if
 * the table has no such row; 0 <= first < P. x T [..., L, D], table f32 [P, D], a parameter if there are rows
 * that no position gets -> T [..., L, D]. The gradient of the table is summed in a fixed order. */
CLEAT_API cleat_tensor *cleat_position_embedding(cleat_graph *graph, cleat_tensor *x, cleat_tensor *table,
                                                 int64_t first);

/* Fully connected layer: y = x weight^T + bias + residual. x T [..., K], weight T [N, K] (PyTorch's layout),
 * bias f32 [N] or NULL, residual T [..., N] or NULL -> T [..., N]. */
CLEAT_API cleat_tensor *cleat_linear(cleat_graph *graph, cleat_tensor *x, cleat_tensor *weight, cleat_tensor *bias,
                                     cleat_tensor *residual);

/* Layer normalisation over the last dimension (Ba et al. 2016) with biased variance: y = (x - mean) /
 * sqrt(var + eps) * gamma + beta. x T [..., D], gamma f32 [D], beta f32 [D] or NULL -> T [..., D]. */
CLEAT_API cleat_tensor *cleat_layer_norm(cleat_graph *graph, cleat_tensor *x, cleat_tensor *gamma, cleat_tensor *beta,
                                         float eps);

/* RMS normalisation over the last dimension (Zhang & Sennrich 2019): y = x / sqrt(mean(x^2) + eps) * gamma.
 * x T [..., D], gamma f32 [D] -> T [..., D]. */
CLEAT_API cleat_tensor *cleat_rms_norm(cleat_graph *graph, cleat_tensor *x, cleat_tensor *gamma, float eps);

/* Layer scale (Touvron et al. 2021): y = residual + scale x, with a factor for each channel of a residual
 * branch. x T [..., D], scale f32 [D], residual T [..., D] or NULL -> T [..., D]. */
CLEAT_API cleat_tensor *cleat_layer_scale(cleat_graph *graph, cleat_tensor *x, cleat_tensor *scale,
                                          cleat_tensor *residual);

/* A learned token, such as the class token of a vision transformer, in front of each sample's sequence. x T
 * [B, L, D], token f32 [D] -> T [B, L + 1, D]. */
CLEAT_API cleat_tensor *cleat_prepend_token(cleat_graph *graph, cleat_tensor *x, cleat_tensor *token);

/* GELU with the error function (Hendrycks & Gimpel 2016): x * 0.5 * (1 + erf(x / sqrt(2))). [...] -> [...] */
CLEAT_API cleat_tensor *cleat_gelu(cleat_graph *graph, cleat_tensor *x);

/* ReLU: max(x, 0); NaN stays NaN. The gradient needs only y. [...] -> [...] */
CLEAT_API cleat_tensor *cleat_relu(cleat_graph *graph, cleat_tensor *x);

/* Sigmoid: 1 / (1 + exp(-x)). The gradient needs only y. [...] -> [...] */
CLEAT_API cleat_tensor *cleat_sigmoid(cleat_graph *graph, cleat_tensor *x);

/* Hyperbolic tangent. The gradient needs only y. [...] -> [...] */
CLEAT_API cleat_tensor *cleat_tanh(cleat_graph *graph, cleat_tensor *x);

/* SiLU, also called swish (Elfwing et al. 2018): x / (1 + exp(-x)). [...] -> [...] */
CLEAT_API cleat_tensor *cleat_silu(cleat_graph *graph, cleat_tensor *x);

/* GELU by tanh, x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2: GPT-2's "gelu_new", Gemma's "gelu_pytorch_tanh".
 * [...] -> [...] */
CLEAT_API cleat_tensor *cleat_gelu_tanh(cleat_graph *graph, cleat_tensor *x);

typedef enum cleat_gate { CLEAT_GATE_SILU, CLEAT_GATE_GELU, CLEAT_GATE_GELU_TANH } cleat_gate;
/* Gated product (Shazeer, "GLU Variants Improve Transformer", 2020): f(x[..., :D]) x[..., D:], with SiLU (SwiGLU) or a
 * GELU (GeGLU). T [..., 2 D] -> T [..., D] */
CLEAT_API cleat_tensor *cleat_gated(cleat_graph *graph, cleat_tensor *x, cleat_gate gate);

/* Softmax over the last dimension, exp(x) / sum of exp(x); D <= 65536. [..., D] -> [..., D] */
CLEAT_API cleat_tensor *cleat_softmax(cleat_graph *graph, cleat_tensor *x);

/* Multi-head self-attention, softmax(Q K^T / sqrt(D/H)) V, computed block by block: no L x L tensor is stored
 * (Dao et al. 2022). qkv T [B, L, 3D]: queries, keys and values side by side, each [H, D/H]. lengths i32 [B]
 * or NULL: keys at lengths[b] and later are masked; output rows at lengths[b] and later are 0 and pass no
 * gradient. D/H <= 128 -> T [B, L, D]. Scores Q K^T / sqrt(D/H) are f32, and the backward pass recomputes
 * them, so a weight has a relative error of about |score| / 2^23. Above 1e9 (operands of 65000), rounding
 * alone exceeds the range of exp: outputs stay finite, but gradients are meaningless and may be infinite or
 * NaN. */
CLEAT_API cleat_tensor *cleat_attention(cleat_graph *graph, cleat_tensor *qkv, cleat_tensor *lengths, int heads);

/* The same for a window: query i sees the keys j with |i - j| <= window / 2 ("local_attention" of ModernBERT, Warner et
 * al. 2024), and keys that no query of a block sees cost nothing. window >= 2; one that hides no key gives the kernels
 * of cleat_attention. Not on matrix units. */
CLEAT_API cleat_tensor *cleat_local_attention(cleat_graph *graph, cleat_tensor *qkv, cleat_tensor *lengths, int heads,
                                              int window);

/* Causal attention with grouped queries (Ainslie et al. 2023), packed sequences and a sliding window, computed block
 * by block like cleat_attention; keys that no query of a block sees cost nothing. q T [B, L, H D/H]: H = heads heads;
 * kv T [B, L, 2 K D/H]: K = kv_heads heads of keys, then K of values; or NULL, and q is all of them side by side
 * [B, L, (H + 2 K) D/H]. Query head h has key head h / (H / K). Query l sees the keys max(starts[b, l], l - window + 1)
 * to l. starts i32 [B, L], or NULL for 0: if one is after l (padding), output row l is 0 and passes no gradient; its
 * rows of q and kv may be read and must be finite. window 0: all earlier keys. scale: the factor of the scores, 0 for
 * 1 / sqrt(D/H). D/H <= 256, on matrix units and in tiles of GPUs 128 -> T [B, L, D]. The range of the scores is as in
 * cleat_attention. */
CLEAT_API cleat_tensor *cleat_causal_attention(cleat_graph *graph, cleat_tensor *q, cleat_tensor *kv,
                                               cleat_tensor *starts, int heads, int kv_heads, int window, float scale);

/* Causal attention of new tokens to a cache, for generation: row l of kv T [B, L, 2 K D/H] becomes row
 * p = positions[b, l] of `cache`, a state (cleat_state) T [B, C, 2 K D/H] that keeps it for later runs, also of other
 * graphs; then query l of q T [B, L, H D/H] sees the keys max(0, p - window + 1) to p of the cache. positions i32
 * [B, L] are all different in a sample; only those of padding, below 0, or C and more, may repeat: they change nothing
 * and give a row of 0. Heads, window and scale as in cleat_causal_attention, D/H <= 256 -> T [B, L, D]; no gradient. */
CLEAT_API cleat_tensor *cleat_cached_attention(cleat_graph *graph, cleat_tensor *q, cleat_tensor *kv,
                                               cleat_tensor *positions, cleat_tensor *cache, int heads, int kv_heads,
                                               int window);

/* Multi-head cross-attention, softmax(Q K^T / sqrt(D/H)) V, computed block by block like cleat_attention. q T
 * [B, L, D], kv T [B, S, 2D]: keys and values side by side, each [H, D/H]. D/H <= 128 -> T [B, L, D]. The
 * range of the scores is as in cleat_attention. */
CLEAT_API cleat_tensor *cleat_cross_attention(cleat_graph *graph, cleat_tensor *q, cleat_tensor *kv, int heads);

/* Settings of cleat_disentangled_attention. */
typedef struct cleat_disentangled_spec {
    int heads;
    /* 0: each distance between two positions has a separate row. Otherwise distances up to buckets / 2 have one, and
     * longer ones share rows, on a logarithmic scale that ends at max_relative_positions. */
    int buckets;
    int max_relative_positions; /* longer distances count as this one */
} cleat_disentangled_spec;

/* Multi-head self-attention with relative positions, as in DeBERTa (He et al. 2021): the score of query i and
 * key j is (q_i . k_j + q_i . pos_keys[r] + k_j . pos_queries[r]) / sqrt(D/H n), where r is the row of the
 * distance i - j, and n is 3, or 2 if pos_keys or pos_queries is NULL. Computed block by block: no L x L
 * tensor is stored. qkv and lengths as in cleat_attention. pos_keys, pos_queries T [2S, D]: row S + r belongs
 * to the distance or bucket r, limited to -S and S - 1; S is spec->buckets, or max_relative_positions without
 * buckets. spec is borrowed, during the call. -> T [B, L, D] */
CLEAT_API cleat_tensor *cleat_disentangled_attention(cleat_graph *graph, cleat_tensor *qkv, cleat_tensor *pos_keys,
                                                     cleat_tensor *pos_queries, cleat_tensor *lengths,
                                                     const cleat_disentangled_spec *spec);

/* One LSTM layer over whole sequences (Hochreiter & Schmidhuber 1997, with forget gates), equal to PyTorch's
 * nn.LSTM with batch_first. The gates are i, f, o = sigmoid and g = tanh of x[t] weight_ih^T + bias_ih +
 * h[t-1] weight_hh^T + bias_hh, in the order i, f, g, o; c[t] = f c[t-1] + i g; h[t] = o tanh(c[t]); h and c
 * are zero before the first step. x T [B, L, I], weight_ih T [4H, I], weight_hh T [4H, H], biases f32 [4H], H
 * <= 16384 -> h T [B, L, H]. Backward needs 5H stored elements per time step: the gates, which overwrite x
 * weight_ih^T, and c. */
CLEAT_API cleat_tensor *cleat_lstm(cleat_graph *graph, cleat_tensor *x, cleat_tensor *weight_ih,
                                   cleat_tensor *weight_hh, cleat_tensor *bias_ih, cleat_tensor *bias_hh);

/* Mean over the rows of each sample: the first lengths[b] rows, or all rows if lengths is NULL. A sample
 * without rows gives zeros and gets no gradient. x T [B, L, D], lengths i32 [B] -> T [B, D] */
CLEAT_API cleat_tensor *cleat_mean_pool(cleat_graph *graph, cleat_tensor *x, cleat_tensor *lengths);

typedef enum cleat_end_row { CLEAT_ROW_FIRST, CLEAT_ROW_LAST } cleat_end_row;

/* First or last row of each sample; the last row is lengths[b] - 1, or L - 1 if lengths is NULL. A sample
 * without rows gives zeros and gets no gradient. x T [B, L, D], lengths i32 [B] -> T [B, D] */
CLEAT_API cleat_tensor *cleat_select_row(cleat_graph *graph, cleat_tensor *x, cleat_tensor *lengths,
                                         cleat_end_row which);

/* The first `count` marked rows of each sample, in their order; a row is marked if its mark is not below 0. *chosen
 * (may be NULL) receives the marks of these rows, i32 [B, count]. If a sample has fewer marks, the remaining
 * rows are zeros without gradient, and *chosen is -1. x T [B, L, D], marks i32 [B, L], 1 <= count <= L -> T
 * [B, count, D] */
CLEAT_API cleat_tensor *cleat_select_marked(cleat_graph *graph, cleat_tensor *x, cleat_tensor *marks, int64_t count,
                                            cleat_tensor **chosen);

/* Dropout: sets each element to zero with probability `rate` and scales the others by 1 / (1 - rate). rng u32
 * [4] = {seed low, seed high, optimizer step, samples of the global batch before this micro-batch}. x [B,
 * ...] -> [B, ...]. rate 0 returns x.
 *
 * The mask is Philox4x32-10 with key rng[0..1] at counter ((element + rng[3] S) / 4, d, rng[2]). d is the
 * number of dropouts in the graph before this one; S is the number of elements of a sample (x[0]), rounded up
 * to a multiple of 4. Backward recomputes the mask, so it is not stored. If the number of elements of a
 * sample is a multiple of 4, the mask of the sample does not depend on how its global batch is divided into
 * micro-batches. Otherwise it does, but masks still differ between samples. */
CLEAT_API cleat_tensor *cleat_dropout(cleat_graph *graph, cleat_tensor *x, cleat_tensor *rng, float rate);
/* As cleat_dropout, for a tensor that does not belong to single samples (position embeddings): all
 * micro-batches of a global batch get the same mask. x [...] -> [...] */
CLEAT_API cleat_tensor *cleat_dropout_shared(cleat_graph *graph, cleat_tensor *x, cleat_tensor *rng, float rate);

/* Cross-entropy loss for classification: sum over rows of sample_weight[row] * -(sum over c of q[c] log
 * softmax(logits)[c]), with q[c] = (1 - label_smoothing) [c = label] + label_smoothing / C. A row is a
 * sample, or a token (rows = B L). A row whose label is outside [0, C) adds nothing and gets no gradient.
 * logits T [..., C], labels i32 and sample_weight f32 of `rows` elements ([B, L] or [B L]), label_smoothing
 * in [0, 1) -> f32 [1], summed in a fixed order. The host chooses the sample weights so that the losses of
 * micro-batches add up. */
CLEAT_API cleat_tensor *cleat_cross_entropy(cleat_graph *graph, cleat_tensor *logits, cleat_tensor *labels,
                                            cleat_tensor *sample_weight, float label_smoothing);

/* The cross entropy of logits x weight^T, which are never stored whole: parts of rows_at_once rows (0: of about 32 MiB)
 * are computed one after the other, each followed by its gradient. x T [..., D], weight f32 [C, D]; labels,
 * sample_weight and label_smoothing as in cleat_cross_entropy -> f32 [1]. *each (may be NULL): f32 [rows], the
 * losses of the rows without their weights. */
CLEAT_API cleat_tensor *cleat_linear_cross_entropy(cleat_graph *graph, cleat_tensor *x, cleat_tensor *weight,
                                                   cleat_tensor *labels, cleat_tensor *sample_weight,
                                                   float label_smoothing, int64_t rows_at_once, cleat_tensor **each);

/* Mean squared error: sum over rows of sample_weight[row] * mean over D of (x - target)^2. x T [..., D],
 * target f32 [..., D], sample_weight f32 of `rows` elements -> f32 [1], summed in a fixed order. */
CLEAT_API cleat_tensor *cleat_mse_loss(cleat_graph *graph, cleat_tensor *x, cleat_tensor *target,
                                       cleat_tensor *sample_weight);

/* Binary cross entropy of logits: sum over rows of sample_weight[row] * mean over D of (1 - t) log(1 + exp(x)) +
 * positive_weight t log(1 + exp(-x)); PyTorch's BCEWithLogitsLoss with pos_weight. Elements are independent: a
 * sample may have several labels. An element whose target t is outside [0, 1] (or NaN) is unknown: it counts as 0 in
 * the mean and gets no gradient. logits T [..., D], target f32 [..., D], sample_weight f32 of `rows` elements,
 * positive_weight > 0 (1: none) -> f32 [1], summed in a fixed order. */
CLEAT_API cleat_tensor *cleat_binary_cross_entropy(cleat_graph *graph, cleat_tensor *logits, cleat_tensor *target,
                                                   cleat_tensor *sample_weight, float positive_weight);

/* Sum of scalars: n <= 8 tensors f32 [1] -> f32 [1]. */
CLEAT_API cleat_tensor *cleat_sum(cleat_graph *graph, cleat_tensor *const *scalars, int n);

/* state[index] += scalar: a running sum for the host to read later. scalar f32 [1], state f32 [n]. No
 * gradient. */
CLEAT_API void cleat_accumulate_metric(cleat_graph *graph, cleat_tensor *scalar, cleat_tensor *state, int index);
/* The same for several scalars [count <= 10] and the elements `indices` [count] of one state, in one launch. */
CLEAT_API void cleat_accumulate_metrics(cleat_graph *graph, cleat_tensor *const *scalars, const int *indices, int count,
                                        cleat_tensor *state);
/* The same, and the sum of the scalars, in their order -> f32 [1], in the same launch: state[total] += sum.
 * The sum is differentiable: each scalar gets its gradient. */
CLEAT_API cleat_tensor *cleat_sum_metrics(cleat_graph *graph, cleat_tensor *const *scalars, const int *indices,
                                          int count, int total, cleat_tensor *state);

/* --- images --------------------------------------------------------------------------------------------------- */

/* 2-D convolution (cross-correlation, as in every framework) with zero padding: y[b, p, q, n] = bias[n] + sum
 * over r, s, c of x[b, p stride + r - padding, q stride + s - padding, c] weight[n, r, s, c]; P = (H + 2
 * padding - R) / stride + 1, Q likewise. x T [B, H, W, C], weight T [N, R, S, C] (PyTorch's [N, C, R, S] with
 * channels last), bias f32 [N] or NULL -> T [B, P, Q, N]. R, S, stride <= 32, padding < R and < S. It is
 * computed as an implicit GEMM, which gathers its left operand while it runs: no tensor of patches is
 * stored. */
CLEAT_API cleat_tensor *cleat_conv2d(cleat_graph *graph, cleat_tensor *x, cleat_tensor *weight, cleat_tensor *bias,
                                     int64_t stride, int64_t padding);

/* Depthwise 2-D convolution with stride 1 and zero padding; the output has the size of x: y[b, h, w, c] =
 * bias[c] + sum over r, s of x[b, h + r - R/2, w + s - S/2, c] weight[r, s, c]. R and S are odd, at most 15.
 * x T [B, H, W, C], weight T [R, S, C], bias f32 [C] or NULL -> T [B, H, W, C] */
CLEAT_API cleat_tensor *cleat_depthwise_conv2d(cleat_graph *graph, cleat_tensor *x, cleat_tensor *weight,
                                               cleat_tensor *bias);

/* Max pooling over windows of size x size at distance `stride`. Positions outside the image are ignored. The
 * gradient goes to the first maximum in row-major order; NaN counts as the maximum. P, Q as in cleat_conv2d.
 * 2 padding <= size <= 16. x T [B, H, W, C] -> T [B, P, Q, C] */
CLEAT_API cleat_tensor *cleat_max_pool(cleat_graph *graph, cleat_tensor *x, int64_t size, int64_t stride,
                                       int64_t padding);

/* Average pooling: the mean over windows of size x size at distance `stride`. Positions outside the image
 * count as zeros of the mean (PyTorch's default, count_include_pad=True). Sizes as of cleat_max_pool. x T [B,
 * H, W, C] -> T [B, P, Q, C] */
CLEAT_API cleat_tensor *cleat_average_pool(cleat_graph *graph, cleat_tensor *x, int64_t size, int64_t stride,
                                           int64_t padding);

/* Bilinear resize with pixel-centre alignment (PyTorch's align_corners=False). Output row p samples the input
 * at (p + 0.5) H / P - 0.5, at least 0, by interpolating between that row and the next, with the last row
 * repeated; columns likewise. Enlarges or reduces without an anti-aliasing filter; sizes up to 16384. P =
 * height, Q = width. x T [B, H, W, C] -> T [B, P, Q, C] */
CLEAT_API cleat_tensor *cleat_resize(cleat_graph *graph, cleat_tensor *x, int64_t height, int64_t width);

/* Concatenates n <= 8 tensors along the last dimension. T [..., C_i], with all other dimensions equal -> T
 * [..., sum of C_i] */
CLEAT_API cleat_tensor *cleat_concat(cleat_graph *graph, cleat_tensor *const *parts, int n);

/* Splits the last dimension into n <= 5 equal chunks. x T [..., n C] -> parts[n] T [..., C]. Returns false,
 * with `parts` unchanged, if x is NULL or the graph has an error. */
CLEAT_API bool cleat_chunk(cleat_graph *graph, cleat_tensor *x, int n, cleat_tensor **parts);

/* Placement of the blocks in a stacked matrix. */
typedef struct cleat_block_diagonal_spec {
    int places;          /* S: 1 to 7 */
    unsigned used;       /* bit s: a block lies in place s */
    float factor;        /* multiplies the blocks */
    cleat_dtype storage; /* of the result: T */
} cleat_block_diagonal_spec;
/* Puts the blocks of x on the diagonal of a matrix that is 0 elsewhere: with P bits set in `used`, block q of
 * x goes to rows s side to (s + 1) side of y, where s is the place of the q-th bit, and to columns q rank to
 * (q + 1) rank. x f32 [P side, rank] -> T [S side, P rank] */
CLEAT_API cleat_tensor *cleat_block_diagonal(cleat_graph *graph, cleat_tensor *x,
                                             const cleat_block_diagonal_spec *spec);

/* Rearranges patches into an image: y[b, h patch + r, w patch + s, c] = x[b, h, w, (r patch + s) C + c].
 * patch <= 4096. x T [B, H, W, patch patch C] -> T [B, H patch, W patch, C] */
CLEAT_API cleat_tensor *cleat_depth_to_space(cleat_graph *graph, cleat_tensor *x, int64_t patch);

/* Inputs and settings of batch normalisation of x T [B, ..., C], besides x. Omitted members are zero. */
typedef struct cleat_batch_norm_spec {
    cleat_tensor *gamma, *beta; /* f32 [C]: scale and offset of each channel */
    /* i32 [1]: number of leading samples, of B, that hold data; NULL: all. Ignored by inference. */
    cleat_tensor *samples;
    /* T, shape of x: added before ReLU; NULL: none. It may be x itself only if `samples` is NULL. */
    cleat_tensor *residual;
    bool relu; /* true: ReLU as the last step */
    float eps; /* Added to every variance, in units of x^2; >= 0. With 0, a constant channel gives NaN. */
} cleat_batch_norm_spec;

/* Batch normalisation (Ioffe & Szegedy 2015) with the statistics of this batch: the mean and biased variance
 * of each channel over all rows of the first samples[0] samples. Later slots are empty: they are ignored and
 * pass no gradient. y = (x - mean) / sqrt(var + eps) gamma + beta, then + residual, then max(., 0) if `relu`.
 * Returns T, shape of x; NULL if x, gamma or beta is NULL. *statistics (may be NULL) receives f32 [2, C] for
 * cleat_batch_norm_update_running_stats: mean and unbiased variance (biased if there is only one row); NULL
 * on failure. Backward needs x and, with relu, y. */
CLEAT_API cleat_tensor *cleat_batch_norm(cleat_graph *graph, cleat_tensor *x, const cleat_batch_norm_spec *spec,
                                         cleat_tensor **statistics);
/* Updates running statistics: running = (1 - momentum) running + momentum statistics, for each value whose
 * result is finite. statistics f32 [2, C]: mean and variance. `running`: from cleat_running_statistics, or
 * two states f32 [C]. No gradient. */
CLEAT_API void cleat_batch_norm_update_running_stats(cleat_graph *graph, cleat_tensor *statistics,
                                                     cleat_running_stats running, float momentum);
/* Batch normalisation for evaluation: as cleat_batch_norm over all samples, but with the mean and variance of
 * `running`. No gradient. */
CLEAT_API cleat_tensor *cleat_batch_norm_inference(cleat_graph *graph, cleat_tensor *x,
                                                   const cleat_batch_norm_spec *spec, cleat_running_stats running);

/* Settings of cleat_mask_loss. */
typedef struct cleat_mask_loss_spec {
    float positive_weight; /* weight of the cross entropy of pixels with target 1; > 0 */
    /* Focal loss (Lin et al. 2017): multiplies the cross entropy of each pixel by (1 - p of the
     * target)^gamma; 0: off. */
    float focal_gamma;
    float dice_weight; /* factor of the Dice loss (Milletari et al. 2016); 0: off */
} cleat_mask_loss_spec;

/* Loss of a two-class mask: sum over b of sample_weight[b] * (BCE + dice_weight (1 - (2 sum p t + 1) / (sum p
 * + sum t + 1))). p = sigmoid(logits), t is the mask, and BCE is the mean over the known pixels of the sample
 * of the weighted binary cross entropy. Pixels with a mask outside {0, 1} are unknown: they are ignored and
 * get no gradient. A sample without known pixels gives 0. logits T [B, ...], mask i32 with the same number of
 * elements, sample_weight f32 [B] -> f32 [1], summed in a fixed order. */
CLEAT_API cleat_tensor *cleat_mask_loss(cleat_graph *graph, cleat_tensor *logits, cleat_tensor *mask,
                                        cleat_tensor *sample_weight, const cleat_mask_loss_spec *spec);

/* --- C1' traces (RNA) ----------------------------------------------------------------------------------------- */

/* Coordinates of a chain from the translation and rotation of each residue relative to the one before,
 * composed along the chain as rigid motions. All zero gives an ideal A-form helix (rise 2.81 Angstrom and
 * 32.7 degrees per residue, radius 8.9 Angstrom). Formulas: cl/rigid_chain.cl. steps T [B, L, 6] (translation
 * in Angstrom, rotation as the vector part of a quaternion), lengths i32 [B] -> f32 [B, L, 3]; rows at
 * lengths[b] and later are 0. *rigid_frames (may be NULL) receives the frames of the residues, f32 [B, L, 9],
 * 3 x 3 row-major. */
CLEAT_API cleat_tensor *cleat_rigid_chain(cleat_graph *graph, cleat_tensor *steps, cleat_tensor *lengths,
                                          cleat_tensor **rigid_frames);

/* Terms of a structure loss; formulas: cl/structure_loss.cl. All except COORDINATE are invariant to rotation
 * and translation. */
typedef enum cleat_structure_loss_kind {
    CLEAT_LOSS_DISTANCE,   /* Huber loss of all pairwise distances */
    CLEAT_LOSS_LDDT,       /* smooth LDDT (local distance difference test) of pairs within `lower` Angstrom */
    CLEAT_LOSS_CLASH,      /* residues 2 or more apart along the chain and nearer than `lower` */
    CLEAT_LOSS_COORDINATE, /* squared error of the coordinates */
    CLEAT_LOSS_BOND,       /* distance of neighbours outside [lower, upper]; eps is added under the root */
    CLEAT_LOSS_ANGLE,      /* cosine of the angle between adjacent bonds, below `lower` */
    /* Signed volume of four residues, because distances alone cannot distinguish mirror images. */
    CLEAT_LOSS_CHIRALITY,
    CLEAT_LOSS_BASE_PAIR, /* Huber loss of the distance of paired residues from `lower` */
} cleat_structure_loss_kind;

typedef struct cleat_structure_loss_spec {
    cleat_structure_loss_kind kind;
    int term; /* row of sample_weight */
    float lower, upper, eps;
} cleat_structure_loss_spec;

/* The reference structure: coords f32 [B, L, 3], mask f32 [B, L] (1 known), lengths i32 [B], partner i32 [B,
 * L] (-1 none). Every kind requires lengths; some kinds require no other member. */
typedef struct cleat_structure {
    cleat_tensor *coords, *mask, *lengths, *partner;
} cleat_structure;

/* Structure loss: sum over b of sample_weight[term, b] * mean over the items of the chain (pairs, bonds,
 * ...). x f32 [B, L, 3], sample_weight f32 [terms, B] -> f32 [1]. No L x L tensor is stored. */
CLEAT_API cleat_tensor *cleat_structure_loss(cleat_graph *graph, const cleat_structure_loss_spec *spec, cleat_tensor *x,
                                             const cleat_structure *target, cleat_tensor *sample_weight);
/* Several structure losses: values[i], i < count, is the loss of specs[i]. Up to four neighbouring specs that
 * are not over pairs (COORDINATE to BASE_PAIR) share their launches. On an error of the graph, values are
 * NULL. */
CLEAT_API void cleat_structure_losses(cleat_graph *graph, const cleat_structure_loss_spec *specs, int count,
                                      cleat_tensor *x, const cleat_structure *target, cleat_tensor *sample_weight,
                                      cleat_tensor **values);

/* Frame-aligned point error of a trace with frames (cl/frame_loss.cl): sum over b of sample_weight[term, b] *
 * mean over pairs of a residue with a reference frame and a known atom. x f32 [B, L, 3], rigid_frames f32 [B,
 * L, 9], sample_weight f32 [terms, B] -> f32 [1]. */
CLEAT_API cleat_tensor *cleat_frame_loss(cleat_graph *graph, cleat_tensor *x, cleat_tensor *rigid_frames,
                                         const cleat_structure *target, cleat_tensor *sample_weight, int term);

#ifdef __cplusplus
}
#endif
#endif
