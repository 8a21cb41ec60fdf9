/* The stem, stages and blocks of a ConvNeXt. */
#include "nn/convnext.h"

#include "graph/graph.h"
#include "graph/recompute.h"
#include "nn/conv.h"
#include "nn/transformer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNEL = 7, EXPANSION = 4 };
static const float INITIAL_SCALE = 1e-6f;

/* A name such as "st.1.0.dw"; each name is used before the next one is made. */
typedef struct layer_name {
    char text[CLEAT_NAME];
} layer_name;

static const char *in_block(layer_name *name, int64_t stage, int64_t block, const char *part) {
    snprintf(name->text, sizeof name->text, "st.%lld.%lld.%s", (long long)stage, (long long)block, part);
    return name->text;
}
static const char *in_stage(layer_name *name, const char *part, int64_t stage) {
    snprintf(name->text, sizeof name->text, "%s.%lld", part, (long long)stage);
    return name->text;
}

/* [B, H, W, C] -> [B, H/size, W/size, features] */
static cleat_tensor *patches(cleat_graph *graph, const char *prefix, cleat_tensor *x, int64_t features, int64_t size) {
    const cleat_conv_layer layer = {.features = features, .kernel = size, .stride = size, .bias = true};
    return cleat_nn_conv(graph, prefix, x, &layer);
}

/* y = x + gamma f2(gelu(f1(n(dw(x))))). [B, H, W, D] -> [B, H, W, D] */
static cleat_tensor *block(cleat_graph *graph, int64_t stage, int64_t number, cleat_tensor *x,
                           const cleat_convnext *shape) {
    layer_name name;
    const int64_t width = shape->widths[stage];
    cleat_tensor *y = cleat_nn_depthwise_conv2d(graph, in_block(&name, stage, number, "dw"), x, KERNEL);
    y = cleat_nn_layer_norm_eps(graph, in_block(&name, stage, number, "n"), y, shape->norm_eps);
    y = cleat_nn_linear(graph, in_block(&name, stage, number, "f1"), y, EXPANSION * width, NULL);
    y = cleat_gelu(graph, y);
    y = cleat_nn_linear(graph, in_block(&name, stage, number, "f2"), y, width, NULL);
    cleat_tensor *gamma = cleat_param(graph, in_block(&name, stage, number, "gamma"), 1, &width,
                                      (cleat_init){CLEAT_INIT_CONSTANT, INITIAL_SCALE});
    return cleat_layer_scale(graph, y, gamma, x);
}

cleat_tensor *cleat_nn_convnext(cleat_graph *graph, cleat_tensor *x, const cleat_convnext *shape) {
    layer_name name;
    cleat_segment(graph);
    x = patches(graph, "pe", x, shape->widths[0], 4);
    x = cleat_nn_layer_norm_eps(graph, "pn", x, shape->norm_eps);
    for (int64_t stage = 0; stage < shape->stages; ++stage) {
        if (stage > 0) {
            cleat_segment(graph);
            x = cleat_nn_layer_norm_eps(graph, in_stage(&name, "dn", stage), x, shape->norm_eps);
            x = patches(graph, in_stage(&name, "dc", stage), x, shape->widths[stage], 2);
        }
        for (int64_t i = 0; i < shape->blocks[stage]; ++i) {
            cleat_segment(graph);
            x = block(graph, stage, i, x, shape);
        }
    }
    cleat_segment(graph);
    if (!x) return NULL;
    const int64_t rows[3] = {x->shape[0], x->shape[1] * x->shape[2], x->shape[3]};
    x = cleat_mean_pool(graph, cleat_reshape(graph, x, 3, rows), NULL); /* [B, D] */
    return cleat_nn_layer_norm_eps(graph, "norm", x, shape->last_norm_eps);
}

int64_t cleat_nn_convnext_layers(const cleat_convnext *shape) {
    int64_t blocks = 0;
    for (int64_t stage = 0; stage < shape->stages; ++stage) blocks += shape->blocks[stage];
    return blocks;
}

int64_t cleat_nn_convnext_layer_of(const cleat_convnext *shape, const char *param) {
    const bool in_a_block = strncmp(param, "st.", 3) == 0;
    char *end = (char *)param + 3;
    if (strncmp(param, "pe.", 3) == 0 || strncmp(param, "pn.", 3) == 0) return 0;
    if (!in_a_block && strncmp(param, "dn.", 3) != 0 && strncmp(param, "dc.", 3) != 0)
        return cleat_nn_convnext_layers(shape) + (strncmp(param, "norm.", 5) != 0);
    const int64_t stage = strtoll(end, &end, 10);
    int64_t number = 1;
    for (int64_t i = 0; i < stage; ++i) number += shape->blocks[i];
    return in_a_block ? number + strtoll(end + 1, NULL, 10) : number;
}
