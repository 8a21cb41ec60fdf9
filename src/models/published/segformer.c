/* Names, sizes and normalisation of published SegFormers. */
#include "models/published/segformer.h"

#include "core/files.h"
#include "models/published/images.h"
#include "models/published/labels.h"
#include "weights/config.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

enum { STAGES = CLEAT_SEGFORMER_STAGES };

#define ROW(PARAM, ...)                                                                                                \
    {                                                                                                                  \
        .param = PARAM, .sources = { __VA_ARGS__ }                                                                     \
    }
#define BLOCK(PARAM, SOURCE) ROW("st.*.*." PARAM, "encoder.block.*.*." SOURCE)
#define ENCODER_NAMES                                                                                                  \
    ROW("pe.*", "encoder.patch_embeddings.*.proj"), ROW("pn.*", "encoder.patch_embeddings.*.layer_norm"),              \
        ROW("on.*", "encoder.layer_norm.*"), BLOCK("n1", "layer_norm_1"), BLOCK("att.q", "attention.self.query"),      \
        ROW("st.*.*.att.kv", "encoder.block.*.*.attention.self.key", "encoder.block.*.*.attention.self.value"),        \
        BLOCK("att.red", "attention.self.sr"), BLOCK("att.n", "attention.self.layer_norm"),                            \
        BLOCK("att.out", "attention.output.dense"), BLOCK("n2", "layer_norm_2"), BLOCK("f1", "mlp.dense1"),            \
        {.param = "st.*.*.dw.weight", .sources = {"encoder.block.*.*.mlp.dwconv.dwconv.weight"}, .rank = 4},           \
        BLOCK("dw.bias", "mlp.dwconv.dwconv.bias"), BLOCK("f2", "mlp.dense2")
/* A file of a bare encoder has no decoder; a file for other classes has another last layer. */
#define HEAD(PARAM, SOURCE, RANK)                                                                                      \
    { .param = PARAM, .sources = {SOURCE}, .head = true, .rank = RANK }
#define DECODER_NAMES                                                                                                  \
    HEAD("dec.*", "decode_head.linear_c.*.proj", 0), HEAD("fuse.weight", "decode_head.linear_fuse.weight", 4),         \
        HEAD("bn", "decode_head.batch_norm", 0), HEAD("cls.weight", "decode_head.classifier.weight", 4),               \
        HEAD("cls.bias", "decode_head.classifier.bias", 0)

/* The same in files with the module names of transformers 5. */
#define OTHER(PARAM, SOURCE) ROW("st.*.*." PARAM, "stages.*.blocks.*." SOURCE)
#define OTHER_ENCODER_NAMES                                                                                            \
    ROW("pe.*", "stages.*.patch_embeddings.proj"), ROW("pn.*", "stages.*.patch_embeddings.layer_norm"),                \
        ROW("on.*", "stages.*.layer_norm"), OTHER("n1", "layernorm_before"), OTHER("att.q", "attention.q_proj"),       \
        ROW("st.*.*.att.kv", "stages.*.blocks.*.attention.k_proj", "stages.*.blocks.*.attention.v_proj"),              \
        OTHER("att.red", "attention.sequence_reduction.sequence_reduction"),                                           \
        OTHER("att.n", "attention.sequence_reduction.layer_norm"), OTHER("att.out", "attention.o_proj"),               \
        OTHER("n2", "layernorm_after"), OTHER("f1", "mlp.fc1"),                                                        \
        {.param = "st.*.*.dw.weight", .sources = {"stages.*.blocks.*.mlp.dwconv.dwconv.weight"}, .rank = 4},           \
        OTHER("dw.bias", "mlp.dwconv.dwconv.bias"), OTHER("f2", "mlp.fc2"),                                            \
        HEAD("dec.*", "decode_head.linear_projections.*.proj", 0)

static const cleat_weight_row names[] = {ENCODER_NAMES, DECODER_NAMES, {.param = NULL}};
static const cleat_weight_row other_names[] = {OTHER_ENCODER_NAMES, DECODER_NAMES, {.param = NULL}};
/* A published network reads images of three channels, EmberFormer the features of its temporal part. */
static const cleat_weight_row emberformer_names[] = {
    HEAD("pe.0.weight", "segformer.encoder.patch_embeddings.0.proj.weight", 0),
    ENCODER_NAMES,
    DECODER_NAMES,
    {.param = NULL}};
static const cleat_weight_row other_emberformer_names[] = {
    HEAD("pe.0.weight", "segformer.stages.0.patch_embeddings.proj.weight", 0),
    OTHER_ENCODER_NAMES,
    DECODER_NAMES,
    {.param = NULL}};

/* `classifier` is that of a network for whole images. */
static const char *const ignored[] = {"decode_head.batch_norm.num_batches_tracked", "classifier.*", NULL};

#define NETWORK_ROWS                                                                                                   \
    {.key = "num_encoder_blocks", .fallback = "4", .only = "4"},                                                       \
        {.key = "hidden_act", .fallback = "\"gelu\"", .only = "\"gelu\""}, {                                           \
        .key = "reshape_last_stage", .fallback = "true", .only = "true"                                                \
    }
static const cleat_config_row config[] = {NETWORK_ROWS, {.key = NULL}};

/* A list of config.json: the setting with its values from stage `first` on, its place in the shape, and its usual
 * values. */
typedef struct list_row {
    const char *key, *setting;
    int first;
    size_t offset;
    int64_t usual[STAGES];
} list_row;

#define LIST(KEY, SETTING, FIRST, MEMBER, ...)                                                                         \
    {                                                                                                                  \
        KEY, "model." SETTING, FIRST, offsetof(cleat_segformer, MEMBER), {                                             \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
static const list_row lists[] = {
    LIST("hidden_sizes", "stage_widths", 0, width, 32, 64, 160, 256),
    LIST("num_attention_heads", "stage_heads", 0, heads, 1, 2, 5, 8),
    LIST("sr_ratios", "stage_reductions", 0, reduction, 8, 4, 2, 1),
    LIST("depths", "stage_depths", 0, depth, 2, 2, 2, 2),
    LIST("mlp_ratios", "stage_expansions", 0, expansion, 4, 4, 4, 4),
    LIST("patch_sizes", "stage_patches", 0, patch, 7, 3, 3, 3),
    LIST("strides", "stage_strides", 1, stride, 4, 2, 2, 2),
};
enum { LISTS = sizeof lists / sizeof *lists };

static int64_t *values_of(const list_row *row, cleat_segformer *shape) {
    return (int64_t *)(void *)((char *)shape + row->offset);
}

static cleat_status read_list(const cleat_weights *weights, const list_row *row, cleat_segformer *shape,
                              cleat_error *error) {
    const cJSON *list, *item;
    int64_t *values = values_of(row, shape);
    int count = 0;
    memcpy(values, row->usual, sizeof row->usual);
    cleat_status status = cleat_weights_member(weights, row->key, CLEAT_JSON_NUMBERS, &list, error);
    if (status || !list) return status;
    bool good = cJSON_GetArraySize(list) == STAGES;
    cJSON_ArrayForEach(item, list) {
        if (!good) break;
        good = item->valuedouble >= 1 && item->valuedouble <= INT32_MAX &&
               item->valuedouble == (double)(int64_t)item->valuedouble;
        if (good) values[count++] = (int64_t)item->valuedouble;
    }
    return good ? CLEAT_OK
                : cleat_config_refuse(cleat_weights_folder(weights), "config.json", row->key, list,
                                      "a list of 4 whole numbers above 0", error);
}

/* The backbone with these sizes; CLEAT_BACKBONES: none. */
static cleat_backbone find_backbone(const cleat_segformer *shape) {
    cleat_segformer wanted = *shape;
    for (int b = 0; b < CLEAT_BACKBONES; ++b) {
        cleat_segformer known = *cleat_backbone_shape((cleat_backbone)b);
        bool same = known.decoder == wanted.decoder;
        for (int i = 0; i < LISTS; ++i)
            same = same && memcmp(values_of(&lists[i], &known), values_of(&lists[i], &wanted), sizeof known.width) == 0;
        if (same) return (cleat_backbone)b;
    }
    return CLEAT_BACKBONES;
}

static cleat_status set_list(const list_row *row, cleat_segformer *shape, bool named, const cleat_setting_sink *sink,
                             cleat_error *error) {
    const int64_t *values = values_of(row, shape);
    char text[32 * STAGES];
    size_t used = (size_t)snprintf(text, sizeof text, "%s", named ? "auto" : "");
    for (int i = row->first; i < STAGES && !named; ++i)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld", used ? ", " : "", (long long)values[i]);
    return sink->set(sink->user, row->setting, text, row->key, error);
}

/* Sets the backbone if the sizes are those of a known one, so that a profile for another one is refused; else
 * the lists. model.stem_stride remains the profile's if the file has the usual one, because a finer map needs
 * the same parameters. */
static cleat_status set_sizes(cleat_segformer *shape, const cleat_setting_sink *sink, cleat_error *error) {
    const cleat_backbone backbone = find_backbone(shape);
    const bool named = backbone < CLEAT_BACKBONES;
    char text[32];
    cleat_status status = CLEAT_OK;
    if (named) status = sink->set(sink->user, "model.backbone", cleat_backbone_names[backbone], "depths", error);
    for (int i = 0; i < LISTS && !status; ++i) status = set_list(&lists[i], shape, named, sink, error);
    snprintf(text, sizeof text, "%lld", (long long)shape->decoder);
    if (!status)
        status = sink->set(sink->user, "model.decoder_width", named ? "auto" : text, "decoder_hidden_size", error);
    snprintf(text, sizeof text, "%lld", (long long)shape->stride[0]);
    if (!status && shape->stride[0] != cleat_backbone_shape(CLEAT_BACKBONE_B0)->stride[0])
        status = sink->set(sink->user, "model.stem_stride", text, "strides", error);
    if (!status) status = sink->set(sink->user, "model.stage_order", "descending", "model_type", error);
    return status;
}

static cleat_status set_shape(const cleat_weights *weights, const cleat_setting_sink *sink, cleat_error *error) {
    cleat_segformer shape = {.decoder = 0};
    cleat_status status = cleat_weights_integer(weights, "decoder_hidden_size", 256, &shape.decoder, error);
    for (int i = 0; i < LISTS && !status; ++i) status = read_list(weights, &lists[i], &shape, error);
    return status ? status : set_sizes(&shape, sink, error);
}

static cleat_status configure(const cleat_weights *weights, const cleat_setting_sink *sink, cleat_error *error) {
    static const char *const stems[] = {
        "segformer.encoder.patch_embeddings.0.proj.weight", "encoder.patch_embeddings.0.proj.weight",
        "segformer.stages.0.patch_embeddings.proj.weight", "stages.0.patch_embeddings.proj.weight"};
    cleat_status status = set_shape(weights, sink, error);
    for (size_t i = 0; i < sizeof stems / sizeof *stems && !status; ++i)
        if (cleat_weights_find(weights, stems[i]))
            return cleat_published_set_images(weights, sink, stems[i], false, error);
    if (status) return status;
    return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: has no tensor '%s'; is it a SegFormer?",
                      cleat_weights_path(weights), stems[0]);
}

/* The file names the classes if the data do not. */
static cleat_status configure_masks(const cleat_weights *weights, const cleat_setting_sink *sink, cleat_error *error) {
    const cJSON *labels;
    cleat_status status = configure(weights, sink, error);
    if (!status)
        status = cleat_weights_member(weights, "id2label", CLEAT_JSON_OBJECT | CLEAT_JSON_NULL, &labels, error);
    if (status || !labels) return status;
    char path[4096];
    status = cleat_path_join(cleat_weights_folder(weights), "config.json", path, sizeof path, error);
    return status ? status : sink->set(sink->user, "data.names", path, "id2label", error);
}

/* The last layer has the file's classes. */
static bool keeps(const cleat_model *model, const cleat_weights *weights, const char *param) {
    const cleat_mask_own *own = model->own;
    return !own || strncmp(param, "cls.", 4) != 0 || cleat_published_same_labels(weights, own->classes, own->n_classes);
}

static bool describe(const cleat_model *model, cJSON *json) {
    cleat_segformer shape = cleat_masks_shape(model, CLEAT_MODE_PREDICT);
    const int64_t channels = model->sizes.inputs > 0 ? model->sizes.inputs : 3;
    cJSON *array = cJSON_AddArrayToObject(json, "architectures");
    bool done = array && cJSON_AddStringToObject(json, "model_type", "segformer") &&
                cJSON_AddNumberToObject(json, "num_channels", (double)channels) &&
                cJSON_AddItemToArray(array, cJSON_CreateString("SegformerForSemanticSegmentation"));
    for (int i = 0; i < LISTS && done; ++i) {
        const int64_t *values = values_of(&lists[i], &shape);
        array = cJSON_AddArrayToObject(json, lists[i].key);
        for (int stage = 0; stage < STAGES && done; ++stage)
            done = array && cJSON_AddItemToArray(array, cJSON_CreateNumber((double)values[stage]));
    }
    if (!cJSON_GetObjectItemCaseSensitive(json, "id2label"))
        done = done && cJSON_AddNumberToObject(json, "num_labels", (double)shape.classes);
    done = done && cJSON_AddNumberToObject(json, "decoder_hidden_size", (double)shape.decoder) &&
           cJSON_AddNumberToObject(json, "semantic_loss_ignore_index", 255);
    return done;
}

const cleat_architecture cleat_published_segformer = {.name = "segformer",
                                                      .base = "segformer.",
                                                      .names = names,
                                                      .other_names = other_names,
                                                      .ignored = ignored,
                                                      .config = config,
                                                      .configure = configure_masks,
                                                      .describe = describe,
                                                      .keeps = keeps};

const cleat_architecture cleat_published_emberformer_decoder = {.name = "segformer",
                                                                .base = "segformer.",
                                                                .names = emberformer_names,
                                                                .other_names = other_emberformer_names,
                                                                .ignored = ignored,
                                                                .config = config,
                                                                .configure = set_shape,
                                                                .keeps = keeps};
