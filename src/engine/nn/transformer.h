/* Layers made of ops. Parameters are named as in PyTorch ("blocks.0.att.qkv.weight"), so that files can be
 * exchanged. */
#ifndef CLEAT_SRC_TRANSFORMER_H
#define CLEAT_SRC_TRANSFORMER_H

#include "nn/rows.h"

typedef struct cleat_transformer {
    int64_t d_model, heads, layers, d_ff;
    float dropout;
    /* Number of samples of the batch, where each sample consists of several consecutive sequences: dropout
     * counts samples. 0: each sequence is a sample. */
    int64_t samples;
    /* Standard deviation of the initial weights, with biases of zero; 0: as in torch.nn.Linear. */
    float init_std;
    float norm_eps; /* of cleat_nn_encoder's layer normalisations; 0: 1e-5 */
} cleat_transformer;

/* x weight^T + bias (+ residual) with the parameters PREFIX.weight [fan_out, fan_in] and PREFIX.bias
 * [fan_out], both initialised uniformly in +-1/sqrt(fan_in), as in torch.nn.Linear.
 * x [..., fan_in] -> [..., fan_out] */
cleat_tensor *cleat_nn_linear(cleat_graph *graph, const char *prefix, cleat_tensor *x, int64_t fan_out,
                              cleat_tensor *residual);
/* As cleat_nn_linear, but weight and bias are initialised to zero, and so is the output. */
cleat_tensor *cleat_nn_linear_zero(cleat_graph *graph, const char *prefix, cleat_tensor *x, int64_t fan_out);

/* As cleat_nn_linear, with weights from a normal distribution of this standard deviation and biases of zero; std 0:
 * cleat_nn_linear. */
cleat_tensor *cleat_nn_linear_normal(cleat_graph *graph, const char *prefix, cleat_tensor *x, int64_t fan_out,
                                     float std, cleat_tensor *residual);

/* As cleat_nn_linear_normal, without a bias; std > 0. */
cleat_tensor *cleat_nn_linear_plain(cleat_graph *graph, const char *prefix, cleat_tensor *x, int64_t fan_out, float std,
                                    cleat_tensor *residual);

/* Layer normalisation with PREFIX.weight (initially one) and PREFIX.bias (initially zero), eps 1e-5.
 * x [..., D] -> [..., D] */
cleat_tensor *cleat_nn_layer_norm(cleat_graph *graph, const char *prefix, cleat_tensor *x);
cleat_tensor *cleat_nn_layer_norm_eps(cleat_graph *graph, const char *prefix, cleat_tensor *x, float eps);
/* The same without PREFIX.bias. */
cleat_tensor *cleat_nn_layer_norm_plain(cleat_graph *graph, const char *prefix, cleat_tensor *x, float eps);

/* The end of a block's branch: x + dropout(linear layer PREFIX of `inner`). cleat_graph_fuse merges the
 * addition into the layer's GEMM, or into the dropout. inner [B, ..., K], x [B, ..., D] -> [B, ..., D] */
cleat_tensor *cleat_nn_residual(cleat_graph *graph, const char *prefix, cleat_tensor *x, cleat_tensor *inner,
                                cleat_tensor *rng, const cleat_transformer *shape);

/* Embedding with the table PREFIX.weight [vocabulary, d_model], initialised to a standard normal distribution
 * as in torch.nn.Embedding. tokens [B, L] -> [B, L, D] */
cleat_tensor *cleat_nn_embedding(cleat_graph *graph, const char *prefix, cleat_tensor *tokens, int64_t vocabulary,
                                 const cleat_transformer *shape);

/* Pre-norm blocks blocks.0 ... (Xiong et al. 2020): x += out(attention(n1(x))); x += f2(gelu(f1(n2(x))));
 * then the final norm. Dropout is applied before each residual addition; the caller applies it after the sum
 * of embeddings. Each block is a segment that may be recomputed (graph/recompute.h). rng may be NULL if
 * dropout is 0. After the last block's attention, rows are independent, so only the row to read is computed.
 * x [B, L, D], lengths i32 [B] or NULL -> [B, L, D], or the row to read (nn/rows.h) */
cleat_tensor *cleat_nn_encoder(cleat_graph *graph, cleat_tensor *x, cleat_tensor *lengths, cleat_tensor *rng,
                               const cleat_transformer *shape, const cleat_read_row *read);
/* The same without the final norm. */
cleat_tensor *cleat_nn_encoder_blocks(cleat_graph *graph, cleat_tensor *x, cleat_tensor *lengths, cleat_tensor *rng,
                                      const cleat_transformer *shape, const cleat_read_row *read);

/* Depth of a parameter of a network around cleat_nn_encoder with `layers` blocks (layer_of of
 * cleat_model_class): that of blocks.N is N + 1, the norm after the blocks belongs to the last one, `head` is
 * the head, the others are embeddings. */
int64_t cleat_nn_encoder_layer_of(const char *param, int64_t layers);

#endif
