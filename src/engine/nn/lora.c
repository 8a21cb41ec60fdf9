/* Low-rank adapters of linear layers: which layers have them, their part of a graph, and merging on the host.
 *
 * An adapter is two more linear layers behind a frozen one, wherever a builder calls cleat_nn_lora. Parts
 * of a stacked projection (query and value of `att.qkv`) have adapters of their own, computed at once: B
 * is put on the diagonal of a small matrix of all parts (`block_diagonal`), and the activations are read
 * once. */
#include "nn/lora.h"

#include "graph/graph.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void cleat_nn_set_lora(cleat_graph *graph, const cleat_lora *lora) {
    graph->lora = lora;
}

/* --- which layers --- */

typedef struct stacked_layer {
    const char *component;
    cleat_lora_places places; /* all parts in use */
} stacked_layer;

/* Last components of the names of layers whose parts have names. */
static const stacked_layer stacked[] = {
    {"qkv", {3, 7, {"query", "key", "value"}}},
    {"kv", {2, 3, {"key", "value"}}},
    {"gate_up", {2, 3, {"gate", "up"}}},
    {"q", {1, 1, {"query"}}},
    {"k", {1, 1, {"key"}}},
    {"v", {1, 1, {"value"}}},
};

static const char *last_component(const char *prefix) {
    const char *dot = strrchr(prefix, '.');
    return dot ? dot + 1 : prefix;
}

/* Whether `word` [length] is the whole name, or its last components. */
static bool is_tail(const char *name, const char *word, size_t length) {
    const size_t size = strlen(name);
    if (size < length || strncmp(name + size - length, word, length) != 0) return false;
    return size == length || name[size - length - 1] == '.';
}

static bool is_word(const char *word, size_t length, const char *text) {
    return strlen(text) == length && strncmp(word, text, length) == 0;
}

/* Adds the adapters that one word selects. `named`: the parts of the layer, all in use, or the layer as a
 * whole. */
static void choose(const char *word, size_t length, const char *prefix, const cleat_lora_places *named,
                   cleat_lora_places *chosen) {
    if (is_tail(prefix, word, length)) {
        if (chosen->used == 0) *chosen = (cleat_lora_places){.parts = 1, .used = 1};
        return;
    }
    const bool all = is_word(word, length, "all-linear");
    for (int i = 0; i < named->parts; ++i) {
        if (!all && !(named->names[i] && is_word(word, length, named->names[i]))) continue;
        const unsigned used = chosen->parts == named->parts ? chosen->used : 0;
        *chosen = *named;
        chosen->used = used | 1u << i;
    }
}

cleat_lora_places cleat_lora_places_of(const char *layers, const char *prefix) {
    static const char separators[] = " ,";
    cleat_lora_places named = {.parts = 1, .used = 1}, chosen = {0};
    for (size_t i = 0; i < sizeof stacked / sizeof *stacked; ++i)
        if (strcmp(last_component(prefix), stacked[i].component) == 0) named = stacked[i].places;
    for (const char *word = layers + strspn(layers, separators); *word; word += strspn(word, separators)) {
        const size_t length = strcspn(word, separators);
        choose(word, length, prefix, &named, &chosen);
        word += length;
    }
    return chosen;
}

/* --- the graph --- */

static int count_of(unsigned used) {
    int count = 0;
    for (; used; used >>= 1) count += (int)(used & 1);
    return count;
}

static cleat_tensor *dropped(cleat_graph *graph, cleat_tensor *x, float rate) {
    if (rate <= 0) return x;
    cleat_tensor *rng = cleat_graph_find(graph, "rng");
    if (rng) return cleat_dropout(graph, x, rng, rate);
    cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "the dropout of adapters needs the input rng");
    return NULL;
}

cleat_tensor *cleat_nn_lora(cleat_graph *graph, const char *prefix, cleat_tensor *x, cleat_tensor *y) {
    const cleat_lora *lora = graph->lora;
    if (!lora || !x || !y || (lora->may && !lora->may(lora->user, prefix))) return y;
    const cleat_lora_places places = cleat_lora_places_of(lora->layers, prefix);
    if (!places.used) return y;
    const int64_t parts = count_of(places.used), fan_in = cleat_width(x), fan_out = cleat_width(y);
    const int64_t a_shape[2] = {parts * lora->rank, fan_in},
                  b_shape[2] = {parts * (fan_out / places.parts), lora->rank};
    const cleat_init uniform = {CLEAT_INIT_UNIFORM, 1.0f / sqrtf((float)fan_in)}, zero = {CLEAT_INIT_ZERO, 0};
    const cleat_block_diagonal_spec spec = {
        .places = places.parts, .used = places.used, .factor = lora->scale, .storage = cleat_autocast_storage(graph)};
    char name[CLEAT_NAME];
    if (fan_out % places.parts != 0) {
        cleat_graph_fail(graph, CLEAT_ERR_SHAPE, "'%s' has %lld outputs, no multiple of its %d parts", prefix,
                         (long long)fan_out, places.parts);
        return NULL;
    }
    snprintf(name, sizeof name, "%.48s.lora_A.weight", prefix);
    cleat_tensor *a = cleat_param(graph, name, 2, a_shape, uniform);
    snprintf(name, sizeof name, "%.48s.lora_B.weight", prefix);
    cleat_tensor *b = cleat_param(graph, name, 2, b_shape, zero);
    cleat_scope(graph, "%s.lora/", prefix);
    cleat_tensor *inner = cleat_linear(graph, dropped(graph, x, lora->dropout), a, NULL, NULL); /* [..., P rank] */
    return cleat_linear(graph, inner, cleat_block_diagonal(graph, b, &spec), NULL, y);
}

/* --- merging --- */

void cleat_lora_merge(const cleat_lora_places *places, int64_t rank, float scale, const float *a, const float *b,
                      int64_t fan_out, int64_t fan_in, float *weight) {
    const int64_t side = fan_out / places->parts;
    int64_t q = 0;
    for (int part = 0; part < places->parts; ++part) {
        if (!(places->used >> part & 1)) continue;
        for (int64_t d = 0; d < side; ++d)
            for (int64_t i = 0; i < fan_in; ++i) {
                double sum = 0;
                for (int64_t j = 0; j < rank; ++j)
                    sum += (double)b[(q * side + d) * rank + j] * (double)a[(q * rank + j) * fan_in + i];
                float *w = &weight[(part * side + d) * fan_in + i];
                *w = (float)((double)*w + (double)scale * sum);
            }
        ++q;
    }
}
