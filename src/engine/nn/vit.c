/* Patch embedding, class token, positions, blocks and pooling of a vision transformer. */
#include "nn/vit.h"

#include "graph/graph.h"
#include "graph/recompute.h"
#include "nn/conv.h"

static const float POSITION_STD = 0.02f;

/* [B, H, W, C] -> [B, patches, D] */
static cleat_tensor *embed(cleat_graph *graph, cleat_tensor *x, const cleat_vit *shape) {
    const cleat_conv_layer layer = {
        .features = shape->blocks.d_model, .kernel = shape->patch, .stride = shape->patch, .bias = true};
    x = cleat_nn_conv(graph, "pe", x, &layer);
    if (!x) return NULL;
    const int64_t sequence[3] = {x->shape[0], x->shape[1] * x->shape[2], x->shape[3]};
    return cleat_reshape(graph, x, 3, sequence);
}

/* [B, patches, D] -> [B, positions, D] */
static cleat_tensor *add_positions(cleat_graph *graph, cleat_tensor *x, const cleat_vit *shape) {
    const cleat_init init = {CLEAT_INIT_NORMAL, POSITION_STD};
    if (!x) return NULL;
    const int64_t table[2] = {x->shape[1] + shape->class_token, shape->blocks.d_model};
    if (shape->class_token) x = cleat_prepend_token(graph, x, cleat_param(graph, "cls", 1, &table[1], init));
    return cleat_position_embedding(graph, x, cleat_param(graph, "pos", 2, table, init), 0);
}

/* [B, positions, D] -> [B, D] */
static cleat_tensor *mean(cleat_graph *graph, cleat_tensor *x, const cleat_vit *shape) {
    if (!x) return NULL;
    if (shape->class_token) x = cleat_slice(graph, x, 1, 1, x->shape[1]);
    return cleat_mean_pool(graph, x, NULL);
}

cleat_tensor *cleat_nn_vit(cleat_graph *graph, cleat_tensor *x, cleat_tensor *rng, const cleat_vit *shape) {
    const cleat_read_row first = {.row = CLEAT_ROW_FIRST};
    cleat_segment(graph);
    x = add_positions(graph, embed(graph, x, shape), shape);
    if (shape->blocks.dropout > 0) x = cleat_dropout(graph, x, rng, shape->blocks.dropout);
    x = cleat_nn_encoder_blocks(graph, x, NULL, rng, &shape->blocks, shape->mean ? NULL : &first);
    if (shape->mean) x = mean(graph, x, shape);
    return cleat_nn_layer_norm_eps(graph, "norm", x, shape->blocks.norm_eps);
}
