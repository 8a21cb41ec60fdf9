/* Image classification with a ConvNeXt. */
#include "nn/convnext.h"
#include "models/image_classifier.h"
#include "models/published/images.h"
#include "nn/transformer.h"

#include <cjson/cJSON.h>

enum { STAGES = CLEAT_CONVNEXT_STAGES };

typedef enum convnext_backbone { CONVNEXT_TINY, CONVNEXT_SMALL, CONVNEXT_BASE, CONVNEXT_LARGE } convnext_backbone;
static const char *const backbone_names[] = {"tiny", "small", "base", "large", NULL};

typedef struct convnext_settings {
    cleat_image_classifier_settings classifier; /* first member, as image_classifier.c requires */
    convnext_backbone backbone;
    cleat_int_list blocks, widths;
    double norm_eps, last_norm_eps; /* CLEAT_AUTO: equal */
} convnext_settings;

#define RECORD convnext_settings
#include "ini/rows.h"

static const cleat_key keys[] = {
    DROPOUT_ROW(classifier.dropout),
    {FIELD(model, backbone, backbone), CHOICE(backbone_names, "tiny"), SHAPES,
     .help = "ConvNeXt size: 29, 50, 89 or 198 million parameters with 1000 classes."},
    BLOCKS_ROW(blocks),
    WIDTHS_ROW(widths),
    NORM_EPS_ROW(norm_eps),
    {FIELD(model, last_norm_eps, last_norm_eps), FLOAT(1e-12, 1e-2, "auto"), OR_AUTO, COMPUTES_LATER,
     .help = "Epsilon of the layer normalisation after the mean; auto: model.norm_eps."},
    IMAGE_CLASSIFIER_ROWS(classifier),
    {.name = NULL},
};

static const convnext_settings *settings_of(const cleat_model *model) {
    return model->settings;
}

static cleat_status check(const void *settings, const cleat_record *record, cleat_error *error) {
    const convnext_settings *s = settings;
    const int64_t size = s->classifier.data.options.size;
    const int64_t stages = s->blocks.count > 0 ? s->blocks.count : STAGES, reduction = INT64_C(2) << stages;
    cleat_status status = cleat_stages_check(&s->blocks, &s->widths, record, error);
    if (!status && size < reduction)
        status = cleat_record_refuse(record, error, "data.image_size",
                                     "the %lld stages reduce images by %lld, which leaves no pixels", (long long)stages,
                                     (long long)reduction);
    return status ? status : cleat_image_classifier_check(&s->classifier, record, error);
}

static cleat_convnext shape_of(const cleat_model *model) {
    static const cleat_convnext sizes[] = {
        [CONVNEXT_TINY] = {.widths = {96, 192, 384, 768}, .blocks = {3, 3, 9, 3}},
        [CONVNEXT_SMALL] = {.widths = {96, 192, 384, 768}, .blocks = {3, 3, 27, 3}},
        [CONVNEXT_BASE] = {.widths = {128, 256, 512, 1024}, .blocks = {3, 3, 27, 3}},
        [CONVNEXT_LARGE] = {.widths = {192, 384, 768, 1536}, .blocks = {3, 3, 27, 3}}};
    const convnext_settings *s = settings_of(model);
    cleat_convnext shape = sizes[s->backbone];
    shape.norm_eps = (float)s->norm_eps;
    shape.last_norm_eps = (float)(s->last_norm_eps > 0 ? s->last_norm_eps : s->norm_eps);
    shape.stages = cleat_stages_of(&s->blocks, model->sizes.blocks, shape.blocks);
    for (int64_t i = 0; i < shape.stages && i < s->widths.count; ++i) shape.widths[i] = s->widths.values[i];
    return shape;
}

static void build(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch, int64_t length,
                  cleat_model_graph *built) {
    const cleat_convnext shape = shape_of(model);
    cleat_image_classifier_graph g = cleat_image_classifier_begin(model, graph, mode, batch, length, built);
    cleat_tensor *x = cleat_nn_convnext(graph, g.image, &shape); /* [B, D] */
    x = cleat_image_classifier_head(&g, x);
    const int64_t classes = cleat_image_classifier_sizes(model).classes;
    cleat_image_classifier_end(&g, cleat_nn_linear(graph, "head", x, classes, NULL)); /* [B, classes] */
}

static int64_t layers(const cleat_model *model) {
    const cleat_convnext shape = shape_of(model);
    return cleat_nn_convnext_layers(&shape);
}

static int64_t layer_of(const cleat_model *model, const char *param) {
    const cleat_convnext shape = shape_of(model);
    return cleat_nn_convnext_layer_of(&shape, param);
}

bool cleat_convnext_describe(const cleat_model *model, cJSON *config) {
    const cleat_convnext shape = shape_of(model);
    cJSON *arguments = cleat_published_add_timm(model, config, "convnext_tiny");
    return arguments && cleat_published_add_list(arguments, "depths", shape.blocks, shape.stages) &&
           cleat_published_add_list(arguments, "dims", shape.widths, shape.stages) &&
           cJSON_AddNumberToObject(config, "layer_norm_eps", settings_of(model)->norm_eps);
}

bool cleat_convnext_describe_transformers(const cleat_model *model, cJSON *config) {
    const cleat_convnext shape = shape_of(model);
    return cleat_published_add_transformers(model, config, "convnext", "ConvNextForImageClassification") &&
           cleat_published_add_list(config, "depths", shape.blocks, shape.stages) &&
           cleat_published_add_list(config, "hidden_sizes", shape.widths, shape.stages) &&
           cJSON_AddNumberToObject(config, "num_stages", (double)shape.stages) &&
           cJSON_AddNumberToObject(config, "layer_norm_eps", settings_of(model)->last_norm_eps);
}

static const cleat_architecture *const architectures[] = {
    &cleat_published_convnext, &cleat_published_convnext_torchvision, &cleat_published_convnext_transformers, NULL};

static const cleat_architecture *architecture_of(const cleat_model *model, bool timm) {
    (void)timm;
    /* Only transformers has another eps for the last norm. */
    return settings_of(model)->last_norm_eps > 0 ? &cleat_published_convnext_transformers : &cleat_published_convnext;
}

const cleat_model_class cleat_image_convnext = {.name = "image_convnext",
                                                .keys = keys,
                                                .settings_size = sizeof(convnext_settings),
                                                .check = check,
                                                .build = build,
                                                .layer_of = layer_of,
                                                .layers = layers,
                                                .architectures = architectures,
                                                .architecture = architecture_of,
                                                IMAGE_CLASSIFIER_CLASS};
