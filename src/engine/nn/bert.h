/* BERT (Devlin et al. 2019) and its relatives: RoBERTa (Liu et al. 2019), DistilBERT (Sanh et al. 2019),
 * ELECTRA (Clark et al. 2020). Weights start as in transformers: from a normal distribution, with biases of
 * zero. */
#ifndef CLEAT_SRC_BERT_H
#define CLEAT_SRC_BERT_H

#include "nn/transformer.h"

typedef struct cleat_bert {
    cleat_transformer encoder; /* encoder.init_std applies to all weights */
    int64_t vocabulary;        /* rows of the word embeddings */
    int64_t embedding_width;   /* of the embeddings; a layer projects them to d_model if it differs */
    int64_t max_positions;     /* rows of the position embeddings; 0: none */
    int64_t first_position;    /* row of the first token */
    int64_t token_types;       /* rows of the token type embeddings; 0: none */
    int64_t padding;           /* row of the word embeddings that has no gradient; -1: none */
    float norm_eps;
    bool plain_attention; /* no dropout after attention (DistilBERT) */
} cleat_bert;

/* The sum of word, position and type embeddings, emb.word.weight [vocabulary, E], emb.position.weight
 * [max_positions, E] and emb.type.weight [token_types, E], then layer norm emb.norm, dropout, and emb.project
 * if E is not D. types NULL: every token has type 0. tokens, types i32 [B, L] -> T [B, L, D] */
cleat_tensor *cleat_nn_bert_embeddings(cleat_graph *graph, cleat_tensor *tokens, cleat_tensor *types, cleat_tensor *rng,
                                       const cleat_bert *shape);

/* Post-norm blocks blocks.0 ...: x = n1(x + out(attention(x))); x = n2(x + f2(gelu(f1(x)))). Dropout comes
 * before each addition. Each block is a segment that may be recomputed (graph/recompute.h). rng may be NULL
 * if dropout is 0. After the last block's attention, only the row to read is computed. x T [B, L, D], lengths
 * i32 [B] -> T [B, L, D], or the row to read (nn/rows.h) */
cleat_tensor *cleat_nn_bert_encoder(cleat_graph *graph, cleat_tensor *x, cleat_tensor *lengths, cleat_tensor *rng,
                                    const cleat_bert *shape, const cleat_read_row *read);

#endif
