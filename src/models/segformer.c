/* S4, the spatial part by itself: images to masks of two classes, by a SegFormer. Loss: weighted binary cross entropy (or
 * focal loss) and Dice loss, a mean over the images of a window. */
#include "cleat/ops.h"
#include "models/masks.h"

#include <string.h>

static const char *const terms[] = {"mask"};

enum { MASK = 1 }; /* of the dataset's fields */
enum { USUAL_CHANNELS = 3 };

static int64_t fixed_length(const cleat_model *model) {
    return model->profile.data.image_size;
}

static cleat_status open_data(cleat_model *model, const char *path, cleat_mode mode, const char *fitted,
                              cleat_dataset **dataset, cleat_error *error) {
    cleat_image_options options = cleat_model_image_options(model, mode, fitted);
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
    *dataset = opened;
    return CLEAT_OK;
}

static int64_t channels_of(const cleat_model *model) {
    int64_t asked = model->profile.data.channels;
    if (model->sizes.inputs > 0) return model->sizes.inputs;
    return asked == CLEAT_AUTO ? USUAL_CHANNELS : asked;
}

static void build(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch, int64_t length,
                  cleat_model_graph *built) {
    const int64_t image[4] = {batch, length, length, channels_of(model)};
    const bool reference = cleat_masks_shape(model, mode).classes > 1;
    cleat_tensor *x = cleat_model_add_values(graph, "image", 4, image), *mask = NULL;
    if (mode != CLEAT_MODE_PREDICT) mask = cleat_input(graph, "mask", CLEAT_I32, 3, image);
    cleat_model_inputs inputs = cleat_model_add_inputs(graph, mode, reference ? 3 : 1, image);
    cleat_tensor *logits = cleat_masks_segment(model, graph, mode, x, &inputs);
    cleat_masks_add_loss(model, graph, mode, logits, mask, &inputs, built);
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
        if (status == CLEAT_OK)
            status = cleat_masks_write(model, cleat_dataset_id(p->dataset, p->sample), p->output, p->length, p->length,
                                       p->length, height, width, folder, error);
    }
    return status;
}

/* --- reference trajectories ----------------------------------------------------------------------------------- */

/* "per-pixel cross entropy", or with one class "mask loss of the picture", with "dims", "heads", "sr", "depth", "decoder", "px" */
static cleat_status from_reference(const cleat_reference_config *config, cleat_model *model, cleat_error *error) {
    cleat_segformer shape = {.stem_stride = 4};
    const bool one = cleat_reference_loss_says(config, "mask loss of the picture");
    if (!(one ? cleat_masks_read_loss(config, &model->profile)
              : cleat_reference_loss_says(config, "per-pixel cross entropy")) ||
        !cleat_masks_read_shape(config, "heads", &shape))
        return CLEAT_ERR_NOT_SUPPORTED;
    shape.classes = cleat_reference_size(config, "classes", "cls.weight", 0);
    model->sizes.inputs = cleat_reference_size(config, "inputs", "pe.0.weight", 1);
    model->profile.data.image_size = cleat_reference_size(config, "px", NULL, 0);
    model->profile.model.dropout = 0;
    if ((shape.classes == 1) != one || shape.classes < 1 || model->sizes.inputs < 1 ||
        model->profile.data.image_size < 1)
        return CLEAT_ERR_NOT_SUPPORTED;
    cleat_status status = cleat_masks_make_own(model, error);
    if (status == CLEAT_OK) ((cleat_mask_own *)model->own)->shape = shape;
    return status;
}

/* input f32 [B, C, H, W] as PyTorch has it, target i64 [B, H, W] */
static void reference_arrays(const cleat_model *model, cleat_reference *r) {
    const int64_t size = model->profile.data.image_size;
    r->input = (cleat_reference_array){.rank = 4, .shape = {r->batch, channels_of(model), size, size}};
    r->target = (cleat_reference_array){.integers = true, .below = 2, .rank = 3, .shape = {r->batch, size, size}};
}

static void reference_input(const cleat_model *model, const cleat_reference *r, const char *name, void *values) {
    const int64_t size = model->profile.data.image_size, pixels = r->batch * size * size;
    const bool each_pixel = cleat_masks_shape(model, CLEAT_MODE_TRAIN).classes > 1;
    if (strcmp(name, "image") == 0) cleat_reference_channels_last(&r->input, values);
    if (strcmp(name, "mask") == 0) cleat_reference_integers(&r->target, values);
    if (strcmp(name, "scale") == 0)
        for (int64_t i = 0; i < (each_pixel ? pixels : r->batch); ++i)
            ((float *)values)[i] = 1.0f / (float)(each_pixel ? pixels : r->batch);
}

const cleat_model_class cleat_mask_segformer = {.name = "mask_segformer",
                                                .terms = terms,
                                                .n_terms = 1,
                                                .open_data = open_data,
                                                .fixed_length = fixed_length,
                                                .build = build,
                                                .sample_weight = cleat_masks_sample_weight,
                                                .metric_state_size = cleat_masks_metric_state_size,
                                                .metric_update = metric_update,
                                                .metric_compute = cleat_masks_metric_compute,
                                                .write = write,
                                                .writes_each = true,
                                                .from_reference = from_reference,
                                                .reference_arrays = reference_arrays,
                                                .reference_input = reference_input};
