/* ResNets of basic blocks (18, 34) and of bottlenecks (50, 101, 152), and similar networks. */
#include "nn/resnet.h"

#include "graph/graph.h"
#include "graph/recompute.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct residual_block {
    int64_t number;                  /* from 1, over all stages */
    int64_t width, features, stride; /* channels of the 3 x 3 convolutions and of the result */
    float last_gamma;
    const cleat_norm_mode *mode;
} residual_block;

/* A name such as "b3.c1"; each name is used before the next one is made. */
typedef struct part_name {
    char text[CLEAT_NAME];
} part_name;

static const char *in_block(part_name *name, const residual_block *block, const char *part) {
    snprintf(name->text, sizeof name->text, "b%lld.%s", (long long)block->number, part);
    return name->text;
}

static cleat_tensor *convolve(cleat_graph *graph, const char *prefix, cleat_tensor *x, int64_t features, int64_t kernel,
                              int64_t stride) {
    const cleat_conv_layer layer = {.features = features, .kernel = kernel, .stride = stride, .padding = kernel / 2};
    return cleat_nn_conv(graph, prefix, x, &layer);
}

static cleat_tensor *normalise(cleat_graph *graph, const char *prefix, cleat_tensor *x, const residual_block *block) {
    return cleat_nn_batch_norm(graph, prefix, x, NULL, true, 1, block->mode);
}

/* x itself, or a projection of it if the block changes the shape. [B, H, W, C] -> [B, h, w, features] */
static cleat_tensor *shortcut_of(cleat_graph *graph, cleat_tensor *x, const residual_block *block) {
    part_name name;
    if (!x || (block->stride == 1 && cleat_width(x) == block->features)) return x;
    x = convolve(graph, in_block(&name, block, "sc.0"), x, block->features, 1, block->stride);
    return cleat_nn_batch_norm(graph, in_block(&name, block, "sc.1"), x, NULL, false, 1, block->mode);
}

/* y = relu(b2(c2(relu(b1(c1(x))))) + shortcut). [B, H, W, C] -> [B, H/stride, W/stride, width] */
static cleat_tensor *basic_block(cleat_graph *graph, cleat_tensor *x, const residual_block *block) {
    part_name name;
    cleat_tensor *y = convolve(graph, in_block(&name, block, "c1"), x, block->width, 3, block->stride);
    y = normalise(graph, in_block(&name, block, "b1"), y, block);
    y = convolve(graph, in_block(&name, block, "c2"), y, block->width, 3, 1);
    cleat_tensor *shortcut = shortcut_of(graph, x, block);
    return cleat_nn_batch_norm(graph, in_block(&name, block, "b2"), y, shortcut, true, block->last_gamma, block->mode);
}

/* y = relu(b3(c3(relu(b2(c2(relu(b1(c1(x)))))))) + shortcut). [B, H, W, C] -> [B, H/stride, W/stride, features] */
static cleat_tensor *bottleneck(cleat_graph *graph, cleat_tensor *x, const residual_block *block) {
    part_name name;
    cleat_tensor *y = convolve(graph, in_block(&name, block, "c1"), x, block->width, 1, 1);
    y = normalise(graph, in_block(&name, block, "b1"), y, block);
    y = convolve(graph, in_block(&name, block, "c2"), y, block->width, 3, block->stride);
    y = normalise(graph, in_block(&name, block, "b2"), y, block);
    y = convolve(graph, in_block(&name, block, "c3"), y, block->features, 1, 1);
    cleat_tensor *shortcut = shortcut_of(graph, x, block);
    return cleat_nn_batch_norm(graph, in_block(&name, block, "b3"), y, shortcut, true, block->last_gamma, block->mode);
}

cleat_tensor *cleat_nn_resnet(cleat_graph *graph, cleat_tensor *x, const cleat_resnet *shape,
                              const cleat_norm_mode *mode) {
    residual_block block = {.last_gamma = shape->last_gamma, .mode = mode};
    cleat_segment(graph);
    x = convolve(graph, "stem", x, shape->stem_width, shape->large_stem ? 7 : 3, shape->large_stem ? 2 : 1);
    x = cleat_nn_batch_norm(graph, "bn", x, NULL, true, 1, mode);
    if (shape->large_stem) x = cleat_max_pool(graph, x, 3, 2, 1);
    for (int64_t stage = 0; stage < shape->stages; ++stage) {
        block.width = shape->widths[stage];
        block.features = shape->expansion * block.width;
        for (int64_t i = 0; i < shape->blocks[stage]; ++i) {
            ++block.number;
            block.stride = stage > 0 && i == 0 ? 2 : 1;
            cleat_segment(graph);
            x = shape->expansion > 1 ? bottleneck(graph, x, &block) : basic_block(graph, x, &block);
        }
    }
    cleat_segment(graph);
    return x;
}

int64_t cleat_nn_resnet_layers(const cleat_resnet *shape) {
    int64_t blocks = 0;
    for (int64_t stage = 0; stage < shape->stages; ++stage) blocks += shape->blocks[stage];
    return blocks;
}

int64_t cleat_nn_resnet_layer_of(const cleat_resnet *shape, const char *param) {
    char *end = NULL;
    if (strncmp(param, "stem.", 5) == 0 || strncmp(param, "bn.", 3) == 0) return 0;
    const long long number = param[0] == 'b' ? strtoll(param + 1, &end, 10) : 0;
    return number > 0 && *end == '.' ? number : cleat_nn_resnet_layers(shape) + 1;
}
