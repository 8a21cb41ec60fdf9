/* The encoder of ModernBERT (Warner et al. 2024): pre-norm blocks without biases, rotary positions, gated products, and
 * attention that is global in some blocks and local in the others. */
#ifndef CLEAT_SRC_MODERNBERT_H
#define CLEAT_SRC_MODERNBERT_H

#include "nn/transformer.h"

typedef struct cleat_modernbert {
    cleat_transformer encoder;      /* encoder.init_std applies to all weights, norm_eps to all norms */
    int64_t vocabulary;             /* rows of the word embeddings */
    int64_t padding;                /* row of the word embeddings that has no gradient; -1: none */
    int64_t global_every;           /* blocks 0, n, 2 n, ... see all keys */
    int window;                     /* of the others (cleat_local_attention), at least 2 */
    double global_base, local_base; /* of their rotary positions */
} cleat_modernbert;

/* Word embeddings emb.word.weight [vocabulary, D] with the norm emb.norm; blocks.0 ...: x += att.out(attention(turned
 * att.qkv(n1(x)))), x += f2(gelu(a) b) with a, b = f1(n2(x)), where block 0 has no n1; then the norm `norm`. Dropout
 * comes after emb.norm and before each addition. Each block is a segment that may be recomputed (graph/recompute.h).
 * rng may be NULL if dropout is 0. After the last block's attention, only the row to read is computed. tokens i32
 * [B, L], lengths i32 [B] or NULL -> T [B, L, D], or the row to read (nn/rows.h) */
cleat_tensor *cleat_nn_modernbert(cleat_graph *graph, cleat_tensor *tokens, cleat_tensor *lengths, cleat_tensor *rng,
                                  const cleat_modernbert *shape, const cleat_read_row *read);

#endif
