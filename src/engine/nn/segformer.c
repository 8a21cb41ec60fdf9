/* The stages, blocks and decoder of a SegFormer. */
#include "nn/segformer.h"

#include "graph/graph.h"
#include "graph/recompute.h"
#include "nn/transformer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A name such as "st.1.0.att"; each name is used before the next one is made. */
typedef struct layer_name {
    char text[CLEAT_NAME];
} layer_name;

static const char *in_block(layer_name *name, int stage, int64_t block, const char *part) {
    snprintf(name->text, sizeof name->text, "st.%d.%lld.%s", stage, (long long)block, part);
    return name->text;
}
static const char *in_stage(layer_name *name, const char *part, int stage) {
    snprintf(name->text, sizeof name->text, "%s.%d", part, stage);
    return name->text;
}

/* [B, H, W, D] -> [B, H W, D] */
static cleat_tensor *as_sequence(cleat_graph *graph, cleat_tensor *x) {
    if (!x) return NULL;
    const int64_t shape[3] = {x->shape[0], x->shape[1] * x->shape[2], x->shape[3]};
    return cleat_reshape(graph, x, 3, shape);
}
/* [B, H W, D] -> [B, H, W, D], with H and W of `like` */
static cleat_tensor *as_image(cleat_graph *graph, cleat_tensor *x, const cleat_tensor *like) {
    if (!x) return NULL;
    const int64_t shape[4] = {like->shape[0], like->shape[1], like->shape[2], cleat_width(x)};
    return cleat_reshape(graph, x, 4, shape);
}

/* x + out(attention of all positions to the reduced map). x, normed [B, H, W, D] -> [B, H, W, D] */
static cleat_tensor *attend(cleat_graph *graph, int stage, int64_t block, cleat_tensor *x, cleat_tensor *normed,
                            const cleat_segformer *shape) {
    layer_name name;
    const int64_t width = shape->width[stage], reduction = shape->reduction[stage];
    cleat_tensor *seen = normed;
    cleat_tensor *q =
        cleat_nn_linear(graph, in_block(&name, stage, block, "att.q"), as_sequence(graph, normed), width, NULL);
    if (reduction > 1) {
        const cleat_conv_layer reduce = {.features = width, .kernel = reduction, .stride = reduction, .bias = true};
        seen = cleat_nn_conv(graph, in_block(&name, stage, block, "att.red"), seen, &reduce);
        seen = cleat_nn_layer_norm(graph, in_block(&name, stage, block, "att.n"), seen);
    }
    cleat_tensor *kv =
        cleat_nn_linear(graph, in_block(&name, stage, block, "att.kv"), as_sequence(graph, seen), 2 * width, NULL);
    cleat_scope(graph, "%s/", in_block(&name, stage, block, "att"));
    cleat_tensor *y = cleat_cross_attention(graph, q, kv, (int)shape->heads[stage]); /* [B, H W, D] */
    return cleat_nn_linear(graph, in_block(&name, stage, block, "att.out"), as_image(graph, y, x), width, x);
}

/* [B, H, W, D] -> [B, H, W, D] */
static cleat_tensor *mix_block(cleat_graph *graph, int stage, int64_t block, cleat_tensor *x,
                               const cleat_segformer *shape) {
    layer_name name;
    const int64_t width = shape->width[stage];
    if (!x) return NULL;
    cleat_tensor *y = cleat_nn_layer_norm(graph, in_block(&name, stage, block, "n1"), x);
    x = attend(graph, stage, block, x, y, shape);
    y = cleat_nn_layer_norm(graph, in_block(&name, stage, block, "n2"), x);
    y = cleat_nn_linear(graph, in_block(&name, stage, block, "f1"), y, shape->expansion[stage] * width, NULL);
    y = cleat_nn_depthwise_conv2d(graph, in_block(&name, stage, block, "dw"), y, 3);
    y = cleat_gelu(graph, y);
    return cleat_nn_linear(graph, in_block(&name, stage, block, "f2"), y, width, x);
}

/* Overlapping patch embedding. [B, H, W, C] -> [B, h, w, D] */
static cleat_tensor *embed(cleat_graph *graph, int stage, cleat_tensor *x, const cleat_segformer *shape) {
    layer_name name;
    const cleat_conv_layer patches = {.features = shape->width[stage],
                                      .kernel = shape->patch[stage],
                                      .stride = shape->stride[stage],
                                      .padding = shape->patch[stage] / 2,
                                      .bias = true};
    x = cleat_nn_conv(graph, in_stage(&name, "pe", stage), x, &patches);
    return cleat_nn_layer_norm(graph, in_stage(&name, "pn", stage), x);
}

/* Computes fuse over the concatenated maps, all resized to the size of the first one. A linear layer and a
 * resize commute: each map is multiplied by its part of the weight while it is small, and the results are
 * added, which is a third of the work. */
static cleat_tensor *fuse_maps(cleat_graph *graph, cleat_tensor *const *maps, const cleat_segformer *shape) {
    enum { STAGES = CLEAT_SEGFORMER_STAGES };
    const int64_t weight_shape[2] = {shape->decoder, STAGES * shape->decoder};
    /* As in cleat_nn_conv without a bias. */
    const cleat_init init = {CLEAT_INIT_NORMAL, sqrtf(2.0f / (float)shape->decoder)};
    cleat_tensor *weight = cleat_param(graph, "fuse.weight", 2, weight_shape, init), *parts[STAGES], *y = NULL;
    cleat_scope(graph, "fuse/");
    if (!cleat_chunk(graph, weight, STAGES, parts)) return NULL;
    for (int i = 0; i < STAGES; ++i) {
        cleat_tensor *part = parts[shape->descending ? STAGES - 1 - i : i];
        cleat_tensor *map = cleat_linear(graph, maps[i], part, NULL, NULL);
        if (!map) return NULL;
        y = i == 0 ? map : cleat_add(graph, y, cleat_resize(graph, map, maps[0]->shape[1], maps[0]->shape[2]));
    }
    return y;
}

/* maps [stages] -> logits [b, h, w, classes] with height and width of the first map */
static cleat_tensor *decode(cleat_graph *graph, cleat_tensor *const *maps, const cleat_segformer *shape,
                            cleat_tensor *rng, const cleat_norm_mode *mode) {
    layer_name name;
    cleat_tensor *parts[CLEAT_SEGFORMER_STAGES];
    const cleat_conv_layer classify = {.features = shape->classes, .kernel = 1, .stride = 1, .bias = true};
    for (int i = 0; i < CLEAT_SEGFORMER_STAGES; ++i)
        parts[i] = cleat_nn_linear(graph, in_stage(&name, "dec", i), maps[i], shape->decoder, NULL);
    cleat_tensor *y = cleat_nn_batch_norm(graph, "bn", fuse_maps(graph, parts, shape), NULL, true, 1, mode);
    if (shape->dropout > 0) y = cleat_dropout(graph, y, rng, shape->dropout);
    return cleat_nn_conv(graph, "cls", y, &classify);
}

cleat_tensor *cleat_nn_segformer(cleat_graph *graph, cleat_tensor *x, const cleat_segformer *shape, cleat_tensor *rng,
                                 const cleat_norm_mode *mode) {
    layer_name name;
    cleat_tensor *maps[CLEAT_SEGFORMER_STAGES];
    if (!x) return NULL;
    const int64_t height = x->shape[1], width = x->shape[2];
    for (int stage = 0; stage < CLEAT_SEGFORMER_STAGES; ++stage) {
        cleat_segment(graph);
        x = embed(graph, stage, x, shape);
        for (int64_t block = 0; block < shape->depth[stage]; ++block) {
            cleat_segment(graph);
            x = mix_block(graph, stage, block, x, shape);
        }
        x = maps[stage] = cleat_nn_layer_norm(graph, in_stage(&name, "on", stage), x);
    }
    cleat_segment(graph);
    x = decode(graph, maps, shape, rng, mode);
    if (x) snprintf(x->name, sizeof x->name, "logits_small"); /* the output of published networks */
    return x && (x->shape[1] != height || x->shape[2] != width) ? cleat_resize(graph, x, height, width) : x;
}

/* --- depths --- */

/* Number of blocks before `stage`. */
static int64_t blocks_before(const cleat_segformer *shape, int64_t stage) {
    int64_t blocks = 0;
    for (int64_t i = 0; i < stage; ++i) blocks += shape->depth[i];
    return blocks;
}

int64_t cleat_nn_segformer_layers(const cleat_segformer *shape) {
    return blocks_before(shape, CLEAT_SEGFORMER_STAGES);
}

int64_t cleat_nn_segformer_layer_of(const cleat_segformer *shape, const char *param) {
    static const struct {
        const char *part;
        int position; /* before the blocks of its stage, one of them, after them */
    } parts[] = {{"pe.", 0}, {"pn.", 0}, {"st.", 1}, {"on.", 2}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i) {
        if (strncmp(param, parts[i].part, 3) != 0) continue;
        char *end = NULL;
        const int64_t stage = strtoll(param + 3, &end, 10);
        if (stage < 0 || stage >= CLEAT_SEGFORMER_STAGES || *end != '.') break;
        const int64_t before = blocks_before(shape, stage);
        if (parts[i].position == 2) return before + shape->depth[stage];
        if (parts[i].position == 1) return before + 1 + strtoll(end + 1, NULL, 10);
        return stage == 0 ? 0 : before + 1;
    }
    return cleat_nn_segformer_layers(shape) + 1;
}
