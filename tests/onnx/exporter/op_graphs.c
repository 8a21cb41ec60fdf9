/* The graphs, each a function of batch and length. */
#include "op_graphs.h"

#include <string.h>

#include "cleat/ops.h"

static cleat_tensor *x_of(cleat_graph *graph, int64_t batch, int64_t length, int64_t width) {
    return cleat_input(graph, "x", CLEAT_F32, 3, (const int64_t[]){batch, length, width});
}

static cleat_tensor *lengths_of(cleat_graph *graph, int64_t batch) {
    return cleat_input(graph, "lengths", CLEAT_I32, 1, &batch);
}

static cleat_tensor *matrix(cleat_graph *graph, const char *name, int64_t rows, int64_t columns) {
    return cleat_param(graph, name, 2, (const int64_t[]){rows, columns}, (cleat_init){CLEAT_INIT_NORMAL, 1});
}

static cleat_tensor *vector(cleat_graph *graph, const char *name, int64_t size) {
    return cleat_param(graph, name, 1, &size, (cleat_init){CLEAT_INIT_NORMAL, 1});
}

/* --- elements and shapes ---------------------------------------------------------------------------------------- */

static cleat_tensor *elements(cleat_graph *graph, int64_t batch, int64_t length) {
    cleat_tensor *x = x_of(graph, batch, length, 6);
    cleat_tensor *y = cleat_multiply(graph, cleat_sigmoid(graph, x), cleat_tanh(graph, x));
    y = cleat_subtract(graph, y, cleat_silu(graph, x));
    y = cleat_add(graph, y, cleat_relu(graph, x));
    return cleat_softmax(graph, cleat_gelu(graph, y));
}

static cleat_tensor *shapes(cleat_graph *graph, int64_t batch, int64_t length) {
    cleat_tensor *parts[3], *x = x_of(graph, batch, length, 12);
    if (!cleat_chunk(graph, x, 3, parts)) return NULL;
    x = cleat_concat(graph, (cleat_tensor *[]){parts[2], parts[0]}, 2); /* [B, L, 8] */
    x = cleat_slice(graph, x, 2, 1, 7);
    x = cleat_permute(graph, x, (const int[]){2, 0, 1}); /* [6, B, L] */
    return cleat_permute(graph, x, (const int[]){1, 2, 0});
}

/* Two dimensions of the last shape differ from the preceding tensor's. */
static cleat_tensor *reshapes(cleat_graph *graph, int64_t batch, int64_t length) {
    cleat_tensor *x = x_of(graph, batch, length, 6);
    x = cleat_relu(graph, cleat_reshape(graph, x, 2, (const int64_t[]){batch * length, 6}));
    x = cleat_tanh(graph, cleat_reshape(graph, x, 4, (const int64_t[]){batch, length, 2, 3}));
    return cleat_reshape(graph, x, 3, (const int64_t[]){batch, length * 2, 3});
}

/* The length after the token is L + 1, which is not a multiple, and so is fixed. */
static cleat_tensor *first_token(cleat_graph *graph, int64_t batch, int64_t length) {
    cleat_tensor *x = x_of(graph, batch, length, 6), *token = vector(graph, "token", 6);
    cleat_tensor *y = cleat_layer_scale(graph, x, vector(graph, "scale", 6), x);
    return cleat_prepend_token(graph, cleat_layer_scale(graph, y, vector(graph, "again", 6), NULL), token);
}

/* --- sequences -------------------------------------------------------------------------------------------------- */

static cleat_tensor *embeddings(cleat_graph *graph, int64_t batch, int64_t length) {
    cleat_tensor *tokens = cleat_input(graph, "tokens", CLEAT_I32, 2, (const int64_t[]){batch, length});
    cleat_tensor *x = cleat_embedding(graph, tokens, matrix(graph, "table", 9, 8), CLEAT_F32);
    return cleat_position_embedding(graph, x, matrix(graph, "positions", 40, 8), 2);
}

static cleat_tensor *waves(cleat_graph *graph, int64_t batch, int64_t length) {
    cleat_tensor *x = x_of(graph, batch, length, 16);
    return cleat_positional_encoding(graph, cleat_positional_encoding(graph, x, lengths_of(graph, batch)), NULL);
}

static cleat_tensor *self_attention(cleat_graph *graph, int64_t batch, int64_t length) {
    cleat_tensor *lengths = lengths_of(graph, batch);
    cleat_tensor *x = cleat_attention(graph, x_of(graph, batch, length, 48), NULL, 2); /* [B, L, 16] */
    return cleat_attention(graph, cleat_linear(graph, x, matrix(graph, "weight", 48, 16), NULL, NULL), lengths, 4);
}

static cleat_tensor *local_attention(cleat_graph *graph, int64_t batch, int64_t length) {
    cleat_tensor *lengths = lengths_of(graph, batch);
    cleat_tensor *x = cleat_local_attention(graph, x_of(graph, batch, length, 48), NULL, 2, 5); /* [B, L, 16] */
    x = cleat_linear(graph, x, matrix(graph, "weight", 48, 16), NULL, NULL);
    return cleat_local_attention(graph, x, lengths, 4, 6);
}

static cleat_tensor *cross_attention(cleat_graph *graph, int64_t batch, int64_t length) {
    cleat_tensor *x = x_of(graph, batch, length, 16);
    cleat_tensor *kv = cleat_slice(graph, cleat_permute(graph, x, (const int[]){0, 2, 1}), 1, 3, 9);
    kv = cleat_permute(graph, kv, (const int[]){0, 2, 1}); /* [B, L, 6] */
    kv = cleat_linear(graph, kv, matrix(graph, "kv", 32, 6), vector(graph, "bias", 32), NULL);
    return cleat_cross_attention(graph, x, kv, 2);
}

/* Heads that share keys, a window and a factor; packed sequences and padding. */
static cleat_tensor *causal_attention(cleat_graph *graph, int64_t batch, int64_t length) {
    cleat_tensor *starts = cleat_input(graph, "starts", CLEAT_I32, 2, (const int64_t[]){batch, length});
    cleat_tensor *x = cleat_causal_attention(graph, x_of(graph, batch, length, 48), NULL, NULL, 4, 1, 5, 0.25f);
    x = cleat_linear(graph, x, matrix(graph, "weight", 40, 32), NULL, NULL);
    return cleat_causal_attention(graph, x, NULL, starts, 6, 2, 0, 0);
}

static cleat_tensor *disentangled(cleat_graph *graph, int64_t batch, int64_t length, int buckets, int most,
                                  bool queries) {
    const cleat_disentangled_spec spec = {.heads = 2, .buckets = buckets, .max_relative_positions = most};
    const int64_t rows = 2 * (buckets ? buckets : most);
    cleat_tensor *x = x_of(graph, batch, length, 48);
    return cleat_disentangled_attention(graph, x, matrix(graph, "keys", rows, 16),
                                        queries ? matrix(graph, "queries", rows, 16) : NULL, lengths_of(graph, batch),
                                        &spec);
}

static cleat_tensor *disentangled_buckets(cleat_graph *graph, int64_t batch, int64_t length) {
    return disentangled(graph, batch, length, 8, 20, true);
}

static cleat_tensor *disentangled_distances(cleat_graph *graph, int64_t batch, int64_t length) {
    return disentangled(graph, batch, length, 0, 6, false);
}

static cleat_tensor *pools(cleat_graph *graph, int64_t batch, int64_t length) {
    cleat_tensor *x = x_of(graph, batch, length, 5), *lengths = lengths_of(graph, batch);
    return cleat_concat(graph,
                        (cleat_tensor *[]){cleat_mean_pool(graph, x, lengths), cleat_mean_pool(graph, x, NULL),
                                           cleat_select_row(graph, x, lengths, CLEAT_ROW_FIRST),
                                           cleat_select_row(graph, x, lengths, CLEAT_ROW_LAST),
                                           cleat_select_row(graph, x, NULL, CLEAT_ROW_FIRST),
                                           cleat_select_row(graph, x, NULL, CLEAT_ROW_LAST)},
                        6);
}

/* Two of three stacked parts have adapters. */
static cleat_tensor *adapters(cleat_graph *graph, int64_t batch, int64_t length) {
    const cleat_block_diagonal_spec spec = {.places = 3, .used = 5, .factor = 0.5f, .storage = CLEAT_F32};
    cleat_tensor *x = cleat_linear(graph, x_of(graph, batch, length, 7), matrix(graph, "a", 4, 7), NULL, NULL);
    return cleat_linear(graph, x, cleat_block_diagonal(graph, matrix(graph, "b", 10, 2), &spec), NULL, NULL);
}

/* --- images ----------------------------------------------------------------------------------------------------- */

static cleat_tensor *filters(cleat_graph *graph, const char *name, int64_t features, int64_t size, int64_t channels) {
    return cleat_param(graph, name, 4, (const int64_t[]){features, size, size, channels},
                       (cleat_init){CLEAT_INIT_NORMAL, 1});
}

static cleat_tensor *normalise(cleat_graph *graph, const char *name, cleat_tensor *x, cleat_tensor *residual,
                               int64_t channels) {
    const cleat_batch_norm_spec spec = {.gamma = vector(graph, "gamma", channels),
                                        .beta = vector(graph, "beta", channels),
                                        .residual = residual,
                                        .relu = residual != NULL,
                                        .eps = 1e-3f};
    return cleat_batch_norm_inference(graph, x, &spec, cleat_running_statistics(graph, name, channels));
}

static cleat_tensor *image_of(cleat_graph *graph, int64_t batch) {
    return cleat_input(graph, "image", CLEAT_F32, 4, (const int64_t[]){batch, 17, 14, 3});
}

static cleat_tensor *images(cleat_graph *graph, int64_t batch, int64_t length) {
    (void)length;
    cleat_tensor *x = cleat_conv2d(graph, image_of(graph, batch), filters(graph, "c1", 8, 3, 3), vector(graph, "b1", 8),
                                   2, 1); /* [B, 9, 7, 8] */
    x = normalise(graph, "n1", x, x, 8);
    x = cleat_max_pool(graph, x, 3, 2, 1); /* [B, 5, 4, 8] */
    x = cleat_average_pool(graph, cleat_silu(graph, x), 3, 1, 1);
    x = cleat_resize(graph, x, 7, 3);
    x = cleat_depthwise_conv2d(
        graph, x, cleat_param(graph, "d", 3, (const int64_t[]){3, 5, 8}, (cleat_init){CLEAT_INIT_NORMAL, 1}),
        vector(graph, "b2", 8));
    x = cleat_layer_norm(graph, x, vector(graph, "g", 8), vector(graph, "b3", 8), 1e-5f);
    return cleat_depth_to_space(graph, cleat_gelu(graph, x), 2); /* [B, 14, 6, 2] */
}

/* Batch normalisation of vectors and sequences; a mean over all pixels. */
static cleat_tensor *norms(cleat_graph *graph, int64_t batch, int64_t length) {
    cleat_tensor *x = normalise(graph, "sequence", x_of(graph, batch, length, 8), NULL, 8);
    return normalise(graph, "vector", cleat_mean_pool(graph, x, NULL), NULL, 8);
}

/* --- the list --------------------------------------------------------------------------------------------------- */

typedef struct op_graph {
    const char *name;
    cleat_tensor *(*build)(cleat_graph *graph, int64_t batch, int64_t length);
    int64_t length;
} op_graph;

static const op_graph graphs[] = {
    {"elements", elements, 11},
    {"shapes", shapes, 11},
    {"reshapes", reshapes, 11},
    {"first_token", first_token, 38},
    {"adapters", adapters, 11},
    {"embeddings", embeddings, 11},
    {"past_the_positions", embeddings, 45}, /* of 40 */
    {"waves", waves, 3001},
    {"self_attention", self_attention, 11},
    {"local_attention", local_attention, 11},
    {"cross_attention", cross_attention, 11},
    {"causal_attention", causal_attention, 11},
    {"disentangled_buckets", disentangled_buckets, 43},
    {"disentangled_distances", disentangled_distances, 19},
    {"pools", pools, 11},
    {"images", images, 11},
    {"norms", norms, 11},
};

static const op_graph *current;

static void build(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch, int64_t length,
                  cleat_model_graph *built) {
    (void)model, (void)mode;
    cleat_tensor *y = current->build(graph, batch, length);
    cleat_retain(graph, y);
    *built = (cleat_model_graph){.output = y};
}

static const char *const terms[] = {"none"};
static const cleat_model_class op_graph_class = {.name = "op_graph", .terms = terms, .n_terms = 1, .build = build};
static const cleat_model op_graph_model = {.type = &op_graph_class};

static const op_graph *find(const char *name) {
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; ++i)
        if (strcmp(graphs[i].name, name) == 0) return &graphs[i];
    return NULL;
}

const cleat_model *op_graph_find(const char *name) {
    current = find(name);
    return current ? &op_graph_model : NULL;
}

const char *op_graph_name(size_t i) {
    return i < sizeof graphs / sizeof *graphs ? graphs[i].name : NULL;
}

int64_t op_graph_length(const char *name) {
    return find(name)->length;
}
