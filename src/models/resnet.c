/* Image classification with a residual network. */
#include "nn/resnet.h"
#include "graph/graph.h"
#include "models/image_classifier.h"
#include "models/published/images.h"
#include "nn/transformer.h"

#include <cjson/cJSON.h>
#include <string.h>

typedef enum resnet_depth { RESNET_18, RESNET_34, RESNET_50, RESNET_101, RESNET_152 } resnet_depth;
static const char *const depth_names[] = {"18", "34", "50", "101", "152", NULL};
typedef enum resnet_stem { STEM_LARGE, STEM_SMALL } resnet_stem;
static const char *const stem_names[] = {"large", "small", NULL};

typedef struct resnet_settings {
    cleat_image_classifier_settings classifier; /* first member, as image_classifier.c requires */
    resnet_depth depth;
    int64_t width; /* channels of the first stage */
    resnet_stem stem;
    cleat_int_list blocks, widths;
    int64_t stem_width, expansion; /* 0: auto */
} resnet_settings;

#define RECORD resnet_settings
#include "ini/rows.h"

static const cleat_key keys[] = {
    DROPOUT_ROW(classifier.dropout),
    {FIELD(model, depth, depth), CHOICE(depth_names, "18"), SHAPES,
     .help = "ResNet depth: basic blocks of two convolutions (18, 34) or bottlenecks of three (50, 101, 152)."},
    {FIELD(model, width, width), INT(4, 1024, "64"), SHAPES,
     .help = "Channels of the first stage; each of the three later stages doubles them."},
    {FIELD(model, stem, stem), CHOICE(stem_names, "large"), SHAPES,
     .help = "Stem: 7 x 7 convolution with stride 2 and max pooling (large), or 3 x 3 convolution for small images."},
    BLOCKS_ROW(blocks),
    WIDTHS_ROW(widths),
    {FIELD(model, stem_width, stem_width), INT(1, 4096, "auto"), .word = "auto", .word_value = 0, SHAPES_LATER,
     .help = "Channels of the stem; auto: model.width."},
    {FIELD(model, expansion, expansion), INT(1, 16, "auto"), .word = "auto", .word_value = 0, SHAPES_LATER,
     .help = "1: basic blocks; otherwise bottlenecks with this expansion factor; auto: from the depth."},
    IMAGE_CLASSIFIER_ROWS(classifier),
    {.name = NULL},
};

static cleat_status check(const void *settings, const cleat_record *record, cleat_error *error) {
    const resnet_settings *s = settings;
    cleat_status status = cleat_stages_check(&s->blocks, &s->widths, record, error);
    return status ? status : cleat_image_classifier_check(&s->classifier, record, error);
}

static cleat_resnet shape_of(const cleat_model *model) {
    static const int64_t blocks[][CLEAT_RESNET_STAGES] = {[RESNET_18] = {2, 2, 2, 2},
                                                          [RESNET_34] = {3, 4, 6, 3},
                                                          [RESNET_50] = {3, 4, 6, 3},
                                                          [RESNET_101] = {3, 4, 23, 3},
                                                          [RESNET_152] = {3, 8, 36, 3}};
    const resnet_settings *s = model->settings;
    cleat_resnet shape = {.stem_width = s->stem_width ? s->stem_width : s->width,
                          .expansion = s->expansion ? s->expansion : (s->depth >= RESNET_50 ? 4 : 1),
                          .large_stem = s->stem == STEM_LARGE};
    memcpy(shape.blocks, blocks[s->depth], sizeof shape.blocks);
    shape.stages = cleat_stages_of(&s->blocks, model->sizes.blocks, shape.blocks);
    for (int64_t i = 0; i < shape.stages; ++i)
        shape.widths[i] = s->widths.count > i ? s->widths.values[i] : s->width << i;
    return shape;
}

static int64_t layers(const cleat_model *model) {
    const cleat_resnet shape = shape_of(model);
    return cleat_nn_resnet_layers(&shape);
}

static int64_t layer_of(const cleat_model *model, const char *param) {
    const cleat_resnet shape = shape_of(model);
    return cleat_nn_resnet_layer_of(&shape, param);
}

/* Mean over height and width: [B, H, W, D] -> [B, D] */
static cleat_tensor *global_avg_pool(cleat_graph *graph, cleat_tensor *x) {
    if (!x) return NULL;
    const int64_t rows[3] = {x->shape[0], x->shape[1] * x->shape[2], x->shape[3]};
    return cleat_mean_pool(graph, cleat_reshape(graph, x, 3, rows), NULL);
}

static void build(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch, int64_t length,
                  cleat_model_graph *built) {
    const cleat_resnet shape = shape_of(model);
    cleat_image_classifier_graph g = cleat_image_classifier_begin(model, graph, mode, batch, length, built);
    const cleat_norm_mode norm = cleat_model_norm_mode(graph, mode, &g.inputs);
    cleat_tensor *x = cleat_nn_resnet(graph, g.image, &shape, &norm); /* [B, h, w, D] */
    x = global_avg_pool(graph, x);                                    /* [B, D] */
    x = cleat_image_classifier_head(&g, x);
    const int64_t classes = cleat_image_classifier_sizes(model).classes;
    cleat_image_classifier_end(&g, cleat_nn_linear(graph, "fc", x, classes, NULL)); /* [B, classes] */
}

bool cleat_resnet_describe(const cleat_model *model, cJSON *config) {
    const cleat_resnet shape = shape_of(model);
    /* timm's bottlenecks have an expansion of 4 and may have wider convolutions: base_width is 64 for plain ones. */
    const int64_t wider = shape.expansion == 2 ? 2 : 1;
    int64_t planes[CLEAT_RESNET_STAGES];
    for (int64_t i = 0; i < shape.stages; ++i) planes[i] = shape.widths[i] / wider;
    cJSON *arguments = cleat_published_add_timm(model, config, shape.expansion > 1 ? "resnet50" : "resnet18");
    bool done = arguments && cleat_published_add_list(arguments, "layers", shape.blocks, shape.stages) &&
                cleat_published_add_list(arguments, "channels", planes, shape.stages);
    if (wider > 1) done = done && cJSON_AddNumberToObject(arguments, "base_width", (double)(64 * wider));
    return done;
}

bool cleat_resnet_describe_transformers(const cleat_model *model, cJSON *config) {
    const cleat_resnet shape = shape_of(model);
    int64_t outputs[CLEAT_RESNET_STAGES];
    for (int64_t i = 0; i < shape.stages; ++i) outputs[i] = shape.expansion * shape.widths[i];
    return cleat_published_add_transformers(model, config, "resnet", "ResNetForImageClassification") &&
           cleat_published_add_list(config, "depths", shape.blocks, shape.stages) &&
           cleat_published_add_list(config, "hidden_sizes", outputs, shape.stages) &&
           cJSON_AddNumberToObject(config, "embedding_size", (double)shape.stem_width) &&
           cJSON_AddStringToObject(config, "layer_type", shape.expansion > 1 ? "bottleneck" : "basic");
}

static const cleat_architecture *const architectures[] = {&cleat_published_resnet, &cleat_published_resnet_transformers,
                                                          NULL};

/* All have a stem of one 7 x 7 convolution. In timm and torchvision it has 64 channels, and there are four
 * stages of the blocks that cleat_resnet_describe supports; the bottlenecks of transformers have an expansion
 * of 4. */
static const cleat_architecture *architecture_of(const cleat_model *model, bool timm) {
    const cleat_resnet shape = shape_of(model);
    const bool usual = shape.large_stem && (shape.expansion == 1 || shape.expansion == 4);
    bool known = shape.large_stem && shape.stem_width == 64 && shape.stages == CLEAT_RESNET_STAGES &&
                 (usual || shape.expansion == 2);
    for (int64_t i = 0; i < shape.stages && shape.expansion == 2; ++i) known = known && shape.widths[i] % 2 == 0;
    if (usual && !(timm && known)) return &cleat_published_resnet_transformers;
    return known ? &cleat_published_resnet : NULL;
}

void cleat_resnet_place(const cleat_model *model, int64_t number, int64_t *stage, int64_t *block) {
    const cleat_resnet shape = shape_of(model);
    int64_t i = 0;
    for (--number; i + 1 < shape.stages && number >= shape.blocks[i]; ++i) number -= shape.blocks[i];
    *stage = i;
    *block = number;
}

const cleat_model_class cleat_image_resnet = {.name = "image_resnet",
                                              .keys = keys,
                                              .settings_size = sizeof(resnet_settings),
                                              .check = check,
                                              .build = build,
                                              .architectures = architectures,
                                              .architecture = architecture_of,
                                              .layer_of = layer_of,
                                              .layers = layers,
                                              IMAGE_CLASSIFIER_CLASS};
