/* The blocks of DeBERTa-v2 and v3. */
#include "nn/deberta.h"

#include "graph/graph.h"
#include "graph/recompute.h"

#include <stdio.h>

/* A name such as "blocks.1.att.qkv"; each name is used before the next one is made. */
typedef struct layer_name {
    char text[CLEAT_NAME];
} layer_name;

static const char *in_block(layer_name *name, int64_t layer, const char *part) {
    snprintf(name->text, sizeof name->text, "blocks.%lld.%s", (long long)layer, part);
    return name->text;
}

/* x weight^T + bias. [..., K] -> [..., fan_out] */
static cleat_tensor *linear(cleat_graph *graph, const char *prefix, cleat_tensor *x, int64_t fan_out,
                            const cleat_deberta *shape) {
    return cleat_nn_linear_normal(graph, prefix, x, fan_out, shape->bert.encoder.init_std, NULL);
}

/* The embeddings of relative positions, [2S, D]. */
static cleat_tensor *embed_positions(cleat_graph *graph, const cleat_deberta *shape) {
    const int64_t span = shape->buckets > 0 ? shape->buckets : shape->max_relative_positions;
    const int64_t size[2] = {2 * span, shape->bert.encoder.d_model};
    const cleat_init init = {CLEAT_INIT_NORMAL, shape->bert.encoder.init_std};
    cleat_tensor *positions = cleat_param(graph, "rel.weight", 2, size, init);
    return shape->norm_positions ? cleat_nn_layer_norm_eps(graph, "rel.norm", positions, shape->bert.norm_eps)
                                 : positions;
}

/* Position keys and queries of a block, [2S, D] each; NULL if the network has none.
 *
 * Shared keys: att.qkv maps the embeddings as it maps x, including values, which are unused. They cost a
 * third of a small product, but the weight needs no slices. */
static void map_positions(cleat_graph *graph, int64_t layer, cleat_tensor *positions, cleat_tensor *rng,
                          const cleat_deberta *shape, cleat_tensor **keys, cleat_tensor **queries) {
    layer_name name;
    const int64_t width = shape->bert.encoder.d_model;
    const float dropout = shape->bert.encoder.dropout;
    if (dropout > 0) positions = cleat_dropout_shared(graph, positions, rng, dropout);
    *keys = *queries = NULL;
    if (shape->shared_keys) {
        cleat_tensor *qkv = linear(graph, in_block(&name, layer, "att.qkv"), positions, 3 * width, shape);
        if (shape->position_to_content) *queries = cleat_slice(graph, qkv, 1, 0, width);
        if (shape->content_to_position) *keys = cleat_slice(graph, qkv, 1, width, 2 * width);
        return;
    }
    if (shape->position_to_content)
        *queries = linear(graph, in_block(&name, layer, "att.pos_query"), positions, width, shape);
    if (shape->content_to_position)
        *keys = linear(graph, in_block(&name, layer, "att.pos_key"), positions, width, shape);
}

/* x [B, L, D], positions [2S, D] -> [B, L, D], or the row to read */
static cleat_tensor *block(cleat_graph *graph, int64_t layer, cleat_tensor *x, cleat_tensor *positions,
                           cleat_tensor *lengths, cleat_tensor *rng, const cleat_deberta *shape,
                           const cleat_read_row *read) {
    layer_name name;
    const cleat_transformer *encoder = &shape->bert.encoder;
    const float eps = shape->bert.norm_eps;
    const cleat_disentangled_spec spec = {.heads = (int)encoder->heads,
                                          .buckets = shape->buckets,
                                          .max_relative_positions = shape->max_relative_positions};
    cleat_tensor *keys, *queries;
    map_positions(graph, layer, positions, rng, shape, &keys, &queries);
    cleat_tensor *y = linear(graph, in_block(&name, layer, "att.qkv"), x, 3 * encoder->d_model, shape); /* [B, L, 3D] */
    cleat_scope(graph, "%s/", in_block(&name, layer, "att"));
    y = cleat_nn_read_row(graph, cleat_disentangled_attention(graph, y, keys, queries, lengths, &spec), read);
    x = cleat_nn_read_row(graph, x, read);
    x = cleat_nn_residual(graph, in_block(&name, layer, "att.out"), x, y, rng, encoder);
    x = cleat_nn_layer_norm_eps(graph, in_block(&name, layer, "n1"), x, eps);
    y = cleat_gelu(graph, linear(graph, in_block(&name, layer, "f1"), x, encoder->d_ff, shape));
    x = cleat_nn_residual(graph, in_block(&name, layer, "f2"), x, y, rng, encoder);
    return cleat_nn_layer_norm_eps(graph, in_block(&name, layer, "n2"), x, eps);
}

cleat_tensor *cleat_nn_deberta_encoder(cleat_graph *graph, cleat_tensor *x, cleat_tensor *lengths, cleat_tensor *rng,
                                       const cleat_deberta *shape, const cleat_read_row *read) {
    cleat_tensor *positions = embed_positions(graph, shape);
    for (int64_t layer = 0; layer < shape->bert.encoder.layers; ++layer) {
        const bool last = layer + 1 == shape->bert.encoder.layers;
        cleat_segment(graph);
        x = block(graph, layer, x, positions, lengths, rng, shape, last ? read : NULL);
    }
    cleat_segment(graph);
    return x;
}
