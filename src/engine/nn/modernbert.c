/* The encoder of ModernBERT. */
#include "nn/modernbert.h"

#include "graph/graph.h"
#include "graph/recompute.h"

#include <stdio.h>

/* x + dropout(linear layer of inner) */
static cleat_tensor *residual(cleat_graph *graph, const char *prefix, cleat_tensor *x, cleat_tensor *inner,
                              cleat_tensor *rng, const cleat_transformer *encoder) {
    const float rate = encoder->dropout, std = encoder->init_std;
    if (rate <= 0) return cleat_nn_linear_plain(graph, prefix, inner, encoder->d_model, std, x);
    cleat_tensor *branch = cleat_nn_linear_plain(graph, prefix, inner, encoder->d_model, std, NULL);
    return cleat_add(graph, x, cleat_dropout(graph, branch, rng, rate));
}

/* The tables of rotary positions, of global and of local attention. */
typedef struct tables {
    cleat_tensor *global, *local;
} tables;

static cleat_tensor *table_of(cleat_graph *graph, int64_t length, double base, const cleat_transformer *encoder) {
    const cleat_rotary_angles angles = {.width = encoder->d_model / encoder->heads, .base = base, .factor = 1};
    return cleat_rotary_table(graph, length, &angles);
}

/* qkv [B, L, 3D] -> [B, L, D] */
static cleat_tensor *attend(cleat_graph *graph, int64_t layer, cleat_tensor *qkv, cleat_tensor *lengths,
                            const tables *angles, const cleat_modernbert *shape) {
    const bool global = layer % shape->global_every == 0;
    const int heads = (int)shape->encoder.heads;
    qkv = cleat_rotary(graph, qkv, global ? angles->global : angles->local, NULL, 3 * heads, 2 * heads, false);
    return global ? cleat_attention(graph, qkv, lengths, heads)
                  : cleat_local_attention(graph, qkv, lengths, heads, shape->window);
}

static cleat_tensor *block(cleat_graph *graph, int64_t layer, cleat_tensor *x, cleat_tensor *lengths, cleat_tensor *rng,
                           const tables *angles, const cleat_modernbert *shape, const cleat_read_row *read) {
    const cleat_transformer *encoder = &shape->encoder;
    const float std = encoder->init_std, eps = encoder->norm_eps;
    char prefix[CLEAT_NAME];
#define PART(part) (snprintf(prefix, sizeof prefix, "blocks.%lld.%s", (long long)layer, part), prefix)
    cleat_tensor *y = layer > 0 ? cleat_nn_layer_norm_plain(graph, PART("n1"), x, eps) : x;
    y = cleat_nn_linear_plain(graph, PART("att.qkv"), y, 3 * encoder->d_model, std, NULL);
    cleat_scope(graph, "%s/", PART("att"));
    y = cleat_nn_read_row(graph, attend(graph, layer, y, lengths, angles, shape), read);
    x = residual(graph, PART("att.out"), cleat_nn_read_row(graph, x, read), y, rng, encoder);
    y = cleat_nn_layer_norm_plain(graph, PART("n2"), x, eps);
    y = cleat_nn_linear_plain(graph, PART("f1"), y, 2 * encoder->d_ff, std, NULL);
    return residual(graph, PART("f2"), x, cleat_gated(graph, y, CLEAT_GATE_GELU), rng, encoder);
#undef PART
}

cleat_tensor *cleat_nn_modernbert(cleat_graph *graph, cleat_tensor *tokens, cleat_tensor *lengths, cleat_tensor *rng,
                                  const cleat_modernbert *shape, const cleat_read_row *read) {
    if (!tokens) return NULL;
    const cleat_transformer *encoder = &shape->encoder;
    const int64_t size[2] = {shape->vocabulary, encoder->d_model};
    cleat_scope(graph, "%s/", "emb");
    cleat_tensor *words =
        cleat_param(graph, "emb.word.weight", 2, size, (cleat_init){CLEAT_INIT_NORMAL, encoder->init_std});
    cleat_tensor *x = cleat_embedding_padded(graph, tokens, words, shape->padding, cleat_autocast_storage(graph));
    x = cleat_nn_layer_norm_plain(graph, "emb.norm", x, encoder->norm_eps);
    if (encoder->dropout > 0) x = cleat_dropout(graph, x, rng, encoder->dropout);
    const tables angles = {.global = table_of(graph, tokens->shape[1], shape->global_base, encoder),
                           .local = table_of(graph, tokens->shape[1], shape->local_base, encoder)};
    for (int64_t layer = 0; layer < encoder->layers; ++layer) {
        cleat_segment(graph);
        x = block(graph, layer, x, lengths, rng, &angles, shape, layer + 1 == encoder->layers ? read : NULL);
    }
    cleat_segment(graph);
    return cleat_nn_layer_norm_plain(graph, "norm", x, encoder->norm_eps);
}
