/* Embeddings and post-norm encoder of BERT and its relatives. */
#include "nn/bert.h"

#include "graph/graph.h"
#include "graph/recompute.h"

#include <stdio.h>

static cleat_tensor *table(cleat_graph *graph, const char *name, int64_t rows, const cleat_bert *shape) {
    const int64_t table_shape[2] = {rows, shape->embedding_width};
    return cleat_param(graph, name, 2, table_shape, (cleat_init){CLEAT_INIT_NORMAL, shape->encoder.init_std});
}

/* Row 0 of the table is added to every token: each is a sample of one position. */
static cleat_tensor *add_first_type(cleat_graph *graph, cleat_tensor *x, cleat_tensor *rows) {
    if (!x) return NULL;
    const int64_t tokens[3] = {x->shape[0] * x->shape[1], 1, x->shape[2]};
    cleat_tensor *y = cleat_position_embedding(graph, cleat_reshape(graph, x, 3, tokens), rows, 0);
    return cleat_reshape(graph, y, 3, x->shape);
}

static cleat_tensor *add_types(cleat_graph *graph, cleat_tensor *x, cleat_tensor *types, const cleat_bert *shape) {
    cleat_tensor *rows = table(graph, "emb.type.weight", shape->token_types, shape);
    if (!types) return add_first_type(graph, x, rows);
    return cleat_add(graph, x, cleat_embedding(graph, types, rows, cleat_autocast_storage(graph)));
}

cleat_tensor *cleat_nn_bert_embeddings(cleat_graph *graph, cleat_tensor *tokens, cleat_tensor *types, cleat_tensor *rng,
                                       const cleat_bert *shape) {
    const cleat_transformer *encoder = &shape->encoder;
    cleat_scope(graph, "%s/", "emb");
    cleat_tensor *words = table(graph, "emb.word.weight", shape->vocabulary, shape);
    cleat_tensor *x =
        cleat_embedding_padded(graph, tokens, words, shape->padding, cleat_autocast_storage(graph)); /* [B, L, E] */
    if (shape->max_positions > 0) {
        cleat_tensor *positions = table(graph, "emb.position.weight", shape->max_positions, shape);
        x = cleat_position_embedding(graph, x, positions, shape->first_position);
    }
    if (shape->token_types > 0) x = add_types(graph, x, types, shape);
    x = cleat_nn_layer_norm_eps(graph, "emb.norm", x, shape->norm_eps);
    if (encoder->dropout > 0) x = cleat_dropout(graph, x, rng, encoder->dropout);
    if (shape->embedding_width == encoder->d_model) return x;
    return cleat_nn_linear_normal(graph, "emb.project", x, encoder->d_model, encoder->init_std, NULL);
}

static cleat_tensor *block(cleat_graph *graph, int64_t layer, cleat_tensor *x, cleat_tensor *lengths, cleat_tensor *rng,
                           const cleat_bert *shape, const cleat_read_row *read) {
    const cleat_transformer *encoder = &shape->encoder;
    cleat_transformer attention = *encoder;
    char prefix[CLEAT_NAME];
    if (shape->plain_attention) attention.dropout = 0;
#define PART(part) (snprintf(prefix, sizeof prefix, "blocks.%lld.%s", (long long)layer, part), prefix)
    cleat_tensor *y = cleat_nn_linear_normal(graph, PART("att.qkv"), x, 3 * encoder->d_model, encoder->init_std, NULL);
    cleat_scope(graph, "%s/", PART("att"));
    y = cleat_nn_read_row(graph, cleat_attention(graph, y, lengths, (int)encoder->heads), read);
    x = cleat_nn_read_row(graph, x, read);
    x = cleat_nn_residual(graph, PART("att.out"), x, y, rng, &attention);
    x = cleat_nn_layer_norm_eps(graph, PART("n1"), x, shape->norm_eps);
    y = cleat_nn_linear_normal(graph, PART("f1"), x, encoder->d_ff, encoder->init_std, NULL); /* [B, L, F] */
    y = cleat_gelu(graph, y);
    x = cleat_nn_residual(graph, PART("f2"), x, y, rng, encoder);
    return cleat_nn_layer_norm_eps(graph, PART("n2"), x, shape->norm_eps);
#undef PART
}

cleat_tensor *cleat_nn_bert_encoder(cleat_graph *graph, cleat_tensor *x, cleat_tensor *lengths, cleat_tensor *rng,
                                    const cleat_bert *shape, const cleat_read_row *read) {
    for (int64_t layer = 0; layer < shape->encoder.layers; ++layer) {
        const bool last = layer + 1 == shape->encoder.layers;
        cleat_segment(graph);
        x = block(graph, layer, x, lengths, rng, shape, last ? read : NULL);
    }
    cleat_segment(graph);
    return x;
}
