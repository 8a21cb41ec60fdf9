/* Residual networks of timm and torchvision (which have the same names) and of transformers. */
#include "models/published/images.h"

#include <string.h>

enum { STAGES = CLEAT_PUBLISHED_STAGES };

/* Rank 4: 1 x 1 convolutions with stride 1, which are matrices here. */
static const cleat_weight_row timm_names[] = {
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

static const cleat_weight_row transformers_names[] = {
    {.param = "stem", .sources = {"embedder.embedder.convolution"}, .rank = 4},
    {.param = "bn", .sources = {"embedder.embedder.normalization"}},
    {.param = "b*.c1", .sources = {"encoder.stages.*.layers.*.layer.0.convolution"}, .rank = 4},
    {.param = "b*.b1", .sources = {"encoder.stages.*.layers.*.layer.0.normalization"}},
    {.param = "b*.c2", .sources = {"encoder.stages.*.layers.*.layer.1.convolution"}, .rank = 4},
    {.param = "b*.b2", .sources = {"encoder.stages.*.layers.*.layer.1.normalization"}},
    {.param = "b*.c3", .sources = {"encoder.stages.*.layers.*.layer.2.convolution"}, .rank = 4},
    {.param = "b*.b3", .sources = {"encoder.stages.*.layers.*.layer.2.normalization"}},
    {.param = "b*.sc.0", .sources = {"encoder.stages.*.layers.*.shortcut.convolution"}, .rank = 4},
    {.param = "b*.sc.1", .sources = {"encoder.stages.*.layers.*.shortcut.normalization"}},
    {.param = "fc", .sources = {"classifier.1"}, .head = true},
    {.param = NULL},
};

/* Members that tensors do not determine. */
static const cleat_config_row transformers_config[] = {
    {.key = "hidden_act", .only = "\"relu\"", .fallback = "\"relu\""},
    {.key = "downsample_in_first_stage", .only = "false", .fallback = "false"},
    {.key = "downsample_in_bottleneck", .only = "false", .fallback = "false"},
    {.key = NULL},
};

static const char *const ignored[] = {"*.num_batches_tracked", NULL};

static bool is_timm(const cleat_weights *weights) {
    static const char *const known[] = {"resnet", "wide_resnet", NULL};
    if (cleat_weights_config_text(weights, "architecture")) return cleat_published_is(weights, known);
    return cleat_weights_find(weights, "layer1.0.conv1.weight") != NULL;
}

/* Stages from 0, as transformers counts them. */
static size_t place(const cleat_model *model, size_t count, int64_t numbers[CLEAT_WEIGHT_NUMBERS]) {
    if (count != 1) return count;
    cleat_resnet_place(model, numbers[0], &numbers[0], &numbers[1]);
    return 2;
}

static size_t place_timm(const cleat_model *model, size_t count, int64_t numbers[CLEAT_WEIGHT_NUMBERS]) {
    const size_t made = place(model, count, numbers);
    if (count == 1) ++numbers[0];
    return made;
}

/* The names of the tensors that determine the sizes; names of convolutions have two %lld: a stage, counted
 * from `first`, and a block. */
typedef struct resnet_names {
    const char *stem, *conv2, *conv3;
    long long first;
} resnet_names;

typedef struct found {
    int64_t stages, blocks[STAGES], widths[STAGES], expansion, stem_width, kernel;
} found;

static cleat_status read_stages(const cleat_weights *weights, const resnet_names *names, found *f, cleat_error *error) {
    for (; f->stages < STAGES; ++f->stages) {
        const long long stage = names->first + f->stages;
        int64_t *blocks = &f->blocks[f->stages];
        while (cleat_published_find(weights, names->conv2, stage, (long long)*blocks)) ++*blocks;
        if (!*blocks) return CLEAT_OK;
        const int64_t width = cleat_published_extent(weights, 0, names->conv2, stage, 0LL);
        const int64_t output = cleat_published_extent(weights, 0, names->conv3, stage, 0LL);
        if (cleat_published_extent(weights, 1, names->conv2, stage, 0LL) != width || (output && output % width))
            return cleat_published_refuse(weights, error,
                                          "its blocks are neither basic blocks nor bottlenecks of plain convolutions "
                                          "(the middle one of stage %lld)",
                                          stage);
        f->widths[f->stages] = width;
        f->expansion = output ? output / width : 1;
    }
    if (!cleat_published_find(weights, names->conv2, names->first + STAGES, 0LL)) return CLEAT_OK;
    return cleat_published_refuse(weights, error, "it has more than %d stages", STAGES);
}

static cleat_status read_network(const cleat_weights *weights, const resnet_names *names, found *f,
                                 cleat_error *error) {
    f->stem_width = cleat_published_extent(weights, 0, "%s", names->stem);
    f->kernel = cleat_published_extent(weights, 2, "%s", names->stem);
    if (!f->stem_width)
        return cleat_published_refuse(weights, error, "its stem is not one convolution (%s is missing)", names->stem);
    if (f->kernel != 7 && f->kernel != 3)
        return cleat_published_refuse(weights, error, "the convolution of its stem is %lld x %lld; 7 x 7 and 3 x 3 are",
                                      (long long)f->kernel, (long long)f->kernel);
    if (cleat_published_find(weights, "layer1.0.se.fc1.weight") ||
        cleat_published_find(weights, "layer1.0.se.conv.weight"))
        return cleat_published_refuse(weights, error, "its blocks have squeeze and excitation");
    cleat_status status = read_stages(weights, names, f, error);
    if (status || f->stages > 0) return status;
    return cleat_published_refuse(weights, error, "it has no blocks of two or three convolutions");
}

/* The name of the depth with these sizes; NULL: none. */
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

static cleat_status configure(const cleat_weights *weights, const resnet_names *names, const cleat_setting_sink *sink,
                              cleat_error *error) {
    static const char blocks[] = "blocks of the stages", channels[] = "channels of the stages";
    found f = {0};
    cleat_status status = read_network(weights, names, &f, error);
    if (status) return status;
    const char *depth = known_depth(&f);
    if (depth) {
        status = sink->set(sink->user, "model.depth", depth, blocks, error);
    } else {
        status = cleat_published_set_list(sink, "model.blocks", f.blocks, f.stages, blocks, error);
        if (!status)
            status = cleat_set_integer(sink, "model.expansion", f.expansion, "channels within the blocks", error);
    }
    if (!status && doubles(&f)) {
        status = cleat_set_integer(sink, "model.width", f.stem_width, channels, error);
    } else if (!status) {
        status = cleat_published_set_list(sink, "model.widths", f.widths, f.stages, channels, error);
        if (!status) status = cleat_set_integer(sink, "model.stem_width", f.stem_width, names->stem, error);
    }
    if (!status) status = sink->set(sink->user, "model.stem", f.kernel == 7 ? "large" : "small", names->stem, error);
    return status ? status : cleat_published_set_images(weights, sink, names->stem, true, error);
}

static cleat_status configure_timm(const cleat_weights *weights, const cleat_setting_sink *sink, cleat_error *error) {
    static const resnet_names names = {"conv1.weight", "layer%lld.%lld.conv2.weight", "layer%lld.%lld.conv3.weight", 1};
    const char *pooling;
    cleat_status status = cleat_published_pooling(weights, "fc.weight", "avg", &pooling, error);
    return status ? status : configure(weights, &names, sink, error);
}

static cleat_status configure_transformers(const cleat_weights *weights, const cleat_setting_sink *sink,
                                           cleat_error *error) {
    static const resnet_names headed = {"resnet.embedder.embedder.convolution.weight",
                                        "resnet.encoder.stages.%lld.layers.%lld.layer.1.convolution.weight",
                                        "resnet.encoder.stages.%lld.layers.%lld.layer.2.convolution.weight", 0};
    static const resnet_names bare = {"embedder.embedder.convolution.weight",
                                      "encoder.stages.%lld.layers.%lld.layer.1.convolution.weight",
                                      "encoder.stages.%lld.layers.%lld.layer.2.convolution.weight", 0};
    return configure(weights, cleat_weights_find(weights, bare.stem) ? &bare : &headed, sink, error);
}

const cleat_architecture cleat_published_resnet = {.name = "resnet (timm)",
                                                   .timm = true,
                                                   .base = "",
                                                   .names = timm_names,
                                                   .ignored = ignored,
                                                   .matches = is_timm,
                                                   .configure = configure_timm,
                                                   .describe = cleat_resnet_describe,
                                                   .renumber = place_timm};
const cleat_architecture cleat_published_resnet_transformers = {.name = "resnet",
                                                                .base = "resnet.",
                                                                .names = transformers_names,
                                                                .ignored = ignored,
                                                                .config = transformers_config,
                                                                .configure = configure_transformers,
                                                                .describe = cleat_resnet_describe_transformers,
                                                                .renumber = place};
