/* Linear layer, normalisation, embedding, and the pre-norm transformer encoder. */
#include "nn/transformer.h"

#include "graph/graph.h"
#include "graph/recompute.h"
#include "nn/lora.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *join(char *name, const char *prefix, const char *part) {
    snprintf(name, CLEAT_NAME, "%.50s.%s", prefix, part);
    return name;
}

/* Initial values of a linear layer. */
typedef struct linear_init {
    cleat_init weight, bias;
    bool plain; /* no bias */
} linear_init;

static cleat_tensor *linear(cleat_graph *graph, const char *prefix, cleat_tensor *x, int64_t fan_out, linear_init init,
                            cleat_tensor *residual) {
    if (!x) return NULL;
    char name[CLEAT_NAME];
    int64_t fan_in = cleat_width(x), weight_shape[2] = {fan_out, fan_in};
    cleat_tensor *weight = cleat_param(graph, join(name, prefix, "weight"), 2, weight_shape, init.weight);
    cleat_tensor *bias = init.plain ? NULL : cleat_param(graph, join(name, prefix, "bias"), 1, &fan_out, init.bias);
    cleat_scope(graph, "%s/", prefix);
    return cleat_nn_lora(graph, prefix, x, cleat_linear(graph, x, weight, bias, residual));
}

cleat_tensor *cleat_nn_linear(cleat_graph *graph, const char *prefix, cleat_tensor *x, int64_t fan_out,
                              cleat_tensor *residual) {
    if (!x) return NULL;
    const cleat_init init = {CLEAT_INIT_UNIFORM, 1.0f / sqrtf((float)cleat_width(x))};
    return linear(graph, prefix, x, fan_out, (linear_init){.weight = init, .bias = init}, residual);
}

cleat_tensor *cleat_nn_linear_normal(cleat_graph *graph, const char *prefix, cleat_tensor *x, int64_t fan_out,
                                     float std, cleat_tensor *residual) {
    if (std <= 0) return cleat_nn_linear(graph, prefix, x, fan_out, residual);
    return linear(graph, prefix, x, fan_out,
                  (linear_init){.weight = {CLEAT_INIT_NORMAL, std}, .bias = {CLEAT_INIT_ZERO, 0}}, residual);
}

cleat_tensor *cleat_nn_linear_zero(cleat_graph *graph, const char *prefix, cleat_tensor *x, int64_t fan_out) {
    return linear(graph, prefix, x, fan_out,
                  (linear_init){.weight = {CLEAT_INIT_ZERO, 0}, .bias = {CLEAT_INIT_ZERO, 0}}, NULL);
}

cleat_tensor *cleat_nn_linear_plain(cleat_graph *graph, const char *prefix, cleat_tensor *x, int64_t fan_out, float std,
                                    cleat_tensor *residual) {
    return linear(graph, prefix, x, fan_out, (linear_init){.weight = {CLEAT_INIT_NORMAL, std}, .plain = true},
                  residual);
}

static cleat_tensor *layer_norm(cleat_graph *graph, const char *prefix, cleat_tensor *x, float eps, bool plain) {
    if (!x) return NULL;
    char name[CLEAT_NAME];
    int64_t width = cleat_width(x);
    cleat_tensor *gamma =
        cleat_param(graph, join(name, prefix, "weight"), 1, &width, (cleat_init){CLEAT_INIT_CONSTANT, 1});
    cleat_tensor *beta =
        plain ? NULL : cleat_param(graph, join(name, prefix, "bias"), 1, &width, (cleat_init){CLEAT_INIT_ZERO, 0});
    cleat_scope(graph, "%s/", prefix);
    return cleat_layer_norm(graph, x, gamma, beta, eps);
}

cleat_tensor *cleat_nn_layer_norm_eps(cleat_graph *graph, const char *prefix, cleat_tensor *x, float eps) {
    return layer_norm(graph, prefix, x, eps, false);
}

cleat_tensor *cleat_nn_layer_norm_plain(cleat_graph *graph, const char *prefix, cleat_tensor *x, float eps) {
    return layer_norm(graph, prefix, x, eps, true);
}

cleat_tensor *cleat_nn_layer_norm(cleat_graph *graph, const char *prefix, cleat_tensor *x) {
    return cleat_nn_layer_norm_eps(graph, prefix, x, 1e-5f);
}

cleat_tensor *cleat_nn_embedding(cleat_graph *graph, const char *prefix, cleat_tensor *tokens, int64_t vocabulary,
                                 const cleat_transformer *shape) {
    char name[CLEAT_NAME];
    int64_t table_shape[2] = {vocabulary, shape->d_model};
    cleat_tensor *table =
        cleat_param(graph, join(name, prefix, "weight"), 2, table_shape, (cleat_init){CLEAT_INIT_NORMAL, 1});
    cleat_scope(graph, "%s/", prefix);
    return cleat_embedding(graph, tokens, table, cleat_autocast_storage(graph));
}

cleat_tensor *cleat_nn_residual(cleat_graph *graph, const char *prefix, cleat_tensor *x, cleat_tensor *inner,
                                cleat_tensor *rng, const cleat_transformer *shape) {
    if (shape->dropout <= 0) return cleat_nn_linear_normal(graph, prefix, inner, shape->d_model, shape->init_std, x);
    cleat_tensor *branch = cleat_nn_linear_normal(graph, prefix, inner, shape->d_model, shape->init_std, NULL);
    if (!branch || !x || shape->samples == 0)
        return cleat_add(graph, x, cleat_dropout(graph, branch, rng, shape->dropout));
    const int64_t whole[3] = {shape->samples, cleat_rows(branch) / shape->samples, cleat_width(branch)};
    cleat_tensor *dropped = cleat_dropout(graph, cleat_reshape(graph, branch, 3, whole), rng, shape->dropout);
    return cleat_reshape(graph, cleat_add(graph, cleat_reshape(graph, x, 3, whole), dropped), branch->rank,
                         branch->shape);
}

static float norm_eps(const cleat_transformer *shape) {
    return shape->norm_eps > 0 ? shape->norm_eps : 1e-5f;
}

static cleat_tensor *block(cleat_graph *graph, int64_t layer, cleat_tensor *x, cleat_tensor *lengths, cleat_tensor *rng,
                           const cleat_transformer *shape, const cleat_read_row *read) {
    char prefix[CLEAT_NAME];
#define PART(part) (snprintf(prefix, sizeof prefix, "blocks.%lld.%s", (long long)layer, part), prefix)
    cleat_tensor *y = cleat_nn_layer_norm_eps(graph, PART("n1"), x, norm_eps(shape));
    y = cleat_nn_linear_normal(graph, PART("att.qkv"), y, 3 * shape->d_model, shape->init_std, NULL); /* [B, L, 3D] */
    cleat_scope(graph, "%s/", PART("att"));
    y = cleat_nn_read_row(graph, cleat_attention(graph, y, lengths, (int)shape->heads), read);
    x = cleat_nn_read_row(graph, x, read);
    x = cleat_nn_residual(graph, PART("att.out"), x, y, rng, shape);
    y = cleat_nn_layer_norm_eps(graph, PART("n2"), x, norm_eps(shape));
    y = cleat_nn_linear_normal(graph, PART("f1"), y, shape->d_ff, shape->init_std, NULL); /* [B, L, F] */
    y = cleat_gelu(graph, y);
    return cleat_nn_residual(graph, PART("f2"), x, y, rng, shape);
#undef PART
}

cleat_tensor *cleat_nn_encoder_blocks(cleat_graph *graph, cleat_tensor *x, cleat_tensor *lengths, cleat_tensor *rng,
                                      const cleat_transformer *shape, const cleat_read_row *read) {
    for (int64_t layer = 0; layer < shape->layers; ++layer) {
        const bool last = layer + 1 == shape->layers;
        cleat_segment(graph);
        x = block(graph, layer, x, lengths, rng, shape, last ? read : NULL);
    }
    cleat_segment(graph);
    return x;
}

cleat_tensor *cleat_nn_encoder(cleat_graph *graph, cleat_tensor *x, cleat_tensor *lengths, cleat_tensor *rng,
                               const cleat_transformer *shape, const cleat_read_row *read) {
    x = cleat_nn_encoder_blocks(graph, x, lengths, rng, shape, read);
    return cleat_nn_layer_norm_eps(graph, "norm", x, norm_eps(shape));
}

int64_t cleat_nn_encoder_layer_of(const char *param, int64_t layers) {
    static const char blocks[] = "blocks.", norm[] = "norm.", head[] = "head.";
    if (strncmp(param, blocks, sizeof blocks - 1) == 0) return 1 + strtoll(param + sizeof blocks - 1, NULL, 10);
    if (strncmp(param, norm, sizeof norm - 1) == 0) return layers;
    return strncmp(param, head, sizeof head - 1) == 0 ? layers + 1 : 0;
}
