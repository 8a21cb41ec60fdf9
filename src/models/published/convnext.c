/* ConvNeXts of timm, torchvision and transformers. */
#include "models/published/images.h"

#include <stdio.h>

enum { STAGES = CLEAT_PUBLISHED_STAGES };

static const cleat_weight_row timm_names[] = {
    {.param = "pe", .sources = {"stem.0"}},
    {.param = "pn", .sources = {"stem.1"}},
    {.param = "dn.*", .sources = {"stages.*.downsample.0"}},
    {.param = "dc.*", .sources = {"stages.*.downsample.1"}},
    {.param = "st.*.*.gamma", .sources = {"stages.*.blocks.*.gamma"}},
    {.param = "st.*.*.dw", .sources = {"stages.*.blocks.*.conv_dw"}},
    {.param = "st.*.*.n", .sources = {"stages.*.blocks.*.norm"}},
    {.param = "st.*.*.f1", .sources = {"stages.*.blocks.*.mlp.fc1"}},
    {.param = "st.*.*.f2", .sources = {"stages.*.blocks.*.mlp.fc2"}},
    {.param = "norm", .sources = {"head.norm"}},
    {.param = "head", .sources = {"head.fc"}, .head = true},
    {.param = NULL},
};

/* Downsampling and stages alternate: features.0 is the stem, features.1 the first stage. */
static const cleat_weight_row torchvision_names[] = {
    {.param = "pe", .sources = {"features.0.0"}},
    {.param = "pn", .sources = {"features.0.1"}},
    {.param = "dn.*", .sources = {"features.*.0"}},
    {.param = "dc.*", .sources = {"features.*.1"}},
    {.param = "st.*.*.gamma", .sources = {"features.*.*.layer_scale"}, .rank = -3},
    {.param = "st.*.*.dw", .sources = {"features.*.*.block.0"}},
    {.param = "st.*.*.n", .sources = {"features.*.*.block.2"}},
    {.param = "st.*.*.f1", .sources = {"features.*.*.block.3"}},
    {.param = "st.*.*.f2", .sources = {"features.*.*.block.5"}},
    {.param = "norm", .sources = {"classifier.0"}},
    {.param = "head", .sources = {"classifier.2"}, .head = true},
    {.param = NULL},
};

static const cleat_weight_row transformers_names[] = {
    {.param = "pe", .sources = {"embeddings.patch_embeddings"}},
    {.param = "pn", .sources = {"embeddings.layernorm"}},
    {.param = "dn.*", .sources = {"encoder.stages.*.downsampling_layer.0"}},
    {.param = "dc.*", .sources = {"encoder.stages.*.downsampling_layer.1"}},
    {.param = "st.*.*.gamma", .sources = {"encoder.stages.*.layers.*.layer_scale_parameter"}},
    {.param = "st.*.*.dw", .sources = {"encoder.stages.*.layers.*.dwconv"}},
    {.param = "st.*.*.n", .sources = {"encoder.stages.*.layers.*.layernorm"}},
    {.param = "st.*.*.f1", .sources = {"encoder.stages.*.layers.*.pwconv1"}},
    {.param = "st.*.*.f2", .sources = {"encoder.stages.*.layers.*.pwconv2"}},
    {.param = "norm", .sources = {"layernorm"}},
    {.param = "head", .sources = {"classifier"}, .head = true},
    {.param = NULL},
};

/* Members that tensors do not determine. */
static const cleat_config_row transformers_config[] = {
    {.key = "hidden_act", .only = "\"gelu\"", .fallback = "\"gelu\""}, {.key = NULL}};

static size_t number_torchvision(const cleat_model *model, size_t count, int64_t numbers[CLEAT_WEIGHT_NUMBERS]) {
    (void)model;
    if (count > 0) numbers[0] = 2 * numbers[0] + (count == 2);
    return count;
}

static bool is_timm(const cleat_weights *weights) {
    static const char *const known[] = {"convnext", NULL};
    if (!cleat_weights_find(weights, "stages.0.blocks.0.conv_dw.weight")) return false;
    return cleat_published_is(weights, known) || !cleat_weights_config_text(weights, "architecture");
}

static bool is_torchvision(const cleat_weights *weights) {
    return cleat_weights_find(weights, "features.1.0.layer_scale") != NULL;
}

/* The name of the depthwise convolution of block J of stage S, with two %lld; stage S is numbered step S + first. */
typedef struct convnext_names {
    const char *stem, *depthwise;
    int64_t first, step;
    const char *eps_setting; /* of layer_norm_eps in config.json */
} convnext_names;

/* The blocks of a stage, and their channels. */
static int64_t count_blocks(const cleat_weights *weights, const convnext_names *names, int64_t stage, int64_t *width) {
    char name[CLEAT_WEIGHT_NAME];
    for (int64_t blocks = 0;; ++blocks) {
        snprintf(name, sizeof name, names->depthwise, (long long)(names->first + names->step * stage),
                 (long long)blocks);
        const cleat_st_tensor *found = cleat_weights_find(weights, name);
        if (!found || found->rank != 4 || found->shape[2] != 7) return blocks;
        *width = found->shape[0];
    }
}

static cleat_status configure(const cleat_weights *weights, const convnext_names *names, const cleat_setting_sink *sink,
                              cleat_error *error) {
    int64_t stages = 0, blocks[STAGES] = {0}, widths[STAGES] = {0};
    while (stages < STAGES && (blocks[stages] = count_blocks(weights, names, stages, &widths[stages])) > 0) ++stages;
    if (!stages || cleat_published_extent(weights, 2, "%s", names->stem) != 4)
        return cleat_published_refuse(weights, error,
                                      "it needs a 4 x 4 stem (%s) and blocks with 7 x 7 depthwise convolutions (%s)",
                                      names->stem, names->depthwise);
    if (cleat_weights_find(weights, "stages.0.blocks.0.mlp.grn.weight"))
        return cleat_published_refuse(weights, error, "it has global response normalisation, as ConvNeXt V2");
    cleat_status status = cleat_published_set_list(sink, "model.blocks", blocks, stages, "blocks of the stages", error);
    if (!status)
        status = cleat_published_set_list(sink, "model.widths", widths, stages, "channels of the stages", error);
    if (!status) status = cleat_published_set_eps(weights, sink, names->eps_setting, 1e-6, error);
    return status ? status : cleat_published_set_images(weights, sink, names->stem, true, error);
}

static cleat_status configure_timm(const cleat_weights *weights, const cleat_setting_sink *sink, cleat_error *error) {
    static const convnext_names names = {"stem.0.weight", "stages.%lld.blocks.%lld.conv_dw.weight", 0, 1,
                                         "model.norm_eps"};
    const char *pooling;
    cleat_status status = cleat_published_pooling(weights, "head.fc.weight", "avg", &pooling, error);
    return status ? status : configure(weights, &names, sink, error);
}

static cleat_status configure_torchvision(const cleat_weights *weights, const cleat_setting_sink *sink,
                                          cleat_error *error) {
    static const convnext_names names = {"features.0.0.weight", "features.%lld.%lld.block.0.weight", 1, 2,
                                         "model.norm_eps"};
    return configure(weights, &names, sink, error);
}

/* layer_norm_eps applies to the last norm; the others have 1e-6, regardless of config.json. */
static cleat_status configure_transformers(const cleat_weights *weights, const cleat_setting_sink *sink,
                                           cleat_error *error) {
    static const convnext_names headed = {"convnext.embeddings.patch_embeddings.weight",
                                          "convnext.encoder.stages.%lld.layers.%lld.dwconv.weight", 0, 1,
                                          "model.last_norm_eps"};
    static const convnext_names bare = {"embeddings.patch_embeddings.weight",
                                        "encoder.stages.%lld.layers.%lld.dwconv.weight", 0, 1, "model.last_norm_eps"};
    return configure(weights, cleat_weights_find(weights, headed.stem) ? &headed : &bare, sink, error);
}

const cleat_architecture cleat_published_convnext = {.name = "convnext (timm)",
                                                     .timm = true,
                                                     .base = "",
                                                     .names = timm_names,
                                                     .matches = is_timm,
                                                     .configure = configure_timm,
                                                     .describe = cleat_convnext_describe};
const cleat_architecture cleat_published_convnext_torchvision = {.name = "convnext (torchvision)",
                                                                 .base = "",
                                                                 .names = torchvision_names,
                                                                 .matches = is_torchvision,
                                                                 .configure = configure_torchvision,
                                                                 .renumber = number_torchvision};
const cleat_architecture cleat_published_convnext_transformers = {.name = "convnext",
                                                                  .base = "convnext.",
                                                                  .names = transformers_names,
                                                                  .config = transformers_config,
                                                                  .configure = configure_transformers,
                                                                  .describe = cleat_convnext_describe_transformers};
