/* Segmentation of images into masks of two classes with a SegFormer. Loss:
 * weighted binary cross entropy (or focal loss) and Dice loss, the mean over the images of a global batch. */
#include "cleat/ops.h"
#include "core/memory.h"
#include "data/image/common.h"
#include "models/masks.h"

#include <string.h>

/* --- settings ------------------------------------------------------------------------------------------------- */

typedef struct segformer_settings {
    cleat_mask_settings mask; /* first member, as masks.c requires */
    cleat_image_settings data;
} segformer_settings;

#define RECORD segformer_settings
#include "ini/rows.h"

static const cleat_key keys[] = {
    DROPOUT_ROW(mask.dropout),
    SEGFORMER_ROWS(mask),
    THRESHOLD_ROW(mask),
    PATH_ROW(mask.common),
    VAL_FRACTION_ROW(data.options.val_fraction),
    TEST_FRACTION_ROW(data.options.test_fraction),
    LIMIT_ROW(mask.common),
    IMAGE_ROWS(data),
    MASK_LOSS_ROWS(mask),
    {.name = NULL},
};

static void defaults(void *settings) {
    ((segformer_settings *)settings)->data.options = cleat_image_defaults();
}

static cleat_status check(const void *settings, const cleat_record *record, cleat_error *error) {
    return cleat_image_settings_check(&((const segformer_settings *)settings)->data, record, error);
}

static const segformer_settings *settings_of(const cleat_model *model) {
    return model->settings;
}

static const char *const terms[] = {"mask"};

enum { MASK = 1 }; /* index of the dataset's field */
enum { USUAL_CHANNELS = 3 };

static int64_t fixed_length(const cleat_model *model) {
    return settings_of(model)->data.options.size;
}

static cleat_status open_data(cleat_model *model, const char *path, cleat_mode mode, const char *fitted,
                              cleat_dataset **dataset, cleat_error *error) {
    const cleat_image_options options = cleat_image_settings_options(&settings_of(model)->data, mode, fitted);
    cleat_dataset *opened = NULL;
    cleat_status status = cleat_masks_open(path, &options, &opened, error);
    if (status == CLEAT_OK) status = cleat_masks_make_own(model, error);
    if (status != CLEAT_OK) {
        cleat_dataset_destroy(opened);
        return status;
    }
    cleat_image_info info = cleat_image_describe(opened);
    ((cleat_mask_own *)model->own)->positive = info.positive;
    model->sizes.inputs = info.channels;
    if (mode == CLEAT_MODE_TRAIN && !(fitted && *fitted)) cleat_masks_log_balance(model, path);
    *dataset = opened;
    return CLEAT_OK;
}

static int64_t channels_of(const cleat_model *model) {
    const int64_t asked = settings_of(model)->data.options.channels;
    if (model->sizes.inputs > 0) return model->sizes.inputs;
    return asked ? asked : USUAL_CHANNELS;
}

static int64_t layers(const cleat_model *model) {
    const cleat_segformer shape = cleat_masks_shape(model, CLEAT_MODE_TRAIN);
    return cleat_nn_segformer_layers(&shape);
}

static int64_t layer_of(const cleat_model *model, const char *param) {
    const cleat_segformer shape = cleat_masks_shape(model, CLEAT_MODE_TRAIN);
    return cleat_nn_segformer_layer_of(&shape, param);
}

static void build(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch, int64_t length,
                  cleat_model_graph *built) {
    const int64_t image[4] = {batch, length, length, channels_of(model)};
    const int weight_rank = model->sizes.classes > 1 ? 3 : 1; /* weights per pixel, or per image */
    cleat_tensor *x = cleat_model_add_values(graph, "image", 4, image), *mask = NULL;
    if (mode != CLEAT_MODE_PREDICT) mask = cleat_input(graph, "mask", CLEAT_I32, 3, image);
    cleat_model_inputs inputs = cleat_model_add_inputs(graph, mode, weight_rank, image);
    cleat_tensor *logits = cleat_masks_segment(model, graph, mode, x, &inputs);
    cleat_masks_add_loss(model, graph, mode, logits, mask, &inputs, built);
}

static size_t fields(const cleat_model *model, cleat_synthetic_field *made) {
    const int64_t image[3] = {-1, -1, channels_of(model)}, classes = model->sizes.classes;
    made[0] = cleat_synthetic_floats("image", 3, image);
    made[MASK] = cleat_synthetic_integers("mask", classes > 1 ? classes : 2, 2, image);
    return MASK + 1;
}

static cleat_status metric_update(const cleat_model *model, const cleat_host_batch *batch, const float *output,
                                  double *metric_state, cleat_error *error) {
    const int64_t pixels = batch->length * batch->length;
    const int32_t *mask = batch->fields[MASK];
    (void)error;
    for (int64_t b = 0; b < batch->count; ++b)
        cleat_masks_metric_update(model, output + b * pixels, mask + b * pixels, pixels, NULL, metric_state);
    return CLEAT_OK;
}

static cleat_status write(const cleat_model *model, const cleat_prediction *predictions, size_t count,
                          const char *folder, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < count && status == CLEAT_OK; ++i) {
        const cleat_prediction *p = &predictions[i];
        int64_t height, width;
        status = cleat_masks_file_size(p->dataset, p->sample, &height, &width, error);
        if (status) return status;
        const cleat_mask_output output = {.folder = folder,
                                          .id = cleat_dataset_id(p->dataset, p->sample),
                                          .logits = p->output,
                                          .height = p->length,
                                          .width = p->length,
                                          .stride = p->length,
                                          .out_height = height,
                                          .out_width = width};
        status = cleat_masks_write(model, &output, error);
    }
    return status;
}

static cleat_status add_example(const cleat_model *model, const cleat_evaluated *evaluated, size_t index,
                                cleat_text *json, cleat_error *error) {
    const cleat_prediction *prediction = &evaluated->predictions[index];
    const int64_t size = cleat_dataset_length(prediction->dataset, prediction->sample), stride = prediction->length;
    cleat_image image = {.pixels = NULL};
    int32_t *mask = cleat_alloc((size_t)(stride * stride), sizeof *mask);
    void *slots[] = {NULL, [MASK] = mask};
    if (!mask) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a mask");
    cleat_status status = cleat_dataset_fill(prediction->dataset, prediction->sample, stride, NULL, slots, error);
    if (status == CLEAT_OK) status = cleat_image_of_sample(prediction->dataset, prediction->sample, &image, error);
    if (status == CLEAT_OK) {
        const cleat_mask_example example = {.image = &image,
                                            .logits = prediction->output,
                                            .mask = mask,
                                            .height = size,
                                            .width = size,
                                            .stride = stride};
        status = cleat_masks_add_example(model, prediction, &example, json, error);
    }
    cleat_image_free(&image);
    cleat_free(mask);
    return status;
}

static const cleat_model_examples examples = {
    .add = add_example, .confusion = cleat_masks_confusion, .baseline = cleat_masks_baseline};

const cleat_model_class cleat_mask_segformer = {.name = "mask_segformer",
                                                .keys = keys,
                                                .settings_size = sizeof(segformer_settings),
                                                .defaults = defaults,
                                                .check = check,
                                                .metrics = cleat_masks_metrics,
                                                .terms = terms,
                                                .n_terms = 1,
                                                .open_data = open_data,
                                                .fields = fields,
                                                .fixed_length = fixed_length,
                                                .build = build,
                                                .layer_of = layer_of,
                                                .layers = layers,
                                                .sample_weight = cleat_masks_sample_weight,
                                                .metric_state_size = cleat_masks_metric_state_size,
                                                .metric_update = metric_update,
                                                .metric_compute = cleat_masks_metric_compute,
                                                .write = write,
                                                .writes_each = true,
                                                .examples = &examples};
