/* Segmentation of images with a SegFormer. Masks of two classes: weighted binary cross entropy (or focal
 * loss) and Dice loss. Masks of more classes: cross entropy, the mean over the labelled pixels of an image,
 * with label smoothing and class weights. Both are the mean over the images of a global batch. */
#include "models/published/segformer.h"
#include "cleat/ops.h"
#include "core/memory.h"
#include "data/image/common.h"
#include "data/image/masks.h"
#include "models/mask_classes.h"

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
    FOLD_ROWS(data.options.fold),
    LIMIT_ROW(mask.common),
    {FIELD(data, classes, mask.classes), INT(2, CLEAT_MASK_CLASSES, "none"), OR_NONE, COMPUTES_LATER,
     .help = "Number of pixel classes; the values of the masks are their ids; none: black and white."},
    {FIELD(data, labels, mask.labels), TEXT(0, 1023, ""), COMPUTES_LATER,
     .help = "Classes, or entity types, in order, separated by spaces; empty: those of the training split."},
    {FIELD(data, names, mask.names), TEXT(0, 1023, ""), A_PATH,
     .help = "config.json whose id2label names the classes if data.labels and the data do not; model.init sets it."},
    {FIELD(data, reduce_labels, data.options.reduce_labels), BOOL("false"), COMPUTES_LATER,
     .help = "Masks with classes: 0 is unlabelled, and k is class k - 1, as in ADE20K."},
    {FIELD(data, mask_suffix, data.options.mask_suffix), TEXT(0, 63, ""), COMPUTES_LATER,
     .help = "What names of masks have after that of the image; empty: nothing, or _mask if more files have it."},
    IMAGE_ROWS(data),
    MASK_LOSS_ROWS(mask),
    {FIELD(loss, label_smoothing, mask.loss.label_smoothing), FLOAT(0, 0.9, "0"), COMPUTES_LATER,
     .help = "Label smoothing."},
    {FIELD(loss, class_weights, mask.loss.class_weights), CHOICE(cleat_weighting_names, "none"), COMPUTES_LATER,
     .help = "Class weights; balanced: inversely proportional to class frequency."},
    {.name = NULL},
};

static void defaults(void *settings) {
    ((segformer_settings *)settings)->data.options = cleat_image_defaults();
}

static cleat_image_options with_classes(cleat_image_options options, const segformer_settings *s) {
    options.classes = s->mask.labels;
    options.names = s->mask.names;
    options.mask_classes = s->mask.classes;
    return options;
}

/* Refuses losses of two classes for masks with classes, and vice versa. */
static cleat_status check_loss(const cleat_mask_settings *mask, bool classes, const cleat_record *record,
                               cleat_error *error) {
    static const char few[] = "is for masks of black and white: remove data.classes, or set loss.",
                      many[] = "is for masks with classes: set data.classes, or loss.";
    if (classes && mask->positive_weight != CLEAT_AUTO && mask->positive_weight != 1) /* 1 changes nothing */
        return cleat_record_refuse(record, error, "loss.positive_weight", "%spositive_weight=auto", few);
    if (classes && mask->focal_gamma > 0)
        return cleat_record_refuse(record, error, "loss.focal_gamma", "%sfocal_gamma=0", few);
    if (!classes && mask->loss.label_smoothing > 0)
        return cleat_record_refuse(record, error, "loss.label_smoothing", "%slabel_smoothing=0", many);
    if (!classes && mask->loss.class_weights != CLEAT_WEIGHTING_NONE)
        return cleat_record_refuse(record, error, "loss.class_weights", "%sclass_weights=none", many);
    return CLEAT_OK;
}

static cleat_status check(const void *settings, const cleat_record *record, cleat_error *error) {
    const segformer_settings *s = settings;
    const cleat_image_options options = with_classes(s->data.options, s);
    cleat_mask_classes classes;
    cleat_error why = {0};
    cleat_status status = cleat_masks_check_shape(&s->mask, record, error);
    if (!status && cleat_mask_classes_of(&options, &classes, &why))
        return cleat_record_contradict(record, error, "data.classes",
                                       options.reduce_labels ? "data.reduce_labels" : "data.labels", "%s", why.text);
    if (!status) status = check_loss(&s->mask, classes.count > 0, record, error);
    return status ? status : cleat_image_settings_check(&s->data, record, error);
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

/* Masks of black and white; path NULL: not a training from new data. */
static cleat_status open_binary(cleat_model *model, const cleat_dataset *dataset, const char *path,
                                cleat_error *error) {
    cleat_status status = cleat_masks_make_own(model, 0, error);
    if (status) return status;
    ((cleat_mask_own *)model->own)->positive = cleat_image_describe(dataset).positive;
    if (path) cleat_masks_log_balance(model, path);
    return CLEAT_OK;
}

static cleat_status open_data(cleat_model *model, const char *path, cleat_mode mode, const char *fitted,
                              cleat_dataset **dataset, cleat_error *error) {
    const segformer_settings *s = settings_of(model);
    const bool fits = mode == CLEAT_MODE_TRAIN && !(fitted && *fitted);
    const cleat_image_options options = with_classes(cleat_image_settings_options(&s->data, mode, fitted), s);
    cleat_dataset *opened = NULL;
    cleat_status status = cleat_masks_open(path, &options, &opened, error);
    if (!status)
        status = cleat_masks_class(opened, 0) ? cleat_mask_classes_open(model, opened, fits ? path : NULL, error)
                                              : open_binary(model, opened, fits ? path : NULL, error);
    if (status) {
        cleat_dataset_destroy(opened);
        return status;
    }
    model->sizes.inputs = cleat_image_describe(opened).channels;
    *dataset = opened;
    return CLEAT_OK;
}

static int64_t channels_of(const cleat_model *model) {
    const int64_t asked = settings_of(model)->data.options.channels;
    if (model->sizes.inputs > 0) return model->sizes.inputs;
    return asked ? asked : USUAL_CHANNELS;
}

static int64_t layer_of(const cleat_model *model, const char *param) {
    const cleat_segformer shape = cleat_masks_shape(model, CLEAT_MODE_TRAIN);
    return cleat_nn_segformer_layer_of(&shape, param);
}

static void build(const cleat_model *model, cleat_graph *graph, cleat_mode mode, int64_t batch, int64_t length,
                  cleat_model_graph *built) {
    const int64_t image[4] = {batch, length, length, channels_of(model)};
    const int weight_rank = cleat_masks_has_classes(model) ? 3 : 1; /* weights per pixel, or per image */
    cleat_tensor *x = cleat_model_add_values(graph, "image", 4, image), *mask = NULL;
    if (mode != CLEAT_MODE_PREDICT) mask = cleat_input(graph, "mask", CLEAT_I32, 3, image);
    cleat_model_inputs inputs = cleat_model_add_inputs(graph, mode, weight_rank, image);
    cleat_tensor *logits = cleat_masks_segment(model, graph, mode, x, &inputs);
    cleat_masks_add_loss(model, graph, mode, logits, mask, &inputs, built);
}

static size_t fields(const cleat_model *model, cleat_synthetic_field *made) {
    const int64_t image[3] = {-1, -1, channels_of(model)};
    const int64_t classes = cleat_masks_shape(model, CLEAT_MODE_TRAIN).classes;
    made[0] = cleat_synthetic_floats("image", 3, image);
    made[MASK] = cleat_synthetic_integers("mask", classes > 1 ? classes : 2, 2, image);
    return MASK + 1;
}

static void sample_weight(const cleat_model *model, const cleat_host_batch *batch,
                          const cleat_global_batch *global_batch, float *values) {
    if (cleat_masks_has_classes(model))
        cleat_mask_classes_sample_weight(model, batch, batch->fields[MASK], global_batch, values);
    else
        cleat_model_mean_weight(model, batch, global_batch, values);
}

/* Masks of two classes have all of these, masks with classes the first and the last two. */
static const cleat_metric_info metrics[] = {
    {"iou", true},       {"f1", true},      {"precision", true},      {"recall", true},
    {"image_iou", true}, {"best_f1", true}, {"pixel_accuracy", true}, {"mean_accuracy", true},
    {NULL, false}};

static size_t metric_state_size(const cleat_model *model) {
    return cleat_masks_has_classes(model) ? cleat_mask_classes_metric_state_size(model)
                                          : cleat_masks_metric_state_size(model);
}

static cleat_status metric_update(const cleat_model *model, const cleat_host_batch *batch, const float *output,
                                  double *metric_state, cleat_error *error) {
    const int64_t pixels = batch->length * batch->length;
    const int32_t *mask = batch->fields[MASK];
    (void)error;
    const int64_t classes = cleat_masks_shape(model, CLEAT_MODE_EVALUATE).classes;
    for (int64_t b = 0; b < batch->count; ++b, output += pixels * classes, mask += pixels) {
        const double badness = classes > 1 ? cleat_mask_classes_metric_update(model, output, mask, pixels, metric_state)
                                           : cleat_masks_metric_update(model, output, mask, pixels, NULL, metric_state);
        if (batch->badness) batch->badness[b] = badness;
    }
    return CLEAT_OK;
}

static void metric_compute(const cleat_model *model, const double *metric_state, cleat_metrics *found) {
    if (cleat_masks_has_classes(model))
        cleat_mask_classes_metric_compute(model, metric_state, found);
    else
        cleat_masks_metric_compute(model, metric_state, found);
}

static cleat_status write_one(const cleat_model *model, const cleat_mask_output *output, cleat_error *error) {
    /* the ids of mask files, so that a prediction can serve as a mask */
    if (cleat_masks_has_classes(model))
        return cleat_mask_classes_write(model, output, settings_of(model)->data.options.reduce_labels ? 1 : 0, error);
    return cleat_masks_write(model, output, error);
}

static cleat_status write(const cleat_model *model, const cleat_prediction *predictions, size_t count,
                          const char *folder, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < count && !status; ++i) {
        const cleat_prediction *p = &predictions[i];
        int64_t height, width;
        cleat_image image = {.pixels = NULL};
        status = cleat_masks_file_size(p->dataset, p->sample, &height, &width, error);
        if (!status && model->options.drawings && p->sample < CLEAT_DRAWINGS)
            status = cleat_masks_image(p->dataset, p->sample, &image, error);
        if (status) return status;
        const cleat_mask_output output = {.folder = folder,
                                          .id = cleat_dataset_id(p->dataset, p->sample),
                                          .logits = p->output,
                                          .height = p->length,
                                          .width = p->length,
                                          .stride = p->length,
                                          .out_height = height,
                                          .out_width = width,
                                          .image = image.pixels ? &image : NULL};
        status = write_one(model, &output, error);
        cleat_image_free(&image);
    }
    return status;
}

static cleat_status add_example(const cleat_model *model, const cleat_evaluation *evaluated, size_t index,
                                cleat_string *json, cleat_error *error) {
    const cleat_prediction *prediction = &evaluated->predictions[index];
    const int64_t size = cleat_dataset_length(prediction->dataset, prediction->sample), stride = prediction->length;
    cleat_image image = {.pixels = NULL};
    int32_t *mask = cleat_alloc((size_t)(stride * stride), sizeof *mask);
    void *slots[] = {NULL, [MASK] = mask};
    if (!mask) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a mask");
    cleat_status status = cleat_dataset_fill(prediction->dataset, prediction->sample, stride, NULL, slots, error);
    if (!status) status = cleat_image_of_sample(prediction->dataset, prediction->sample, &image, error);
    if (!status) {
        const cleat_mask_example example = {.image = &image,
                                            .logits = prediction->output,
                                            .mask = evaluated->drawings ? NULL : mask,
                                            .height = size,
                                            .width = size,
                                            .stride = stride};
        status = cleat_masks_has_classes(model)
                     ? cleat_mask_classes_add_example(model, prediction, &example, json, error)
                     : cleat_masks_add_example(model, prediction, &example, json, error);
    }
    cleat_image_free(&image);
    cleat_free(mask);
    return status;
}

static void classes_of(const cleat_model *model, const double *metric_state, cleat_class_table *table) {
    if (cleat_masks_has_classes(model))
        cleat_mask_classes_table(model, metric_state, table);
    else
        cleat_masks_table(model, metric_state, table);
}

static cleat_status baseline_of(const cleat_model *model, const cleat_evaluation *evaluated, double *metric_state,
                                char *text, cleat_error *error) {
    return cleat_masks_has_classes(model) ? cleat_mask_classes_baseline(model, evaluated, metric_state, text, error)
                                          : cleat_masks_baseline(model, evaluated, metric_state, text, error);
}

static const cleat_model_examples examples = {
    .add = add_example, .classes = classes_of, .baseline = baseline_of, .fitted = cleat_masks_otsu};

static const cleat_architecture *const architectures[] = {&cleat_published_segformer, NULL};

/* Without the column order of published files in fuse.weight, the network has no published counterpart. */
static const cleat_architecture *architecture_of(const cleat_model *model, bool timm) {
    (void)timm;
    return settings_of(model)->mask.descending ? &cleat_published_segformer : NULL;
}

static const cleat_label_source labels = {"pictures.json", "classes", cleat_masks_class};

const cleat_model_class cleat_mask_segformer = {.name = "mask_segformer",
                                                .keys = keys,
                                                .settings_size = sizeof(segformer_settings),
                                                .defaults = defaults,
                                                .check = check,
                                                .metrics = metrics,
                                                .terms = terms,
                                                .n_terms = 1,
                                                .check_data = cleat_model_check_path,
                                                .open_data = open_data,
                                                .fields = fields,
                                                .fixed_length = fixed_length,
                                                .build = build,
                                                .layer_of = layer_of,
                                                .layers = cleat_masks_layers,
                                                .sample_weight = sample_weight,
                                                .metric_state_size = metric_state_size,
                                                .metric_update = metric_update,
                                                .metric_compute = metric_compute,
                                                .write = write,
                                                .combine = cleat_combine_classes,
                                                .writes_each = true,
                                                .examples = &examples,
                                                .labels = &labels,
                                                .completes_config = true,
                                                .export_files = cleat_image_export,
                                                .architectures = architectures,
                                                .architecture = architecture_of};
