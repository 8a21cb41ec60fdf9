/* Residual networks of timm and torchvision, which have the same names. */
#include "models/published/images.h"

#include <string.h>

enum { STAGES = CLEAT_PUBLISHED_STAGES };

/* The rank 4 is of 1 x 1 convolutions with stride 1, which are matrices here. */
static const cleat_weight_row names[] = {
    {.param = "stem", .sources = {"conv1"}, .rank = 4},
    {.param = "bn", .sources = {"bn1"}},
    {.param = "b*.c1", .sources = {"layer*.*.conv1"}, .rank = 4},
    {.param = "b*.b1", .sources = {"layer*.*.bn1"}},
    {.param = "b*.c2", .sources = {"layer*.*.conv2"}, .rank = 4},
    {.param = "b*.b2", .sources = {"layer*.*.bn2"}},
    {.param = "b*.c3", .sources = {"layer*.*.conv3"}, .rank = 4},
    {.param = "b*.b3", .sources = {"layer*.*.bn3"}},
    {.param = "b*.sc.0", .sources = {"layer*.*.downsample.0"}, .rank = 4},
    {.param = "b*.sc.1", .sources = {"layer*.*.downsample.1"}},
    {.param = "fc", .sources = {"fc"}, .head = true},
    {.param = NULL},
};

static const char *const ignored[] = {"*.num_batches_tracked", NULL};

static bool matches(const cleat_weights *weights) {
    static const char *const known[] = {"resnet", "wide_resnet", NULL};
    if (cleat_weights_config_text(weights, "architecture")) return cleat_published_is(weights, known);
    return cleat_weights_find(weights, "layer1.0.conv1.weight") != NULL;
}

static size_t renumber(const cleat_model *model, size_t count, int64_t numbers[CLEAT_WEIGHT_NUMBERS]) {
    if (count != 1) return count;
    cleat_resnet_place(model, numbers[0], &numbers[0], &numbers[1]);
    ++numbers[0];
    return 2;
}

typedef struct found {
    int64_t stages, blocks[STAGES], widths[STAGES], expansion, stem_width, kernel;
} found;

static cleat_status read_stages(const cleat_weights *weights, found *f, cleat_error *error) {
    for (; f->stages < STAGES; ++f->stages) {
        const long long stage = f->stages + 1;
        int64_t *blocks = &f->blocks[f->stages];
        while (cleat_published_find(weights, "layer%lld.%lld.conv2.weight", stage, (long long)*blocks)) ++*blocks;
        if (!*blocks) break;
        const int64_t width = cleat_published_extent(weights, 0, "layer%lld.0.conv2.weight", stage);
        const int64_t output = cleat_published_extent(weights, 0, "layer%lld.0.conv3.weight", stage);
        if (cleat_published_extent(weights, 1, "layer%lld.0.conv2.weight", stage) != width ||
            (output && output % width))
            return cleat_published_refuse(weights, error,
                                          "its blocks are neither basic blocks nor bottlenecks of plain convolutions "
                                          "(layer%lld.0.conv2.weight)",
                                          stage);
        f->widths[f->stages] = width;
        f->expansion = output ? output / width : 1;
    }
    return CLEAT_OK;
}

static cleat_status read_network(const cleat_weights *weights, found *f, cleat_error *error) {
    f->stem_width = cleat_published_extent(weights, 0, "conv1.weight");
    f->kernel = cleat_published_extent(weights, 2, "conv1.weight");
    if (!f->stem_width)
        return cleat_published_refuse(weights, error, "its stem is not one convolution (conv1.weight is missing)");
    if (f->kernel != 7 && f->kernel != 3)
        return cleat_published_refuse(weights, error, "the convolution of its stem is %lld x %lld; 7 x 7 and 3 x 3 are",
                                      (long long)f->kernel, (long long)f->kernel);
    if (cleat_published_find(weights, "layer1.0.se.fc1.weight") ||
        cleat_published_find(weights, "layer1.0.se.conv.weight"))
        return cleat_published_refuse(weights, error, "its blocks have squeeze and excitation");
    cleat_status status = read_stages(weights, f, error);
    if (status || f->stages > 0) return status;
    return cleat_published_refuse(weights, error, "it has no blocks (layer1.0.conv2.weight is missing)");
}

/* The depth by name whose network it is; NULL: none. */
static const char *known_depth(const found *f) {
    static const struct {
        const char *depth;
        int64_t blocks[STAGES], expansion;
    } known[] = {{"18", {2, 2, 2, 2}, 1},
                 {"34", {3, 4, 6, 3}, 1},
                 {"50", {3, 4, 6, 3}, 4},
                 {"101", {3, 4, 23, 3}, 4},
                 {"152", {3, 8, 36, 3}, 4}};
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
        if (f->expansion == known[i].expansion && memcmp(f->blocks, known[i].blocks, sizeof f->blocks) == 0)
            return known[i].depth;
    return NULL;
}

static bool doubles(const found *f) {
    for (int64_t i = 0; i < f->stages; ++i)
        if (f->widths[i] != f->stem_width << i) return false;
    return true;
}

static cleat_status configure(const cleat_weights *weights, const cleat_setting_sink *sink, cleat_error *error) {
    static const char blocks[] = "blocks of layer*", channels[] = "channels of layer*.0.conv2";
    found f = {0};
    const char *pooling;
    cleat_status status = read_network(weights, &f, error);
    if (!status) status = cleat_published_pooling(weights, "fc.weight", "avg", &pooling, error);
    if (status) return status;
    const char *depth = known_depth(&f);
    if (depth) {
        status = sink->set(sink->user, "model.depth", depth, blocks, error);
    } else {
        status = cleat_published_set_list(sink, "model.blocks", f.blocks, f.stages, blocks, error);
        if (!status) status = cleat_set_integer(sink, "model.expansion", f.expansion, "conv3 / conv2", error);
    }
    if (!status && doubles(&f)) {
        status = cleat_set_integer(sink, "model.width", f.stem_width, channels, error);
    } else if (!status) {
        status = cleat_published_set_list(sink, "model.widths", f.widths, f.stages, channels, error);
        if (!status) status = cleat_set_integer(sink, "model.stem_width", f.stem_width, "channels of conv1", error);
    }
    if (!status)
        status = sink->set(sink->user, "model.stem", f.kernel == 7 ? "large" : "small", "kernel of conv1", error);
    return status ? status : cleat_published_set_images(weights, sink, "conv1.weight", error);
}

const cleat_architecture cleat_published_resnet = {.timm = true,
                                                   .name = "resnet",
                                                   .base = "",
                                                   .names = names,
                                                   .ignored = ignored,
                                                   .matches = matches,
                                                   .configure = configure,
                                                   .describe = cleat_resnet_describe,
                                                   .renumber = renumber};
