/* The encoder of DeBERTa-v2 and v3 (He et al. 2021): post-norm blocks whose attention adds relative positions. */
#ifndef CLEAT_SRC_DEBERTA_H
#define CLEAT_SRC_DEBERTA_H

#include "nn/bert.h"

typedef struct cleat_deberta {
    cleat_bert bert;            /* sizes, embeddings, dropout; encoder.init_std applies to all weights */
    int buckets;                /* position_buckets; 0 or less: none */
    int max_relative_positions; /* at least 1 */
    bool content_to_position;   /* c2p: queries meet position keys */
    bool position_to_content;   /* p2c: keys meet position queries; at least one of the two */
    bool shared_keys;           /* att.qkv computes position keys and queries, not separate layers */
    bool norm_positions;        /* norm_rel_ebd: layer_norm */
} cleat_deberta;

/* Blocks blocks.0 ...: x = n1(x + att.out(attention(att.qkv(x)))), x = n2(x + f2(gelu(f1(x)))). The attention
 * is cleat_disentangled_attention with the position embeddings rel.weight [2S, D] (normalised by rel.norm),
 * mapped by att.qkv of each block, or by att.pos_key and att.pos_query if keys are not shared. Dropout is
 * applied before each residual addition, and to the position embeddings. Each block is a segment that may be
 * recomputed (graph/recompute.h). rng may be NULL if dropout is 0. After the last block's attention, only the
 * row to read is computed. x [B, L, D], lengths i32 [B] or NULL -> [B, L, D], or the row to read
 * (nn/rows.h) */
cleat_tensor *cleat_nn_deberta_encoder(cleat_graph *graph, cleat_tensor *x, cleat_tensor *lengths, cleat_tensor *rng,
                                       const cleat_deberta *shape, const cleat_read_row *read);

#endif
