/* Layers made of ops. Parameters are named as PyTorch names them ("blocks.0.att.qkv.weight"), so that files
 * interchange. */
#ifndef CLEAT_SRC_TRANSFORMER_H
#define CLEAT_SRC_TRANSFORMER_H

#include "cleat/ops.h"

typedef struct cleat_transformer {
    int64_t d_model, heads, layers, d_ff;
    float dropout;
    int64_t
        samples; /* of the batch, each of so many sequences one after the other, which dropout counts; 0: as many as sequences */
} cleat_transformer;

/* x weight^T + bias (+ residual) with parameters PREFIX.weight [fan_out, fan_in] and PREFIX.bias [fan_out],
 * both uniform in
 * +-1/sqrt(fan_in), as torch.nn.Linear starts. x [..., fan_in] -> [..., fan_out] */
cleat_tensor *cleat_nn_linear(cleat_graph *graph, const char *prefix, cleat_tensor *x, int64_t fan_out,
                              cleat_tensor *residual);
/* The same, but starting from zero weights: the output starts at the bias, which starts at zero too. */
cleat_tensor *cleat_nn_linear_zero(cleat_graph *graph, const char *prefix, cleat_tensor *x, int64_t fan_out);

/* Layer normalisation with parameters PREFIX.weight (one) and PREFIX.bias (zero), eps 1e-5. [..., D] -> [...,
 * D] */
cleat_tensor *cleat_nn_layer_norm(cleat_graph *graph, const char *prefix, cleat_tensor *x);

/* Table PREFIX.weight [vocabulary, d_model], standard normal, as torch.nn.Embedding starts. tokens [B, L] ->
 * [B, L, D] */
cleat_tensor *cleat_nn_embedding(cleat_graph *graph, const char *prefix, cleat_tensor *tokens, int64_t vocabulary,
                                 const cleat_transformer *shape);

/* Pre-norm blocks blocks.0 ... (Xiong et al. 2020): x += out(attention(n1(x))); x += f2(gelu(f1(n2(x))));
 * then the final norm. Dropout after embedding's sum is the caller's; inside, before each residual addition.
 * Each block is a segment that may be computed again (graph/recompute.h).
 * rng may be NULL when dropout is 0. x [B, L, D], lengths i32 [B] or NULL -> [B, L, D] */
cleat_tensor *cleat_nn_encoder(cleat_graph *graph, cleat_tensor *x, cleat_tensor *lengths, cleat_tensor *rng,
                               const cleat_transformer *shape);

#endif
