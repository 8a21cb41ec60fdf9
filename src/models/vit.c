/* Image classification with a vision transformer. */
#include "nn/vit.h"
#include "models/image_classifier.h"
#include "models/published/images.h"

#include <cjson/cJSON.h>

typedef enum vit_pooling { VIT_TOKEN, VIT_MEAN } vit_pooling;
static const char *const pooling_names[] = {"token", "mean", NULL};

typedef struct vit_settings {
    cleat_image_classifier_settings classifier; /* first member, as image_classifier.c requires */
    cleat_encoder_settings encoder;             /* its dropout is the classifier's */
    int64_t patch;
    vit_pooling pooling;
    bool class_token;
    double norm_eps;
} vit_settings;

#define RECORD vit_settings
#include "ini/rows.h"

static const cleat_key keys[] = {
    ENCODER_SIZE_ROWS(encoder),
    DROPOUT_ROW(classifier.dropout),
    {FIELD(model, patch, patch), INT(1, 32, "16"), SHAPES,
     .help = "Side of a patch in pixels; data.image_size must be a multiple of it."},
    {FIELD(model, pooling, pooling), CHOICE(pooling_names, "token"), SHAPES,
     .help = "What is classified: the class token, or the mean over the patches."},
    {FIELD(model, class_token, class_token), BOOL("true"), SHAPES,
     .help = "Learned class token in front of the patches; required by pooling = token."},
    NORM_EPS_ROW(norm_eps),
    IMAGE_CLASSIFIER_ROWS(classifier),
    {.name = NULL},
};

static const vit_settings *settings_of(const cleat_model *model) {
    return model->settings;
}

static cleat_status check(const void *settings, const cleat_record *record, cleat_error *error) {
    const vit_settings *s = settings;
    const int64_t size = s->classifier.data.options.size;
    cleat_status status = cleat_encoder_check(&s->encoder, record, error);
    if (status) return status;
    if (s->pooling == VIT_TOKEN && !s->class_token)
        return cleat_record_contradict(record, error, "model.pooling", "model.class_token",
                                       "there is no class token to classify; set pooling = mean");
    if (size % s->patch)
        return cleat_record_contradict(record, error, "data.image_size", "model.patch",
                                       "images must consist of whole patches: e.g. %lld pixels",
                                       (long long)(size / s->patch ? size / s->patch * s->patch : s->patch));
    return cleat_image_classifier_check(&s->classifier, record, error);
}

static void build(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch, int64_t length,
                  cleat_model_graph *built) {
    const float init_std = 0.02f; /* as published */
    const vit_settings *s = settings_of(model);
    cleat_vit shape = {.blocks = cleat_encoder_shape(&s->encoder, mode),
                       .patch = s->patch,
                       .class_token = s->class_token,
                       .mean = s->pooling == VIT_MEAN};
    shape.blocks.dropout = mode == CLEAT_MODE_TRAIN ? (float)s->classifier.dropout : 0;
    shape.blocks.init_std = init_std;
    shape.blocks.norm_eps = (float)s->norm_eps;
    cleat_image_classifier_graph g = cleat_image_classifier_begin(model, graph, mode, batch, length, built);
    cleat_tensor *x = cleat_nn_vit(graph, g.image, g.inputs.rng, &shape); /* [B, D] */
    x = cleat_image_classifier_head(&g, x);
    const int64_t classes = cleat_image_classifier_sizes(model).classes;
    cleat_image_classifier_end(&g, cleat_nn_linear_normal(graph, "head", x, classes, init_std, NULL));
}

static int64_t layers(const cleat_model *model) {
    return settings_of(model)->encoder.layers;
}

static int64_t layer_of(const cleat_model *model, const char *param) {
    return cleat_nn_encoder_layer_of(param, layers(model));
}

bool cleat_vit_describe(const cleat_model *model, cJSON *config) {
    const vit_settings *s = settings_of(model);
    cJSON *arguments = cleat_published_add_timm(model, config, "vit_base_patch16_224");
    const double ratio = (double)s->encoder.d_ff / (double)s->encoder.d_model;
    return arguments && cJSON_AddNumberToObject(arguments, "img_size", (double)s->classifier.data.options.size) &&
           cJSON_AddNumberToObject(arguments, "patch_size", (double)s->patch) &&
           cJSON_AddNumberToObject(arguments, "embed_dim", (double)s->encoder.d_model) &&
           cJSON_AddNumberToObject(arguments, "depth", (double)s->encoder.layers) &&
           cJSON_AddNumberToObject(arguments, "num_heads", (double)s->encoder.heads) &&
           cJSON_AddNumberToObject(arguments, "mlp_ratio", ratio) &&
           cJSON_AddStringToObject(arguments, "global_pool", s->pooling == VIT_MEAN ? "avg" : "token") &&
           cJSON_AddBoolToObject(arguments, "class_token", s->class_token) &&
           cJSON_AddNumberToObject(config, "layer_norm_eps", s->norm_eps);
}

bool cleat_vit_describe_transformers(const cleat_model *model, cJSON *config) {
    const vit_settings *s = settings_of(model);
    return cleat_published_add_transformers(model, config, "vit", "ViTForImageClassification") &&
           cJSON_AddNumberToObject(config, "hidden_size", (double)s->encoder.d_model) &&
           cJSON_AddNumberToObject(config, "num_hidden_layers", (double)s->encoder.layers) &&
           cJSON_AddNumberToObject(config, "num_attention_heads", (double)s->encoder.heads) &&
           cJSON_AddNumberToObject(config, "intermediate_size", (double)s->encoder.d_ff) &&
           cJSON_AddNumberToObject(config, "patch_size", (double)s->patch) &&
           cJSON_AddNumberToObject(config, "layer_norm_eps", s->norm_eps);
}

static const cleat_architecture *const architectures[] = {&cleat_published_vit, &cleat_published_vit_torchvision,
                                                          &cleat_published_vit_transformers, NULL};

static const cleat_architecture *architecture_of(const cleat_model *model, bool timm) {
    (void)timm;
    const vit_settings *s = settings_of(model);
    if (s->pooling == VIT_MEAN) return &cleat_published_vit_mean;
    /* timm's eps is 1e-6, that of transformers 1e-12. */
    return s->norm_eps < 1e-7 ? &cleat_published_vit_transformers : &cleat_published_vit;
}

const cleat_model_class cleat_image_vit = {.name = "image_vit",
                                           .keys = keys,
                                           .settings_size = sizeof(vit_settings),
                                           .check = check,
                                           .build = build,
                                           .layer_of = layer_of,
                                           .layers = layers,
                                           .architectures = architectures,
                                           .architecture = architecture_of,
                                           IMAGE_CLASSIFIER_CLASS};
