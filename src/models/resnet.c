/* Image classification with a residual network. Loss: cross entropy, the mean over the images of a
 * global batch, with label smoothing and class weights. */
#include "nn/resnet.h"
#include "cleat/ops.h"
#include "core/memory.h"
#include "data/image/common.h"
#include "models/classes.h"
#include "models/image_models.h"
#include "nn/transformer.h"

#include <stdio.h>
#include <string.h>

/* --- settings ------------------------------------------------------------------------------------------------- */

typedef enum resnet_depth { RESNET_18, RESNET_34 } resnet_depth;
static const char *const depth_names[] = {"18", "34", NULL};
typedef enum resnet_stem { STEM_LARGE, STEM_SMALL } resnet_stem;
static const char *const stem_names[] = {"large", "small", NULL};

typedef struct resnet_settings {
    cleat_data_settings common;
    double dropout;
    resnet_depth depth;
    int64_t width; /* channels of the first stage */
    resnet_stem stem;
    cleat_image_settings data;
    cleat_class_loss_settings loss;
} resnet_settings;

#define RECORD resnet_settings
#include "ini/rows.h"

static const cleat_key keys[] = {
    DROPOUT_ROW(dropout),
    {FIELD(model, depth, depth), CHOICE(depth_names, "18"), SHAPES,
     .help = "ResNet depth: stages of 2, 2, 2, 2 (18) or 3, 4, 6, 3 (34) basic blocks of two convolutions."},
    {FIELD(model, width, width), INT(4, 1024, "64"), SHAPES,
     .help = "Channels of the first stage; each of the three later stages doubles them."},
    {FIELD(model, stem, stem), CHOICE(stem_names, "large"), SHAPES,
     .help = "Stem: 7 x 7 convolution with stride 2 and max pooling (large), or 3 x 3 convolution for small images."},
    PATH_ROW(common),
    VAL_FRACTION_ROW(data.options.val_fraction),
    TEST_FRACTION_ROW(data.options.test_fraction),
    LIMIT_ROW(common),
    {FIELD(data, labels, data.options.classes), TEXT(0, 1023, ""), COMPUTES,
     .help = "Classes, or entity types, in order, separated by spaces; empty: those of the training split."},
    IMAGE_ROWS(data),
    CLASS_LOSS_ROWS(loss),
    {.name = NULL},
};

static void defaults(void *settings) {
    ((resnet_settings *)settings)->data.options = cleat_image_defaults();
}

static cleat_status check(const void *settings, const cleat_record *record, cleat_error *error) {
    const cleat_image_options *options = &((const resnet_settings *)settings)->data.options;
    return cleat_fractions_check(options->val_fraction, options->test_fraction, record, error);
}

static const resnet_settings *settings_of(const cleat_model *model) {
    return model->settings;
}

static const char *const terms[] = {"cross_entropy"};

enum { LABEL = 1 }; /* index of the dataset's field */
enum { USUAL_CLASSES = 10, USUAL_CHANNELS = 3 };

/* --- data ----------------------------------------------------------------------------------------------------- */

static int64_t fixed_length(const cleat_model *model) {
    return settings_of(model)->data.options.size;
}

static const cleat_class_source class_source = {
    .name = cleat_images_class, .samples = cleat_images_class_samples, .label = cleat_images_label};

/* model->own: cleat_class [classes] */
static cleat_status read_classes(cleat_model *model, const cleat_dataset *dataset, int64_t classes,
                                 cleat_error *error) {
    cleat_class *known = cleat_alloc((size_t)classes, sizeof *known);
    if (!known) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %lld classes", (long long)classes);
    cleat_classes_read(&class_source, dataset, settings_of(model)->loss.class_weights, classes, known);
    cleat_free(model->own);
    model->own = known;
    return CLEAT_OK;
}

static cleat_status open_data(cleat_model *model, const char *path, cleat_mode mode, const char *fitted,
                              cleat_dataset **dataset, cleat_error *error) {
    const cleat_image_options options = cleat_image_settings_options(&settings_of(model)->data, mode, fitted);
    cleat_dataset *opened = NULL;
    cleat_status status = cleat_images_open(path, &options, &opened, error);
    if (status != CLEAT_OK) return status;
    cleat_image_info info = cleat_image_describe(opened);
    status = read_classes(model, opened, info.classes, error);
    if (status == CLEAT_OK && mode == CLEAT_MODE_TRAIN && !(fitted && *fitted))
        status = cleat_classes_warn(&class_source, opened, path, settings_of(model)->loss.class_weights, info.classes,
                                    model->own, error);
    if (status != CLEAT_OK) {
        cleat_dataset_destroy(opened);
        return status;
    }
    model->sizes.inputs = info.channels;
    model->sizes.classes = info.classes;
    *dataset = opened;
    return CLEAT_OK;
}

static int64_t count_words(const char *text) {
    int64_t words = 0;
    for (; *text; ++text) words += *text != ' ' && (text[1] == ' ' || text[1] == 0);
    return words;
}

/* Sizes of a profile without data: those it sets, or the usual ones. */
static cleat_model_sizes sizes_of(const cleat_model *model) {
    const cleat_image_options *data = &settings_of(model)->data.options;
    cleat_model_sizes sizes = model->sizes;
    if (sizes.classes == 0) sizes.classes = *data->classes ? count_words(data->classes) : USUAL_CLASSES;
    if (sizes.inputs == 0) sizes.inputs = data->channels ? data->channels : USUAL_CHANNELS;
    return sizes;
}

/* --- the graph ------------------------------------------------------------------------------------------------ */

static cleat_resnet shape_of(const cleat_model *model) {
    const resnet_settings *s = settings_of(model);
    cleat_resnet shape = {
        .width = s->width, .stages = CLEAT_RESNET_STAGES, .blocks = {2, 2, 2, 2}, .large_stem = s->stem == STEM_LARGE};
    static const int64_t blocks_of_34[CLEAT_RESNET_STAGES] = {3, 4, 6, 3};
    if (s->depth == RESNET_34) memcpy(shape.blocks, blocks_of_34, sizeof blocks_of_34);
    if (model->sizes.blocks[0] > 0) {
        memcpy(shape.blocks, model->sizes.blocks, sizeof shape.blocks);
        for (shape.stages = 1; shape.stages < CLEAT_RESNET_STAGES && shape.blocks[shape.stages] > 0;) ++shape.stages;
    }
    return shape;
}

static void build(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch, int64_t length,
                  cleat_model_graph *built) {
    const cleat_model_sizes sizes = sizes_of(model);
    const resnet_settings *s = settings_of(model);
    const cleat_resnet shape = shape_of(model);
    const int64_t image[4] = {batch, length, length, sizes.inputs};
    cleat_tensor *x = cleat_model_add_values(graph, "image", 4, image), *label = NULL;
    if (mode != CLEAT_MODE_PREDICT) label = cleat_input(graph, "label", CLEAT_I32, 1, &batch);
    cleat_model_inputs inputs = cleat_model_add_inputs(graph, mode, 1, &batch);
    const cleat_norm_mode norm = cleat_model_norm_mode(graph, mode, &inputs);
    x = cleat_nn_resnet(graph, x, &shape, &norm); /* [B, h, w, D] */
    x = cleat_model_global_avg_pool(graph, x);    /* [B, D] */
    if (mode == CLEAT_MODE_TRAIN && s->dropout > 0) x = cleat_dropout(graph, x, inputs.rng, (float)s->dropout);
    cleat_tensor *logits = cleat_nn_linear(graph, "fc", x, sizes.classes, NULL); /* [B, classes] */
    logits = cleat_model_output(graph, logits, built);
    if (mode == CLEAT_MODE_PREDICT) return;
    cleat_tensor *loss =
        cleat_cross_entropy(graph, logits, label, inputs.sample_weight, (float)s->loss.label_smoothing);
    cleat_model_add_loss(graph, mode, &inputs, loss, built);
}

static size_t fields(const cleat_model *model, cleat_synthetic_field *made) {
    const cleat_model_sizes sizes = sizes_of(model);
    const int64_t image[3] = {-1, -1, sizes.inputs};
    made[0] = cleat_synthetic_floats("image", 3, image);
    made[LABEL] = cleat_synthetic_integers("label", sizes.classes, 0, NULL);
    return LABEL + 1;
}

/* sample_weight [B]: the class weight of each image (1 without data), divided by the number of images in
 * the global batch. */
static void sample_weight(const cleat_model *model, const cleat_host_batch *batch,
                          const cleat_global_batch *global_batch, float *values) {
    const int32_t *labels = batch->fields[LABEL];
    const cleat_class *known = model->own;
    for (int64_t b = 0; b < batch->batch; ++b)
        values[b] = labels[b] < 0 ? 0.0f : (known ? known[labels[b]].weight : 1.0f) / (float)global_batch->samples;
}

/* --- metrics and predictions ---------------------------------------------------------------------------------- */

static size_t metric_state_size(const cleat_model *model) {
    return cleat_classes_metric_state_size(model->sizes.classes);
}

static cleat_status metric_update(const cleat_model *model, const cleat_host_batch *batch, const float *output,
                                  double *metric_state, cleat_error *error) {
    (void)error;
    cleat_classes_metric_update(model->own, batch->fields[LABEL], output, batch->count, model->sizes.classes,
                                metric_state);
    return CLEAT_OK;
}

static void metric_compute(const cleat_model *model, const double *metric_state, cleat_metrics *found) {
    cleat_classes_metric_compute(model->own, model->sizes.classes, metric_state, found);
}

static cleat_status write(const cleat_model *model, const cleat_prediction *predictions, size_t count,
                          const char *folder, cleat_error *error) {
    return cleat_classes_write(&class_source, model->sizes.classes, predictions, count, folder, error);
}

/* --- examples ------------------------------------------------------------------------------------------------- */

static cleat_status add_example(const cleat_model *model, const cleat_evaluated *evaluated, size_t index,
                                cleat_text *json, cleat_error *error) {
    const cleat_prediction *prediction = &evaluated->predictions[index];
    cleat_image image;
    int32_t label;
    void *slots[] = {NULL, [LABEL] = &label};
    cleat_status status =
        cleat_dataset_fill(prediction->dataset, prediction->sample, prediction->length, NULL, slots, error);
    if (status == CLEAT_OK) status = cleat_image_of_sample(prediction->dataset, prediction->sample, &image, error);
    if (status != CLEAT_OK) return status;
    const cleat_class_example example = {.image = &image, .label = label};
    status = cleat_classes_add_example(model->own, model->sizes.classes, prediction, &example, json, error);
    cleat_image_free(&image);
    return status;
}

static void confusion_of(const cleat_model *model, const double *metric_state, cleat_confusion *confusion) {
    cleat_classes_confusion(model->own, model->sizes.classes, metric_state, confusion);
}

static cleat_status baseline_of(const cleat_model *model, const cleat_evaluated *evaluated, double *metric_state,
                                char *text, cleat_error *error) {
    (void)error;
    cleat_classes_baseline(model->own, model->sizes.classes, evaluated->metric_state, metric_state, text);
    return CLEAT_OK;
}

static const cleat_model_examples examples = {.add = add_example, .confusion = confusion_of, .baseline = baseline_of};

const cleat_model_class cleat_image_resnet = {.name = "image_resnet",
                                              .keys = keys,
                                              .settings_size = sizeof(resnet_settings),
                                              .defaults = defaults,
                                              .check = check,
                                              .metrics = cleat_classes_metrics,
                                              .terms = terms,
                                              .n_terms = 1,
                                              .open_data = open_data,
                                              .fields = fields,
                                              .fixed_length = fixed_length,
                                              .build = build,
                                              .sample_weight = sample_weight,
                                              .metric_state_size = metric_state_size,
                                              .metric_update = metric_update,
                                              .metric_compute = metric_compute,
                                              .write = write,
                                              .examples = &examples};
