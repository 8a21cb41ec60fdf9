/* The decoder of Llama and its relatives (Touvron et al. 2023): pre-norm blocks of causal attention with rotary
 * positions and grouped queries, and of a gated feed-forward network; RMS norms, no biases. */
#ifndef CLEAT_SRC_NN_LLAMA_H
#define CLEAT_SRC_NN_LLAMA_H

#include "cleat/ops.h"

typedef struct cleat_llama {
    int64_t vocabulary, d_model, layers, d_ff;
    int64_t heads, kv_heads, head; /* heads of queries, a divisor of them for keys and values; elements of a head */
    int64_t window;                /* of attention; 0: all earlier tokens */
    cleat_rotary_angles angles;    /* width: `head` */
    float norm_eps;
    cleat_gate gate;
    bool qkv_bias;   /* queries, keys and values have biases (Qwen2) */
    bool head_norms; /* queries and keys of each head pass an RMS norm before they turn (Qwen3) */
    bool tied;       /* the output layer is the table of the embeddings */
} cleat_llama;

/* Parameters emb.weight [V, D], blocks.N.(n1 | n2).weight [D], blocks.N.att.q, .att.kv (keys, then values), .att.out,
 * .mlp.gate_up (stacked), .mlp.down, norm.weight, all initialised as in GPT-2 (Radford et al. 2019): a normal
 * distribution with a standard deviation of 0.02, layers that end a branch with 0.02 / sqrt(2 layers). Each block is a
 * segment that may be recomputed. tokens i32 [B, L]; starts i32 [B, L] or NULL as in cleat_causal_attention; positions
 * count from the start of the row, since only their differences matter -> T [B, L, D] after the last norm. */
cleat_tensor *cleat_nn_llama(cleat_graph *graph, cleat_tensor *tokens, cleat_tensor *starts, const cleat_llama *shape);
/* The same for generation: token positions[b, l] (i32 [B, L]; below 0: padding) of each sequence sees those before it,
 * which earlier runs have left in the states blocks.N.cache T [B, context, 2 K D/H] (cleat_cached_attention). */
cleat_tensor *cleat_nn_llama_cached(cleat_graph *graph, cleat_tensor *tokens, cleat_tensor *positions, int64_t context,
                                    const cleat_llama *shape);
/* The output layer's weight f32 [V, D]: emb.weight, or head.weight. */
cleat_tensor *cleat_nn_llama_head(cleat_graph *graph, const cleat_llama *shape);

#endif
