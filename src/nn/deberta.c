/* The blocks of DeBERTa-v2 and v3. */
#include "nn/deberta.h"

#include "graph/graph.h"
#include "graph/recompute.h"
#include "nn/lora.h"

#include <stdio.h>

/* A name such as "blocks.1.att.qkv"; each name is used before the next one is made. */
typedef struct layer_name {
    char text[CLEAT_NAME];
} layer_name;

static const char *in_block(layer_name *name, int64_t layer, const char *part) {
    snprintf(name->text, sizeof name->text, "blocks.%lld.%s", (long long)layer, part);
    return name->text;
}

static cleat_tensor *param(cleat_graph *graph, const char *prefix, const char *part, int rank, const int64_t *shape,
                           cleat_init init) {
    char name[CLEAT_NAME];
    snprintf(name, sizeof name, "%.50s.%s", prefix, part);
    return cleat_param(graph, name, rank, shape, init);
}

/* x weight^T + bias (+ residual). [..., K] -> [..., fan_out] */
static cleat_tensor *linear(cleat_graph *graph, const char *prefix, cleat_tensor *x, int64_t fan_out,
                            cleat_tensor *residual) {
    if (!x) return NULL;
    const int64_t shape[2] = {fan_out, cleat_width(x)};
    cleat_tensor *weight = param(graph, prefix, "weight", 2, shape, (cleat_init){CLEAT_INIT_NORMAL, 0.02f});
    cleat_tensor *bias = param(graph, prefix, "bias", 1, &fan_out, (cleat_init){CLEAT_INIT_ZERO, 0});
    cleat_scope(graph, "%s/", prefix);
    return cleat_nn_lora(graph, prefix, x, cleat_linear(graph, x, weight, bias, residual));
}

static cleat_tensor *norm(cleat_graph *graph, const char *prefix, cleat_tensor *x, const cleat_deberta *shape) {
    if (!x) return NULL;
    const int64_t width = cleat_width(x);
    cleat_tensor *gamma = param(graph, prefix, "weight", 1, &width, (cleat_init){CLEAT_INIT_CONSTANT, 1});
    cleat_tensor *beta = param(graph, prefix, "bias", 1, &width, (cleat_init){CLEAT_INIT_ZERO, 0});
    cleat_scope(graph, "%s/", prefix);
    return cleat_layer_norm(graph, x, gamma, beta, shape->norm_eps);
}

/* x + dropout(linear(inner)) */
static cleat_tensor *close_residual(cleat_graph *graph, const char *prefix, cleat_tensor *x, cleat_tensor *inner,
                                    cleat_tensor *rng, const cleat_deberta *shape) {
    if (shape->dropout <= 0) return linear(graph, prefix, inner, shape->d_model, x);
    cleat_tensor *branch = linear(graph, prefix, inner, shape->d_model, NULL);
    return cleat_add(graph, x, cleat_dropout(graph, branch, rng, shape->dropout));
}

/* The embeddings of relative positions, [2S, D]. */
static cleat_tensor *embed_positions(cleat_graph *graph, const cleat_deberta *shape) {
    const int64_t span = shape->buckets > 0 ? shape->buckets : shape->max_relative_positions;
    const int64_t size[2] = {2 * span, shape->d_model};
    cleat_tensor *positions = cleat_param(graph, "rel.weight", 2, size, (cleat_init){CLEAT_INIT_NORMAL, 0.02f});
    return shape->norm_positions ? norm(graph, "rel.norm", positions, shape) : positions;
}

/* Position keys and queries of a block, [2S, D] each; NULL where the network has none.
 *
 * Shared keys: att.qkv maps the embeddings as it maps x, values included, which nothing reads. That is a third of a
 * small product, and the weight needs no slices. */
static void map_positions(cleat_graph *graph, int64_t layer, cleat_tensor *positions, cleat_tensor *rng,
                          const cleat_deberta *shape, cleat_tensor **keys, cleat_tensor **queries) {
    layer_name name;
    const int64_t width = shape->d_model;
    if (shape->dropout > 0) positions = cleat_dropout_shared(graph, positions, rng, shape->dropout);
    *keys = *queries = NULL;
    if (shape->shared_keys) {
        cleat_tensor *qkv = linear(graph, in_block(&name, layer, "att.qkv"), positions, 3 * width, NULL);
        if (shape->position_to_content) *queries = cleat_slice(graph, qkv, 1, 0, width);
        if (shape->content_to_position) *keys = cleat_slice(graph, qkv, 1, width, 2 * width);
        return;
    }
    if (shape->position_to_content)
        *queries = linear(graph, in_block(&name, layer, "att.pos_query"), positions, width, NULL);
    if (shape->content_to_position)
        *keys = linear(graph, in_block(&name, layer, "att.pos_key"), positions, width, NULL);
}

/* x [B, L, D], positions [2S, D] -> [B, L, D] */
static cleat_tensor *block(cleat_graph *graph, int64_t layer, cleat_tensor *x, cleat_tensor *positions,
                           cleat_tensor *lengths, cleat_tensor *rng, const cleat_deberta *shape) {
    layer_name name;
    const cleat_disentangled_spec spec = {
        .heads = (int)shape->heads, .buckets = shape->buckets, .max_relative_positions = shape->max_relative_positions};
    cleat_tensor *keys, *queries;
    map_positions(graph, layer, positions, rng, shape, &keys, &queries);
    cleat_tensor *y = linear(graph, in_block(&name, layer, "att.qkv"), x, 3 * shape->d_model, NULL); /* [B, L, 3D] */
    cleat_scope(graph, "%s/", in_block(&name, layer, "att"));
    y = cleat_disentangled_attention(graph, y, keys, queries, lengths, &spec);
    x = close_residual(graph, in_block(&name, layer, "att.out"), x, y, rng, shape);
    x = norm(graph, in_block(&name, layer, "n1"), x, shape);
    y = cleat_gelu(graph, linear(graph, in_block(&name, layer, "f1"), x, shape->d_ff, NULL));
    x = close_residual(graph, in_block(&name, layer, "f2"), x, y, rng, shape);
    return norm(graph, in_block(&name, layer, "n2"), x, shape);
}

cleat_tensor *cleat_nn_deberta_encoder(cleat_graph *graph, cleat_tensor *x, cleat_tensor *lengths, cleat_tensor *rng,
                                       const cleat_deberta *shape) {
    cleat_tensor *positions = embed_positions(graph, shape);
    for (int64_t layer = 0; layer < shape->layers; ++layer) {
        cleat_segment(graph);
        x = block(graph, layer, x, positions, lengths, rng, shape);
    }
    cleat_segment(graph);
    return x;
}
