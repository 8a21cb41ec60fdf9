/* Vision transformers of timm, torchvision and transformers. */
#include "models/published/images.h"
#include "weights/config.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#define TIMM_ROWS(NORM)                                                                                                \
    {.param = "pe", .sources = {"patch_embed.proj"}}, {.param = "cls", .sources = {"cls_token"}, .rank = 3},           \
        {.param = "pos", .sources = {"pos_embed"}, .rank = 3, .positions = true},                                      \
        {.param = "blocks.*.n1", .sources = {"blocks.*.norm1"}},                                                       \
        {.param = "blocks.*.att.qkv", .sources = {"blocks.*.attn.qkv"}},                                               \
        {.param = "blocks.*.att.out", .sources = {"blocks.*.attn.proj"}},                                              \
        {.param = "blocks.*.n2", .sources = {"blocks.*.norm2"}},                                                       \
        {.param = "blocks.*.f1", .sources = {"blocks.*.mlp.fc1"}},                                                     \
        {.param = "blocks.*.f2", .sources = {"blocks.*.mlp.fc2"}}, {.param = "norm", .sources = {NORM}},               \
        {.param = "head", .sources = {"head"}, .head = true}, {                                                        \
        .param = NULL                                                                                                  \
    }
/* With global_pool = avg the norm comes after the mean, and has another name. */
static const cleat_weight_row timm_names[] = {TIMM_ROWS("norm")}, timm_mean_names[] = {TIMM_ROWS("fc_norm")};
static const cleat_weight_row timm_other_names[] = {{.param = "norm", .sources = {"fc_norm"}}, {.param = NULL}};

static const cleat_weight_row torchvision_names[] = {
    {.param = "pe", .sources = {"conv_proj"}},
    {.param = "cls", .sources = {"class_token"}, .rank = 3},
    {.param = "pos", .sources = {"encoder.pos_embedding"}, .rank = 3, .positions = true},
    {.param = "blocks.*.n1", .sources = {"encoder.layers.encoder_layer_*.ln_1"}},
    {.param = "blocks.*.att.qkv.weight", .sources = {"encoder.layers.encoder_layer_*.self_attention.in_proj_weight"}},
    {.param = "blocks.*.att.qkv.bias", .sources = {"encoder.layers.encoder_layer_*.self_attention.in_proj_bias"}},
    {.param = "blocks.*.att.out", .sources = {"encoder.layers.encoder_layer_*.self_attention.out_proj"}},
    {.param = "blocks.*.n2", .sources = {"encoder.layers.encoder_layer_*.ln_2"}},
    {.param = "blocks.*.f1", .sources = {"encoder.layers.encoder_layer_*.mlp.0"}},
    {.param = "blocks.*.f2", .sources = {"encoder.layers.encoder_layer_*.mlp.3"}},
    {.param = "norm", .sources = {"encoder.ln"}},
    {.param = "head", .sources = {"heads.head"}, .head = true},
    {.param = NULL},
};
/* The published files are older than the names that torchvision saves now. */
static const cleat_weight_row torchvision_other_names[] = {
    {.param = "blocks.*.f1", .sources = {"encoder.layers.encoder_layer_*.mlp.linear_1"}},
    {.param = "blocks.*.f2", .sources = {"encoder.layers.encoder_layer_*.mlp.linear_2"}},
    {.param = NULL},
};

/* Names in files saved by versions 4 and 5, and in the published files. */
static const cleat_weight_row transformers_names[] = {
    {.param = "pe", .sources = {"embeddings.patch_embeddings.projection"}},
    {.param = "cls", .sources = {"embeddings.cls_token"}, .rank = 3},
    {.param = "pos", .sources = {"embeddings.position_embeddings"}, .rank = 3, .positions = true},
    {.param = "blocks.*.n1", .sources = {"encoder.layer.*.layernorm_before"}},
    {.param = "blocks.*.att.qkv",
     .sources = {"encoder.layer.*.attention.attention.query", "encoder.layer.*.attention.attention.key",
                 "encoder.layer.*.attention.attention.value"}},
    {.param = "blocks.*.att.out", .sources = {"encoder.layer.*.attention.output.dense"}},
    {.param = "blocks.*.n2", .sources = {"encoder.layer.*.layernorm_after"}},
    {.param = "blocks.*.f1", .sources = {"encoder.layer.*.intermediate.dense"}},
    {.param = "blocks.*.f2", .sources = {"encoder.layer.*.output.dense"}},
    {.param = "norm", .sources = {"layernorm"}},
    {.param = "head", .sources = {"classifier"}, .head = true},
    {.param = NULL},
};
/* Names of version 5 in memory. */
static const cleat_weight_row transformers_other_names[] = {
    {.param = "blocks.*.n1", .sources = {"layers.*.layernorm_before"}},
    {.param = "blocks.*.att.qkv",
     .sources = {"layers.*.attention.q_proj", "layers.*.attention.k_proj", "layers.*.attention.v_proj"}},
    {.param = "blocks.*.att.out", .sources = {"layers.*.attention.o_proj"}},
    {.param = "blocks.*.n2", .sources = {"layers.*.layernorm_after"}},
    {.param = "blocks.*.f1", .sources = {"layers.*.mlp.fc1"}},
    {.param = "blocks.*.f2", .sources = {"layers.*.mlp.fc2"}},
    {.param = NULL},
};

/* Members that no tensor determines, or only a missing one. */
static const cleat_config_row transformers_config[] = {
    {.key = "hidden_act", .only = "\"gelu\"", .fallback = "\"gelu\""},
    {.key = "qkv_bias", .only = "true", .fallback = "true"},
    {.key = NULL},
};

static const char *const ignored[] = {"*pooler.*", "*mask_token", "head_dist.*", NULL};

static bool is_timm(const cleat_weights *weights) {
    static const char *const known[] = {"vit", "deit", NULL};
    if (!cleat_weights_find(weights, "patch_embed.proj.weight") ||
        !cleat_weights_find(weights, "blocks.0.norm1.weight"))
        return false;
    return cleat_published_is(weights, known) || !cleat_weights_config_text(weights, "architecture");
}

static bool is_torchvision(const cleat_weights *weights) {
    return cleat_weights_find(weights, "encoder.layers.encoder_layer_0.ln_1.weight") != NULL;
}

/* The names, after `base`, of the tensors that determine the sizes: `block` is a norm of block %lld, `first`
 * the first linear layer of block 0. */
typedef struct vit_names {
    const char *base, *stem, *block, *first, *positions, *token;
} vit_names;

typedef struct vit_sizes {
    int64_t width, layers, hidden, patch, heads, positions;
    bool class_token;
} vit_sizes;

/* Parts of other vision transformers that are not supported. */
static const char *unsupported_part(const cleat_weights *weights) {
    static const struct {
        const char *tensor, *what;
    } parts[] = {{"blocks.0.ls1.gamma", "layer scale (blocks.0.ls1.gamma)"},
                 {"norm_pre.weight", "a norm before the blocks (norm_pre)"},
                 {"reg_token", "register tokens (reg_token)"},
                 {"dist_token", "a distillation token (dist_token)"},
                 {"blocks.0.attn.q_norm.weight", "norms of queries and keys (blocks.0.attn.q_norm)"},
                 {"blocks.0.attn.rel_pos.relative_position_bias_table", "relative positions"},
                 {"blocks.0.attn.norm.weight", "a norm in the attention (blocks.0.attn.norm)"},
                 {"blocks.0.mlp.w12.weight", "a gated feed-forward network (blocks.0.mlp.w12)"}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; ++i)
        if (cleat_weights_find(weights, parts[i].tensor)) return parts[i].what;
    return NULL;
}

static cleat_status read_sizes(const cleat_weights *weights, const vit_names *names, vit_sizes *sizes,
                               cleat_error *error) {
    char block[CLEAT_WEIGHT_NAME];
    const char *part = unsupported_part(weights);
    if (part) return cleat_published_refuse(weights, error, "it has %s", part);
    snprintf(block, sizeof block, "%s%s", names->base, names->block);
    sizes->width = cleat_published_extent(weights, 0, "%s%s", names->base, names->stem);
    sizes->patch = cleat_published_extent(weights, 2, "%s%s", names->base, names->stem);
    sizes->hidden = cleat_published_extent(weights, 0, "%s%s", names->base, names->first);
    while (cleat_published_find(weights, block, (long long)sizes->layers)) ++sizes->layers;
    sizes->positions = cleat_published_extent(weights, 1, "%s%s", names->base, names->positions);
    sizes->class_token = cleat_published_find(weights, "%s%s", names->base, names->token) != NULL;
    if (sizes->width && sizes->patch && sizes->hidden && sizes->layers) return CLEAT_OK;
    return cleat_published_refuse(weights, error, "one of the tensors %s, %s and those of block 0 is missing",
                                  names->stem, names->first);
}

/* Side of the square of patches; 0: there is none. */
static int64_t grid_of(const vit_sizes *sizes) {
    const int64_t patches = sizes->positions - sizes->class_token;
    int64_t side = 0;
    while ((side + 1) * (side + 1) <= patches) ++side;
    return side * side == patches ? side : 0;
}

/* The published networks have heads of 64 features, except for the huge ones, which have 16 heads. config.json takes
 * precedence. */
static int64_t usual_heads(int64_t width) {
    static const int64_t huge[] = {1152, 1280, 1408, 1664};
    for (size_t i = 0; i < sizeof huge / sizeof *huge; ++i)
        if (width == huge[i]) return 16;
    return width % 64 == 0 ? width / 64 : 0;
}

static cleat_status find_heads(const cleat_weights *weights, const char *key, vit_sizes *sizes, cleat_error *error) {
    char path[64];
    const cJSON *own;
    cleat_status status = cleat_weights_integer(weights, key, usual_heads(sizes->width), &sizes->heads, error);
    snprintf(path, sizeof path, "model_args.%s", key);
    if (!status) status = cleat_weights_member(weights, path, CLEAT_JSON_INTEGER | CLEAT_JSON_NULL, &own, error);
    if (status) return status;
    if (own) sizes->heads = (int64_t)own->valuedouble;
    if (sizes->heads > 0 && sizes->width % sizes->heads == 0) return CLEAT_OK;
    return cleat_published_refuse(weights, error,
                                  "its number of heads is not known: config.json must have %s, a divisor of the width "
                                  "%lld",
                                  key, (long long)sizes->width);
}

static cleat_status set_sizes(const cleat_setting_sink *sink, const vit_names *names, const vit_sizes *sizes,
                              cleat_error *error) {
    const struct {
        const char *setting;
        int64_t value;
        const char *source;
    } rows[] = {{"model.d_model", sizes->width, names->stem},
                {"model.heads", sizes->heads, "heads"},
                {"model.layers", sizes->layers, "blocks"},
                {"model.d_ff", sizes->hidden, names->first},
                {"model.patch", sizes->patch, names->stem}};
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && !status; ++i)
        status = cleat_set_integer(sink, rows[i].setting, rows[i].value, rows[i].source, error);
    if (!status)
        status = sink->set(sink->user, "model.class_token", sizes->class_token ? "true" : "false", names->token, error);
    return status;
}

/* `mean`: the mean over the patches is classified. */
static cleat_status configure(const cleat_weights *weights, const vit_names *names, const char *heads_key, bool mean,
                              const cleat_setting_sink *sink, cleat_error *error) {
    char stem[CLEAT_WEIGHT_NAME];
    vit_sizes sizes = {0};
    cleat_status status = read_sizes(weights, names, &sizes, error);
    if (!status) status = find_heads(weights, heads_key, &sizes, error);
    if (!status && !grid_of(&sizes))
        status = cleat_published_refuse(weights, error, "its %lld positions (%s) are not a square of patches%s",
                                        (long long)sizes.positions, names->positions,
                                        sizes.class_token ? " and a class token" : "");
    if (!status) status = set_sizes(sink, names, &sizes, error);
    if (!status)
        status = sink->set(sink->user, "model.pooling", mean || !sizes.class_token ? "mean" : "token", "what is pooled",
                           error);
    if (!status) status = cleat_published_set_eps(weights, sink, "model.norm_eps", 1e-6, error);
    snprintf(stem, sizeof stem, "%s%s", names->base, names->stem);
    if (!status) status = cleat_published_set_images(weights, sink, stem, true, error);
    /* Set last: positions need no resampling at this size. */
    return status ? status
                  : cleat_set_integer(sink, "data.image_size", grid_of(&sizes) * sizes.patch, names->positions, error);
}

static cleat_status configure_timm(const cleat_weights *weights, const cleat_setting_sink *sink, cleat_error *error) {
    static const vit_names names = {.base = "",
                                    .stem = "patch_embed.proj.weight",
                                    .block = "blocks.%lld.norm1.weight",
                                    .first = "blocks.0.mlp.fc1.weight",
                                    .positions = "pos_embed",
                                    .token = "cls_token"};
    const bool norm_last = cleat_weights_find(weights, "fc_norm.weight") != NULL;
    const bool token = cleat_weights_find(weights, names.token) != NULL;
    const char *pooling;
    cleat_status status =
        cleat_published_pooling(weights, "head.weight", norm_last || !token ? "avg" : "token", &pooling, error);
    if (status) return status;
    const bool mean = strcmp(pooling, "avg") == 0;
    if (mean && token && !norm_last)
        return cleat_published_refuse(weights, error,
                                      "global_pool of config.json is avg, and the norm comes before the mean (norm); "
                                      "a norm after it (fc_norm) is supported");
    return configure(weights, &names, "num_heads", mean, sink, error);
}

static cleat_status configure_torchvision(const cleat_weights *weights, const cleat_setting_sink *sink,
                                          cleat_error *error) {
    vit_names names = {.base = "",
                       .stem = "conv_proj.weight",
                       .block = "encoder.layers.encoder_layer_%lld.ln_1.weight",
                       .first = "encoder.layers.encoder_layer_0.mlp.0.weight",
                       .positions = "encoder.pos_embedding",
                       .token = "class_token"};
    if (!cleat_weights_find(weights, names.first)) names.first = "encoder.layers.encoder_layer_0.mlp.linear_1.weight";
    return configure(weights, &names, "num_heads", false, sink, error);
}

static cleat_status configure_transformers(const cleat_weights *weights, const cleat_setting_sink *sink,
                                           cleat_error *error) {
    const bool bare = cleat_weights_find(weights, "embeddings.cls_token") != NULL;
    vit_names names = {.base = bare ? "" : "vit.",
                       .stem = "embeddings.patch_embeddings.projection.weight",
                       .block = "layers.%lld.layernorm_before.weight",
                       .first = "layers.0.mlp.fc1.weight",
                       .positions = "embeddings.position_embeddings",
                       .token = "embeddings.cls_token"};
    if (!cleat_published_find(weights, "%s%s", names.base, names.first)) {
        names.block = "encoder.layer.%lld.layernorm_before.weight";
        names.first = "encoder.layer.0.intermediate.dense.weight";
    }
    return configure(weights, &names, "num_attention_heads", false, sink, error);
}

const cleat_architecture cleat_published_vit = {.name = "vit (timm)",
                                                .timm = true,
                                                .base = "",
                                                .names = timm_names,
                                                .other_names = timm_other_names,
                                                .ignored = ignored,
                                                .matches = is_timm,
                                                .configure = configure_timm,
                                                .describe = cleat_vit_describe};
const cleat_architecture cleat_published_vit_mean = {.name = "vit (timm)",
                                                     .timm = true,
                                                     .base = "",
                                                     .names = timm_mean_names,
                                                     .matches = is_timm,
                                                     .configure = configure_timm,
                                                     .describe = cleat_vit_describe};
const cleat_architecture cleat_published_vit_torchvision = {.name = "vit (torchvision)",
                                                            .base = "",
                                                            .names = torchvision_names,
                                                            .other_names = torchvision_other_names,
                                                            .matches = is_torchvision,
                                                            .configure = configure_torchvision};
const cleat_architecture cleat_published_vit_transformers = {.name = "vit",
                                                             .base = "vit.",
                                                             .names = transformers_names,
                                                             .other_names = transformers_other_names,
                                                             .ignored = ignored,
                                                             .config = transformers_config,
                                                             .configure = configure_transformers,
                                                             .describe = cleat_vit_describe_transformers};
