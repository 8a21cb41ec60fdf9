/* The decoder of Llama and its relatives (Touvron et al. 2023): pre-norm blocks of causal attention with rotary
 * positions and grouped queries, and of a gated feed-forward network; RMS norms, no biases. Gemma's has more norms and
 * factors (Gemma Team 2025), GPT-2's has layer norms, biases, learned positions and no gate (Radford et al. 2019). */
#ifndef CLEAT_SRC_NN_LLAMA_H
#define CLEAT_SRC_NN_LLAMA_H

#include "cleat/ops.h"

typedef struct cleat_llama {
    int64_t vocabulary, d_model, layers, d_ff;
    int64_t heads, kv_heads, head; /* heads of queries, a divisor of them for keys and values; elements of a head */
    int64_t window;                /* of attention; 0: all earlier tokens */
    int64_t global_every;          /* blocks global_every - 1, 2 global_every - 1, ... have no window; 0: all have it */
    cleat_rotary_angles angles;    /* width: `head` */
    double local_base;             /* of the unscaled angles in blocks with a window; 0: `angles` are also theirs */
    float embedding_factor;        /* of the word embeddings; 0: 1 */
    float score_factor;            /* of the scores; 0: 1 / sqrt(head) */
    float norm_eps;
    cleat_gate gate;
    bool qkv_bias;   /* queries, keys and values have biases (Qwen2) */
    bool end_norms;  /* the outputs of attention and feed-forward network pass a norm before they are added (Gemma) */
    int64_t learned; /* rows of a table of learned positions, in GPT-2's variant; 0: Llama's, with angles */
    bool head_norms; /* queries and keys of each head pass an RMS norm before they turn (Qwen3) */
    bool tied;       /* the output layer is the table of the embeddings */
} cleat_llama;

/* Parameters emb.weight [V, D], blocks.N.(n1 | n2).weight [D], blocks.N.att.q, .att.kv (keys, then values), .att.out,
 * .mlp.gate_up (stacked), .mlp.down, norm.weight; with end_norms blocks.N.(n1 | n2)_end.weight; with `learned`
 * emb.position [learned, D], blocks.N.att.c_attn (queries, keys, values), .mlp.up, and biases. All are initialised as
 * in GPT-2 (Radford et al. 2019): a normal distribution with a standard deviation of 0.02, layers that end a branch
 * with 0.02 / sqrt(2 layers). Each block is a segment that may be recomputed. tokens i32 [B, L]; starts i32 [B, L] or
 * NULL as in cleat_causal_attention. Rotary positions count from the start of the row, since only their differences
 * matter; learned ones are positions i32 [B, L] (NULL without `learned`) -> T [B, L, D] after the last norm. */
cleat_tensor *cleat_nn_llama(cleat_graph *graph, cleat_tensor *tokens, cleat_tensor *starts, cleat_tensor *positions,
                             const cleat_llama *shape);
/* The same for generation: token positions[b, l] (i32 [B, L]; below 0: padding) of each sequence sees those before it,
 * which earlier runs have left in the states blocks.N.cache T [B, context, 2 K D/H] (cleat_cached_attention). */
cleat_tensor *cleat_nn_llama_cached(cleat_graph *graph, cleat_tensor *tokens, cleat_tensor *positions, int64_t context,
                                    const cleat_llama *shape);
/* The output layer's weight f32 [V, D]: emb.weight, or head.weight. */
cleat_tensor *cleat_nn_llama_head(cleat_graph *graph, const cleat_llama *shape);

#endif
