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
    cleat_tensor *gamma = cleat_param(graph, name, 1, &width, (cleat_init){CLEAT_INIT_CONSTANT, 1}), *beta = NULL;
    snprintf(name, sizeof name, "%.50s.bias", prefix);
    if (shape->learned) beta = cleat_param(graph, name, 1, &width, (cleat_init){CLEAT_INIT_ZERO, 0});
    cleat_scope(graph, "%s/", prefix);
    return beta ? cleat_layer_norm(graph, x, gamma, beta, shape->norm_eps)
                : cleat_rms_norm(graph, x, gamma, shape->norm_eps);
}

/* factor x; 0: x */
static cleat_tensor *times(cleat_graph *graph, const char *name, cleat_tensor *x, float factor) {
    if (!x || factor == 0) return x;
    const int64_t width = cleat_width(x);
    return cleat_layer_scale(graph, x, cleat_constant(graph, name, 1, &width, factor), NULL);
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
    cleat_tensor *angles, *local_angles, *starts, *positions;
    int64_t context; /* rows of the cache; 0: there is none */
} places;

/* The window of a block. */
static int64_t window_of(int64_t layer, const cleat_llama *shape) {
    return shape->global_every && (layer + 1) % shape->global_every == 0 ? 0 : shape->window;
}

/* Attends to all tokens that are in the cache of the block. */
static cleat_tensor *attend_cached(cleat_graph *graph, int64_t layer, cleat_tensor *q, cleat_tensor *kv,
                                   const places *at, const cleat_llama *shape) {
    if (!kv) return NULL;
    const int64_t cache_shape[] = {kv->shape[0], at->context, kv->shape[2]};
    cleat_tensor *cache =
        cleat_state(graph, part_of(layer, "cache").text, cleat_autocast_storage(graph), 3, cache_shape);
    /* That operation has the usual factor of the scores. */
    q = times(graph, "att.q_factor", q, shape->score_factor * sqrtf((float)shape->head));
    return cleat_cached_attention(graph, q, kv, at->positions, cache, (int)shape->heads, (int)shape->kv_heads,
                                  (int)window_of(layer, shape));
}

/* Queries, keys and values are one layer; they do not turn. */
static cleat_tensor *attention_gpt2(cleat_graph *graph, int64_t layer, cleat_tensor *x, const places *at,
                                    const cleat_llama *shape) {
    const int heads = (int)shape->heads;
    cleat_tensor *qkv = linear(graph, part_of(layer, "att.c_attn").text, x, 3 * shape->d_model, INIT_STD, true, NULL);
    cleat_scope(graph, "%s/", part_of(layer, "att").text);
    if (!at->context)
        return cleat_causal_attention(graph, qkv, NULL, at->starts, heads, heads, (int)window_of(layer, shape), 0);
    return attend_cached(graph, layer, cleat_slice(graph, qkv, 2, 0, shape->d_model),
                         cleat_slice(graph, qkv, 2, shape->d_model, 3 * shape->d_model), at, shape);
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
    const int window = (int)window_of(layer, shape);
    cleat_tensor *angles = window && at->local_angles ? at->local_angles : at->angles;
    cleat_scope(graph, "%s/", part_of(layer, "att").text);
    q = cleat_rotary(graph, q, angles, at->positions, heads, heads, false);
    kv = cleat_rotary(graph, kv, angles, at->positions, 2 * kv_heads, kv_heads, false);
    if (at->context) return attend_cached(graph, layer, q, kv, at, shape);
    return cleat_causal_attention(graph, q, kv, at->starts, heads, kv_heads, window, shape->score_factor);
}

/* Adds the output of a branch, a linear layer, to x. */
static cleat_tensor *add_branch(cleat_graph *graph, int64_t layer, const char *part, const char *norm_part,
                                cleat_tensor *y, cleat_tensor *x, const cleat_llama *shape) {
    const float std = INIT_STD / sqrtf(2.0f * (float)shape->layers);
    const bool is_normed = shape->end_norms;
    y = linear(graph, part_of(layer, part).text, y, shape->d_model, std, shape->learned, is_normed ? NULL : x);
    return is_normed ? cleat_add(graph, x, norm(graph, part_of(layer, norm_part).text, y, shape)) : y;
}

static cleat_tensor *block(cleat_graph *graph, int64_t layer, cleat_tensor *x, const places *at,
                           const cleat_llama *shape) {
    cleat_tensor *y = norm(graph, part_of(layer, "n1").text, x, shape);
    y = shape->learned ? attention_gpt2(graph, layer, y, at, shape) : attention(graph, layer, y, at, shape);
    x = add_branch(graph, layer, "att.out", "n1_end", y, x, shape);
    y = norm(graph, part_of(layer, "n2").text, x, shape);
    if (shape->learned)
        y = cleat_gelu_tanh(graph, linear(graph, part_of(layer, "mlp.up").text, y, shape->d_ff, INIT_STD, true, NULL));
    else
        y = cleat_gated(graph,
                        linear(graph, part_of(layer, "mlp.gate_up").text, y, 2 * shape->d_ff, INIT_STD, false, NULL),
                        shape->gate);
    return add_branch(graph, layer, "mlp.down", "n2_end", y, x, shape);
}

static cleat_tensor *table(cleat_graph *graph, const char *name, int64_t rows, const cleat_llama *shape) {
    const int64_t table_shape[2] = {rows, shape->d_model};
    return cleat_param(graph, name, 2, table_shape, (cleat_init){CLEAT_INIT_NORMAL, INIT_STD});
}

static cleat_tensor *decoder(cleat_graph *graph, cleat_tensor *tokens, int64_t length, places *at,
                             const cleat_llama *shape) {
    cleat_scope(graph, "%s/", "emb");
    const cleat_dtype storage = cleat_autocast_storage(graph);
    const cleat_rotary_angles local = {.width = shape->head, .base = shape->local_base, .factor = 1};
    cleat_tensor *x = cleat_embedding(graph, tokens, table(graph, "emb.weight", shape->vocabulary, shape), storage);
    x = times(graph, "emb.factor", x, shape->embedding_factor);
    if (shape->learned) {
        cleat_tensor *rows = table(graph, "emb.position", shape->learned, shape);
        x = cleat_add(graph, x, cleat_embedding(graph, at->positions, rows, storage));
    } else {
        at->angles = cleat_rotary_table(graph, length, &shape->angles);
    }
    if (local.base > 0) at->local_angles = cleat_rotary_table(graph, length, &local);
    for (int64_t layer = 0; layer < shape->layers; ++layer) {
        cleat_segment(graph);
        x = block(graph, layer, x, at, shape);
    }
    cleat_segment(graph);
    return norm(graph, "norm", x, shape);
}

cleat_tensor *cleat_nn_llama(cleat_graph *graph, cleat_tensor *tokens, cleat_tensor *starts, cleat_tensor *positions,
                             const cleat_llama *shape) {
    places at = {.starts = starts, .positions = positions};
    return tokens ? decoder(graph, tokens, tokens->shape[1], &at, shape) : NULL;
}

cleat_tensor *cleat_nn_llama_cached(cleat_graph *graph, cleat_tensor *tokens, cleat_tensor *positions, int64_t context,
                                    const cleat_llama *shape) {
    places at = {.positions = positions, .context = context};
    return tokens && positions ? decoder(graph, tokens, context, &at, shape) : NULL;
}

cleat_tensor *cleat_nn_llama_head(cleat_graph *graph, const cleat_llama *shape) {
    return table(graph, shape->tied ? "emb.weight" : "head.weight", shape->vocabulary, shape);
}
