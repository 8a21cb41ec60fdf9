/* EmberFormer: forecasts the mask of a later day from a time series of maps. The time steps of each
 * patch go through a temporal transformer, with attention masked for missing steps. The last step of its
 * output is projected to features of the patch's pixels, from which a SegFormer predicts the mask. A
 * linear skip layer classifies each pixel from its own features, because most fires keep burning in the
 * same place. The loss is that of mask_segformer. */
#include "cleat/ops.h"
#include "core/memory.h"
#include "data/maps/maps.h"
#include "graph/graph.h"
#include "models/published/segformer.h"
#include "nn/transformer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct emberformer_settings {
    cleat_mask_settings mask;       /* first member, as masks.c requires; its dropout is used by both parts */
    cleat_encoder_settings encoder; /* temporal part; its dropout is not used */
    int64_t features;               /* channels per pixel passed from the temporal part to the spatial part */
    int64_t image_size;             /* for plans without data */
    cleat_maps_options data;
} emberformer_settings;

#define RECORD emberformer_settings
#include "ini/rows.h"

static const char *const day_names[] = {"error", "skip", NULL};

static const cleat_key keys[] = {
    ENCODER_SIZE_ROWS(encoder),
    DROPOUT_ROW(mask.dropout),
    SEGFORMER_ROWS(mask),
    {FIELD(model, features, features), INT(1, 256, "3"), SHAPES,
     .help = "Channels per pixel passed from the temporal encoder to SegFormer."},
    THRESHOLD_ROW(mask),
    PATH_ROW(mask.common),
    VAL_FRACTION_ROW(data.val_fraction),
    TEST_FRACTION_ROW(data.test_fraction),
    LIMIT_ROW(mask.common),
    IMAGE_SIZE_ROW(image_size),
    FLIP_ROWS(data),
    {AT(data, inputs), TEXT(0, 1023, ""), COMPUTES,
     .help = "Input grids by their file name prefix before _YYYYMMDD, separated by spaces; empty: all."},
    {AT(data, target), TEXT(0, 127, ""), COMPUTES,
     .help = "Grid to forecast: its values above 0 are the target mask; empty: the first input."},
    {FIELD(data, history, data.lookback), INT(1, 4096, "6"), SHAPES, .help = "Maximum number of input frames (days)."},
    {FIELD(data, ahead, data.horizon), INT(1, 4096, "1"), SHAPES,
     .help = "Days from the last input frame to the forecast."},
    {AT(data, patch), INT(1, 64, "4"), SHAPES, .help = "Patch side in pixels; each patch is a sequence over time."},
    {AT(data, transform), CHOICE(cleat_transform_names, "none"), COMPUTES,
     .help = "Input transform; log1p: sign(x) log(1 + |x|), for counts."},
    {FIELD(data, missing_days, data.skip_missing), EITHER(day_names, "error"), COMPUTES,
     .help = "Days with missing files: report an error, or skip the frame."},
    {AT(data, val_days), INT(1, 1e6, "none"), OR_NONE, COMPUTES,
     .help = "Number of validation days, before the test days; none: by val_fraction."},
    {AT(data, test_days), INT(1, 1e6, "none"), OR_NONE, COMPUTES,
     .help = "Number of test days, at the end; none: by test_fraction."},
    MASK_LOSS_ROWS(mask),
    {.name = NULL},
};

static void defaults(void *settings) {
    ((emberformer_settings *)settings)->data = cleat_maps_defaults();
}

static cleat_status check(const void *settings, const cleat_record *record, cleat_error *error) {
    const emberformer_settings *s = settings;
    cleat_status status = cleat_encoder_check(&s->encoder, record, error);
    if (!status) status = cleat_masks_check_shape(&s->mask, record, error);
    return status ? status : cleat_fractions_check(s->data.val_fraction, s->data.test_fraction, record, error);
}

static const emberformer_settings *settings_of(const cleat_model *model) {
    return model->settings;
}

static const char *const terms[] = {"mask"};

enum { STEPS, LENGTHS, MASK }; /* indices of the dataset's fields */
enum { USUAL_CHANNELS = 2 };

static int64_t fixed_length(const cleat_model *model) {
    return settings_of(model)->data.lookback;
}

static cleat_status open_data(cleat_model *model, const char *path, cleat_mode mode, const char *fitted,
                              cleat_dataset **dataset, cleat_error *error) {
    cleat_maps_options options = settings_of(model)->data;
    cleat_dataset *opened = NULL;
    options.fitted = fitted ? fitted : "";
    options.predict = mode == CLEAT_MODE_PREDICT;
    cleat_status status = cleat_maps_open(path, &options, &opened, error);
    if (!status) status = cleat_masks_make_own(model, 0, error);
    if (status) {
        cleat_dataset_destroy(opened);
        return status;
    }
    cleat_image_info info = cleat_image_describe(opened);
    cleat_mask_own *own = model->own;
    own->positive = info.positive;
    own->height = info.height;
    own->width = info.width;
    model->sizes.inputs = info.channels;
    if (mode == CLEAT_MODE_TRAIN && !*options.fitted) cleat_masks_log_balance(model, path);
    *dataset = opened;
    return CLEAT_OK;
}

typedef struct map_size {
    int64_t height, width, patch, channels, patches;
} map_size;

/* Without data, the size is a square of image_size pixels, rounded to whole patches, with two channels. */
static map_size size_of(const cleat_model *model) {
    const cleat_mask_own *own = model->own;
    const int64_t patch = settings_of(model)->data.patch,
                  side = (settings_of(model)->image_size + patch - 1) / patch * patch;
    map_size size = {.height = side, .width = side, .patch = patch, .channels = model->sizes.inputs};
    if (own && own->height > 0) size.height = own->height, size.width = own->width;
    if (size.channels == 0) size.channels = USUAL_CHANNELS;
    size.patches = size.height / patch * (size.width / patch);
    return size;
}

/* steps [B N, T, p p C], lengths i32 [B N] -> pixel features [B, H, W, F] */
static cleat_tensor *temporal_part(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch,
                                   cleat_tensor *steps, cleat_tensor *lengths, cleat_tensor *rng,
                                   const map_size *size) {
    const emberformer_settings *s = settings_of(model);
    cleat_transformer shape = cleat_encoder_shape(&s->encoder, mode);
    shape.dropout = mode == CLEAT_MODE_TRAIN ? (float)s->mask.dropout : 0.0f;
    shape.samples = batch;
    cleat_tensor *x = cleat_nn_linear(graph, "inp", steps, shape.d_model, NULL); /* [B N, T, D] */
    x = cleat_positional_encoding(graph, x, NULL);
    const cleat_read_row last = {.row = CLEAT_ROW_LAST, .lengths = lengths};
    x = cleat_nn_encoder(graph, x, lengths, rng, &shape, &last); /* [B N, D] */
    x = cleat_nn_linear(graph, "head", x, size->patch * size->patch * s->features, NULL);
    if (!x) return NULL;
    const int64_t grid[4] = {batch, size->height / size->patch, size->width / size->patch, cleat_width(x)};
    return cleat_depth_to_space(graph, cleat_reshape(graph, x, 4, grid), size->patch);
}

/* The SegFormer is the backbone, which usually comes from a checkpoint. The temporal part before it and the
 * first convolution, whose channels are those of the temporal part, are trained from the start like the head. */
static int64_t layer_of(const cleat_model *model, const char *param) {
    const cleat_segformer shape = cleat_masks_shape(model, CLEAT_MODE_TRAIN);
    const bool fits_nobody = strncmp(param, "pe.0.", 5) == 0;
    return fits_nobody ? cleat_masks_layers(model) + 1 : cleat_nn_segformer_layer_of(&shape, param);
}

static void build(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch, int64_t length,
                  cleat_model_graph *built) {
    const map_size size = size_of(model);
    const int64_t values = size.patch * size.patch * size.channels, sequences = batch * size.patches;
    const int64_t steps_shape[4] = {batch, size.patches, length, values}, lengths_shape[2] = {batch, size.patches};
    const int64_t mask_shape[3] = {batch, size.height, size.width};
    cleat_tensor *steps = cleat_model_add_values(graph, "frames", 4, steps_shape), *mask = NULL;
    cleat_tensor *lengths = cleat_input(graph, "lengths", CLEAT_I32, 2, lengths_shape);
    if (mode != CLEAT_MODE_PREDICT) mask = cleat_input(graph, "mask", CLEAT_I32, 3, mask_shape);
    cleat_model_inputs inputs = cleat_model_add_inputs(graph, mode, 1, &batch);
    steps = cleat_reshape(graph, steps, 3, (int64_t[]){sequences, length, values});
    lengths = cleat_reshape(graph, lengths, 1, &sequences);
    cleat_tensor *x = temporal_part(model, graph, mode, batch, steps, lengths, inputs.rng, &size);
    cleat_tensor *logits = cleat_masks_segment(model, graph, mode, x, &inputs);
    /* skip connection: logits of each pixel from its own features */
    logits = cleat_nn_linear(graph, "skip", x, 1, logits);
    cleat_masks_add_loss(model, graph, mode, logits, mask, &inputs, built);
}

static size_t fields(const cleat_model *model, cleat_synthetic_field *made) {
    const map_size size = size_of(model);
    const int64_t steps[3] = {size.patches, -1, size.patch * size.patch * size.channels};
    const int64_t mask[2] = {size.height, size.width};
    made[STEPS] = cleat_synthetic_floats("frames", 3, steps);
    made[LENGTHS] = cleat_synthetic_values("lengths", CLEAT_VALUES_LENGTH, 1, &size.patches);
    made[MASK] = cleat_synthetic_integers("mask", 2, 2, mask);
    return MASK + 1;
}

/* Persistence is evaluated as a forecast as well: the mask of the last step's day, if the data contain it. */
static cleat_status metric_update(const cleat_model *model, const cleat_host_batch *batch, const float *output,
                                  double *metric_state, cleat_error *error) {
    const map_size size = size_of(model);
    const int64_t pixels = size.height * size.width;
    const int32_t *mask = batch->fields[MASK];
    int32_t *before = cleat_alloc((size_t)pixels, sizeof *before);
    if (!before) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a mask of %lld pixels", (long long)pixels);
    cleat_status status = CLEAT_OK;
    for (int64_t b = 0; b < batch->count && !status; ++b) {
        status = cleat_maps_persistence(batch->dataset, batch->samples[b], before, error);
        bool known = !status;
        if (status == CLEAT_ERR_NOT_SUPPORTED) status = CLEAT_OK;
        const double badness = cleat_masks_metric_update(model, output + b * pixels, mask + b * pixels, pixels,
                                                         known ? before : NULL, metric_state);
        if (batch->badness) batch->badness[b] = badness;
    }
    cleat_free(before);
    return status;
}

/* A grey image of one channel, from its minimum to its maximum. */
static void draw(const float *values, cleat_image *image) {
    const int64_t pixels = image->height * image->width;
    float least = values[0], most = values[0];
    for (int64_t i = 1; i < pixels; ++i) {
        least = fminf(least, values[i]);
        most = fmaxf(most, values[i]);
    }
    for (int64_t i = 0; i < pixels; ++i)
        image->pixels[i] = most > least ? (uint8_t)lroundf(255 * (values[i] - least) / (most - least)) : 0;
}

/* The model's last input: the target's channel on the last day; the caller frees the image. */
static cleat_status draw_last_frame(const cleat_prediction *prediction, cleat_image *image, char *text, size_t size,
                                    cleat_error *error) {
    const cleat_image_info info = cleat_image_describe(prediction->dataset);
    cleat_status status = CLEAT_OK;
    int64_t channel = 0;
    const char *name = NULL;
    float *values = cleat_alloc((size_t)(info.file_height * info.file_width), sizeof *values);
    *image = (cleat_image){.height = info.file_height, .width = info.file_width, .channels = 1};
    image->pixels = cleat_alloc((size_t)(image->height * image->width), 1);
    if (!values || !image->pixels) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a frame");
    if (!status)
        status = cleat_maps_last_frame(prediction->dataset, prediction->sample, values, &channel, &name, error);
    if (!status) draw(values, image);
    cleat_free(values);
    if (name)
        snprintf(text, size, "last frame, channel %s", name);
    else
        snprintf(text, size, "last frame, channel %lld", (long long)channel);
    return status;
}

static cleat_status write(const cleat_model *model, const cleat_prediction *predictions, size_t count,
                          const char *folder, cleat_error *error) {
    const map_size size = size_of(model);
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < count && !status; ++i) {
        const cleat_prediction *p = &predictions[i];
        cleat_image_info info = cleat_image_describe(p->dataset);
        cleat_image image = {.pixels = NULL};
        char text[128];
        if (model->options.drawings && p->sample < CLEAT_DRAWINGS)
            status = draw_last_frame(p, &image, text, sizeof text, error);
        const cleat_mask_output output = {.folder = folder,
                                          .id = cleat_dataset_id(p->dataset, p->sample),
                                          .logits = p->output,
                                          .height = info.file_height,
                                          .width = info.file_width,
                                          .stride = size.width,
                                          .out_height = info.file_height,
                                          .out_width = info.file_width,
                                          .image = image.pixels ? &image : NULL};
        if (!status) status = cleat_masks_write(model, &output, error);
        cleat_free(image.pixels);
    }
    return status;
}

static cleat_status add_example(const cleat_model *model, const cleat_evaluation *evaluated, size_t index,
                                cleat_string *json, cleat_error *error) {
    const cleat_prediction *prediction = &evaluated->predictions[index];
    const map_size size = size_of(model);
    const cleat_image_info info = cleat_image_describe(prediction->dataset);
    char text[128] = "";
    cleat_image image = {.pixels = NULL};
    int32_t *mask = cleat_alloc((size_t)(size.height * size.width), sizeof *mask);
    void *slots[] = {[STEPS] = NULL, [LENGTHS] = NULL, [MASK] = mask};
    cleat_status status = CLEAT_OK;
    if (!mask) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the mask of an example");
    if (!status)
        status = cleat_dataset_fill(prediction->dataset, prediction->sample, prediction->length, NULL, slots, error);
    if (!status) status = draw_last_frame(prediction, &image, text, sizeof text, error);
    if (!status) {
        const cleat_mask_example example = {.image = &image,
                                            .image_text = text,
                                            .logits = prediction->output,
                                            .mask = evaluated->drawings ? NULL : mask,
                                            .height = info.file_height,
                                            .width = info.file_width,
                                            .stride = size.width};
        status = cleat_masks_add_example(model, prediction, &example, json, error);
    }
    cleat_free(image.pixels);
    cleat_free(mask);
    return status;
}

/* Its spatial part can start from a published SegFormer; the whole network has no published counterpart. */
static const cleat_architecture *const architectures[] = {&cleat_published_emberformer_decoder, NULL};

/* The temporal part is initialised randomly, like the first convolution, which reads its features, not images. */
static const cleat_model_origin origins[] = {{"mask_segformer", &cleat_published_emberformer_decoder}, {NULL, NULL}};

static const cleat_model_examples examples = {
    .add = add_example, .classes = cleat_masks_table, .baseline = cleat_masks_baseline};

const cleat_model_class cleat_emberformer = {.name = "emberformer",
                                             .keys = keys,
                                             .settings_size = sizeof(emberformer_settings),
                                             .defaults = defaults,
                                             .check = check,
                                             .metrics = cleat_masks_metrics,
                                             .terms = terms,
                                             .n_terms = 1,
                                             .check_data = cleat_model_check_path,
                                             .open_data = open_data,
                                             .fields = fields,
                                             .fixed_length = fixed_length,
                                             .build = build,
                                             .layer_of = layer_of,
                                             .layers = cleat_masks_layers,
                                             .sample_weight = cleat_model_mean_weight,
                                             .metric_state_size = cleat_masks_metric_state_size,
                                             .metric_update = metric_update,
                                             .metric_compute = cleat_masks_metric_compute,
                                             .write = write,
                                             .combine = cleat_combine_classes,
                                             .writes_each = true,
                                             .sized_by = "the maps",
                                             .examples = &examples,
                                             .architectures = architectures,
                                             .origins = origins};
