/* Decoder blocks of Llama and its relatives. */
#include "nn/llama.h"

#include "graph/graph.h"
#include "graph/recompute.h"
#include "nn/lora.h"

#include <math.h>
#include <stdio.h>

static const float INIT_STD = 0.02f;

/* The name of a part of block `layer`. */
typedef struct part_name {
    char text[CLEAT_NAME];
} part_name;

static part_name part_of(int64_t layer, const char *part) {
    part_name name;
    snprintf(name.text, sizeof name.text, "blocks.%lld.%s", (long long)layer, part);
    return name;
}

static cleat_tensor *norm(cleat_graph *graph, const char *prefix, cleat_tensor *x, const cleat_llama *shape) {
    if (!x) return NULL;
    char name[CLEAT_NAME];
    const int64_t width = cleat_width(x);
    snprintf(name, sizeof name, "%.50s.weight", prefix);
    cleat_tensor *gamma = cleat_param(graph, name, 1, &width, (cleat_init){CLEAT_INIT_CONSTANT, 1});
    cleat_scope(graph, "%s/", prefix);
    return cleat_rms_norm(graph, x, gamma, shape->norm_eps);
}

/* A linear layer, with its adapters. */
static cleat_tensor *linear(cleat_graph *graph, const char *prefix, cleat_tensor *x, int64_t fan_out, float std,
                            bool has_bias, cleat_tensor *residual) {
    if (!x) return NULL;
    char name[CLEAT_NAME];
    const int64_t weight_shape[2] = {fan_out, cleat_width(x)};
    snprintf(name, sizeof name, "%.50s.weight", prefix);
    cleat_tensor *weight = cleat_param(graph, name, 2, weight_shape, (cleat_init){CLEAT_INIT_NORMAL, std});
    snprintf(name, sizeof name, "%.50s.bias", prefix);
    cleat_tensor *bias = has_bias ? cleat_param(graph, name, 1, &fan_out, (cleat_init){CLEAT_INIT_ZERO, 0}) : NULL;
    cleat_scope(graph, "%s/", prefix);
    return cleat_nn_lora(graph, prefix, x, cleat_linear(graph, x, weight, bias, residual));
}

/* A norm of each head: x [B, L, n D/H] -> the same shape */
static cleat_tensor *norm_heads(cleat_graph *graph, const char *prefix, cleat_tensor *x, const cleat_llama *shape) {
    if (!x) return NULL;
    const int64_t rows[] = {x->shape[0], x->shape[1], cleat_width(x) / shape->head, shape->head};
    cleat_tensor *y = norm(graph, prefix, cleat_reshape(graph, x, 4, rows), shape);
    return cleat_reshape(graph, y, 3, x->shape);
}

/* Where the tokens stand: in rows of samples, or (positions is not NULL) behind those of a cache. */
typedef struct places {
    cleat_tensor *angles, *starts, *positions;
    int64_t context; /* rows of the cache */
} places;

/* Attends to all tokens that are in the cache of the block. */
static cleat_tensor *attend_cached(cleat_graph *graph, int64_t layer, cleat_tensor *q, cleat_tensor *kv,
                                   const places *at, const cleat_llama *shape) {
    if (!kv) return NULL;
    const int64_t cache_shape[] = {kv->shape[0], at->context, kv->shape[2]};
    cleat_tensor *cache =
        cleat_state(graph, part_of(layer, "cache").text, cleat_autocast_storage(graph), 3, cache_shape);
    return cleat_cached_attention(graph, q, kv, at->positions, cache, (int)shape->heads, (int)shape->kv_heads,
                                  (int)shape->window);
}

/* x [B, L, D] after its norm -> [B, L, H D/H] */
static cleat_tensor *attention(cleat_graph *graph, int64_t layer, cleat_tensor *x, const places *at,
                               const cleat_llama *shape) {
    const int64_t kv_width = shape->kv_heads * shape->head;
    const int heads = (int)shape->heads, kv_heads = (int)shape->kv_heads;
    cleat_tensor *q =
        linear(graph, part_of(layer, "att.q").text, x, shape->heads * shape->head, INIT_STD, shape->qkv_bias, NULL);
    cleat_tensor *kv = linear(graph, part_of(layer, "att.kv").text, x, 2 * kv_width, INIT_STD, shape->qkv_bias, NULL);
    if (shape->head_norms) {
        cleat_tensor *halves[2];
        if (!cleat_chunk(graph, kv, 2, halves)) return NULL;
        q = norm_heads(graph, part_of(layer, "att.q_norm").text, q, shape);
        halves[0] = norm_heads(graph, part_of(layer, "att.k_norm").text, halves[0], shape);
        kv = cleat_concat(graph, halves, 2);
    }
    cleat_scope(graph, "%s/", part_of(layer, "att").text);
    q = cleat_rotary(graph, q, at->angles, at->positions, heads, heads, false);
    kv = cleat_rotary(graph, kv, at->angles, at->positions, 2 * kv_heads, kv_heads, false);
    if (at->positions) return attend_cached(graph, layer, q, kv, at, shape);
    return cleat_causal_attention(graph, q, kv, at->starts, heads, kv_heads, (int)shape->window, 0);
}

static cleat_tensor *block(cleat_graph *graph, int64_t layer, cleat_tensor *x, const places *at,
                           const cleat_llama *shape) {
    const float end_std = INIT_STD / sqrtf(2.0f * (float)shape->layers);
    cleat_tensor *y = norm(graph, part_of(layer, "n1").text, x, shape);
    y = attention(graph, layer, y, at, shape);
    x = linear(graph, part_of(layer, "att.out").text, y, shape->d_model, end_std, false, x);
    y = norm(graph, part_of(layer, "n2").text, x, shape);
    y = linear(graph, part_of(layer, "mlp.gate_up").text, y, 2 * shape->d_ff, INIT_STD, false, NULL);
    y = cleat_gated(graph, y, shape->gate);
    return linear(graph, part_of(layer, "mlp.down").text, y, shape->d_model, end_std, false, x);
}

static cleat_tensor *table(cleat_graph *graph, const char *name, const cleat_llama *shape) {
    const int64_t table_shape[2] = {shape->vocabulary, shape->d_model};
    return cleat_param(graph, name, 2, table_shape, (cleat_init){CLEAT_INIT_NORMAL, INIT_STD});
}

static cleat_tensor *decoder(cleat_graph *graph, cleat_tensor *tokens, int64_t length, places *at,
                             const cleat_llama *shape) {
    cleat_scope(graph, "%s/", "emb");
    cleat_tensor *x = cleat_embedding(graph, tokens, table(graph, "emb.weight", shape), cleat_autocast_storage(graph));
    at->angles = cleat_rotary_table(graph, length, &shape->angles);
    for (int64_t layer = 0; layer < shape->layers; ++layer) {
        cleat_segment(graph);
        x = block(graph, layer, x, at, shape);
    }
    cleat_segment(graph);
    return norm(graph, "norm", x, shape);
}

cleat_tensor *cleat_nn_llama(cleat_graph *graph, cleat_tensor *tokens, cleat_tensor *starts, const cleat_llama *shape) {
    places at = {.starts = starts};
    return tokens ? decoder(graph, tokens, tokens->shape[1], &at, shape) : NULL;
}

cleat_tensor *cleat_nn_llama_cached(cleat_graph *graph, cleat_tensor *tokens, cleat_tensor *positions, int64_t context,
                                    const cleat_llama *shape) {
    places at = {.positions = positions, .context = context};
    return tokens && positions ? decoder(graph, tokens, context, &at, shape) : NULL;
}

cleat_tensor *cleat_nn_llama_head(cleat_graph *graph, const cleat_llama *shape) {
    return table(graph, shape->tied ? "emb.weight" : "head.weight", shape);
}
