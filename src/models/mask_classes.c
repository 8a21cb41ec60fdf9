/* Masks of classes: cross entropy of pixels, intersection over union of each class, predictions as ids. */
#include "models/mask_classes.h"

#include "core/files.h"
#include "core/json.h"
#include "core/memory.h"
#include "data/image/masks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { COLOURS = 256, SHOWN_CLASSES = 5 /* most classes whose iou are metrics */ };

static int64_t classes_of(const cleat_model *model) {
    return cleat_masks_shape(model, CLEAT_MODE_PREDICT).classes;
}

bool cleat_masks_has_classes(const cleat_model *model) {
    return classes_of(model) > 1;
}

/* NULL without data */
static const cleat_class_info *known_of(const cleat_model *model) {
    const cleat_mask_own *own = model->own;
    return own && own->n_classes > 0 ? own->classes : NULL;
}

/* The last argument of a source whose samples have many labels is not used. */
static const cleat_class_source source = {.name = cleat_masks_class, .samples = cleat_masks_class_pixels};

cleat_status cleat_mask_classes_open(cleat_model *model, const cleat_dataset *dataset, const char *path,
                                     cleat_error *error) {
    const int64_t count = cleat_image_describe(dataset).classes;
    cleat_status status = cleat_masks_make_own(model, count, error);
    if (status) return status;
    cleat_mask_own *own = model->own;
    const cleat_mask_settings *settings = model->settings;
    cleat_classes_read(&source, dataset, settings->loss.class_weights, count, own->classes);
    model->sizes.classes = count;
    if (path)
        cleat_classes_warn_absent(path, own->classes, NULL, count, "pixel in the training masks",
                                  "the model cannot learn them");
    return CLEAT_OK;
}

void cleat_mask_classes_sample_weight(const cleat_model *model, const cleat_host_batch *batch, const int32_t *mask,
                                      const cleat_global_batch *global_batch, float *values) {
    const cleat_class_info *known = known_of(model);
    const int64_t pixels = batch->length * batch->length;
    for (int64_t b = 0; b < batch->batch; ++b, mask += pixels, values += pixels) {
        int64_t labelled = 0;
        for (int64_t i = 0; i < pixels && b < batch->count; ++i) labelled += mask[i] >= 0;
        const float each = labelled ? 1.0f / (float)(global_batch->samples * labelled) : 0.0f;
        for (int64_t i = 0; i < pixels; ++i)
            values[i] = !labelled || mask[i] < 0 ? 0.0f : known ? each * known[mask[i]].weight : each;
    }
}

enum { TARGET, PREDICTED, RIGHT, COUNTS }; /* of each class, as in classes.c */

size_t cleat_mask_classes_metric_state_size(const cleat_model *model) {
    return cleat_classes_metric_state_size(classes_of(model));
}

double cleat_mask_classes_metric_update(const cleat_model *model, const float *logits, const int32_t *mask,
                                        int64_t pixels, double *metric_state) {
    const cleat_class_info *known = known_of(model);
    return known ? cleat_classes_metric_update(known, mask, logits, pixels, classes_of(model), metric_state) : NAN;
}

void cleat_mask_classes_table(const cleat_model *model, const double *metric_state, cleat_class_table *table) {
    if (known_of(model)) cleat_classes_table(known_of(model), classes_of(model), metric_state, table);
    table->has_iou = true;
}

/* Intersection over union; NaN: the class is in neither truth nor prediction. */
static double iou_of(const double counts[COUNTS]) {
    const double either = counts[TARGET] + counts[PREDICTED] - counts[RIGHT];
    return either > 0 ? counts[RIGHT] / either : NAN;
}

/* NaN without labelled pixels. */
static double mean_iou(const double *counts, int64_t classes) {
    double sum = 0, count = 0;
    for (int64_t c = 0; c < classes; ++c)
        if (!isnan(iou_of(counts + COUNTS * c))) sum += iou_of(counts + COUNTS * c), count += 1;
    return count > 0 ? sum / count : NAN;
}

void cleat_mask_classes_metric_compute(const cleat_model *model, const double *metric_state, cleat_metrics *found) {
    const int64_t classes = classes_of(model);
    const cleat_class_info *known = known_of(model);
    const double iou = mean_iou(metric_state, classes);
    const cleat_class_metrics all = cleat_class_counts_metrics((const cleat_tag_counts *)metric_state, (size_t)classes);
    cleat_metrics_add(found, "iou", iou);
    cleat_metrics_add(found, "pixel_accuracy", isnan(iou) ? NAN : all.accuracy);
    cleat_metrics_add(found, "mean_accuracy", isnan(iou) ? NAN : all.macro_recall);
    for (int64_t c = 0; c < classes && known && classes <= SHOWN_CLASSES; ++c) {
        char name[48];
        snprintf(name, sizeof name, "iou_%s", known[c].name);
        for (char *at = name; *at; ++at)
            if (strchr(" ,;:/\"", *at)) *at = '_';
        cleat_metrics_add(found, name, iou_of(metric_state + COUNTS * c));
    }
}

cleat_status cleat_mask_classes_baseline(const cleat_model *model, const cleat_evaluation *evaluated,
                                         double *metric_state, char *text, cleat_error *error) {
    (void)error;
    if (known_of(model))
        cleat_classes_baseline(known_of(model), classes_of(model), evaluated->metric_state, metric_state, text);
    return CLEAT_OK;
}

/* The colours of the PASCAL VOC data: the bits of an id, from the lowest, are the highest bits of red, green
 * and blue in turn. */
static void make_palette(uint8_t palette[3 * COLOURS]) {
    memset(palette, 0, 3 * COLOURS);
    for (int id = 0; id < COLOURS; ++id)
        for (int bit = 0; bit < 8; ++bit)
            if (id >> bit & 1) palette[3 * id + bit % 3] |= (uint8_t)(1 << (7 - bit / 3));
}

/* The classes of truth and prediction [height, width], CLEAT_MASK_UNLABELLED where there is none; counts [C,
 * COUNTS]. */
static void find_classes(const cleat_mask_example *example, int64_t classes, uint8_t *truth, uint8_t *prediction,
                         double *counts) {
    for (int64_t r = 0; r < example->height; ++r)
        for (int64_t c = 0; c < example->width; ++c) {
            const int64_t at = r * example->stride + c;
            const int32_t target = example->mask ? example->mask[at] : -1,
                          said = cleat_class_argmax(example->logits + at * classes, classes);
            *truth++ = target < 0 ? CLEAT_MASK_UNLABELLED : (uint8_t)target;
            *prediction++ = (uint8_t)said;
            if (target < 0) continue;
            counts[COUNTS * target + TARGET] += 1;
            counts[COUNTS * said + PREDICTED] += 1;
            counts[COUNTS * said + RIGHT] += said == target;
        }
}

static cleat_status add_mask(const char *key, const uint8_t *ids, uint8_t *colours, const cleat_mask_example *example,
                             cleat_string *json, cleat_error *error) {
    const cleat_image image = {.height = example->height, .width = example->width, .channels = 3, .pixels = colours};
    uint8_t palette[3 * COLOURS];
    make_palette(palette);
    for (int64_t i = 0; i < image.height * image.width; ++i) memcpy(colours + 3 * i, palette + 3 * ids[i], 3);
    return cleat_examples_add_image(json, key, &image, CLEAT_SHRINK_NEAREST, CLEAT_EXAMPLE_MASK_BYTES, error);
}

cleat_status cleat_mask_classes_add_example(const cleat_model *model, const cleat_prediction *prediction,
                                            const cleat_mask_example *example, cleat_string *json, cleat_error *error) {
    const int64_t classes = classes_of(model);
    const size_t pixels = (size_t)(example->height * example->width);
    uint8_t *ids = cleat_alloc(2 * pixels, 1), *colours = cleat_alloc(3 * pixels, 1);
    double *counts = cleat_alloc((size_t)(COUNTS * classes), sizeof *counts);
    cleat_status status = CLEAT_OK;
    if (!ids || !colours || !counts) {
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the masks of an example");
        goto done;
    }
    find_classes(example, classes, ids, ids + pixels, counts);
    cleat_examples_begin(json, "mask", prediction);
    status = cleat_examples_add_image(json, "image", example->image, CLEAT_SHRINK_MEAN,
                                      example->mask ? CLEAT_EXAMPLE_IMAGE_BYTES : CLEAT_FIGURE_BYTES, error);
    if (!example->mask)
        json_add(json, json_text("truth", NULL));
    else if (!status)
        status = add_mask("truth", ids, colours, example, json, error);
    if (!status) status = add_mask("prediction", ids + pixels, colours, example, json, error);
    json_add(json, json_digits("score", mean_iou(counts, classes), 6), json_text("score_name", "iou"), json_close('}'));
done:
    cleat_free(counts);
    cleat_free(colours);
    cleat_free(ids);
    return status;
}

/* The two nearest of `count` pixels to position `at`, and the weight of the second. */
typedef struct neighbours {
    int64_t first, second;
    float weight;
} neighbours;

static neighbours neighbours_of(double at, int64_t count) {
    at = fmin(fmax(at, 0), (double)(count - 1));
    const int64_t first = (int64_t)at;
    return (neighbours){first, first + 1 < count ? first + 1 : first, (float)(at - (double)first)};
}

/* Bilinear interpolation of logits between pixel centres, as in cleat_resize; logits [C]. */
static void interpolate(const cleat_mask_output *output, int64_t classes, int64_t row, int64_t column, float *logits) {
    const neighbours y =
        neighbours_of(((double)row + 0.5) * (double)output->height / (double)output->out_height - 0.5, output->height);
    const neighbours x =
        neighbours_of(((double)column + 0.5) * (double)output->width / (double)output->out_width - 0.5, output->width);
    const float *top = output->logits + y.first * output->stride * classes;
    const float *below = output->logits + y.second * output->stride * classes;
    for (int64_t c = 0; c < classes; ++c) {
        const int64_t left = x.first * classes + c, right = x.second * classes + c;
        logits[c] = (1 - y.weight) * ((1 - x.weight) * top[left] + x.weight * top[right]) +
                    y.weight * ((1 - x.weight) * below[left] + x.weight * below[right]);
    }
}

/* softmax(logits)[c] */
static float probability_of(const float *logits, int64_t classes, int32_t c) {
    double sum = 0;
    for (int64_t i = 0; i < classes; ++i) sum += exp((double)(logits[i] - logits[c]));
    return (float)(1 / sum);
}

static cleat_status write_files(const cleat_model *model, const cleat_mask_output *output, uint8_t *ids,
                                const float *probabilities, cleat_error *error) {
    const cleat_image image = {.height = output->out_height, .width = output->out_width, .channels = 1, .pixels = ids};
    uint8_t palette[3 * COLOURS];
    char path[CLEAT_FILE_PATH];
    make_palette(palette);
    cleat_status status = cleat_masks_path(output, ".npy", path, error);
    if (!status) status = cleat_npy_write(path, probabilities, output->out_height, output->out_width, error);
    if (!status) status = cleat_masks_path(output, ".png", path, error);
    if (!status) status = cleat_image_write_png_ids(path, &image, palette, error);
    return status ? status : cleat_masks_outline(model, output, ids, palette, error);
}

cleat_status cleat_mask_classes_write(const cleat_model *model, const cleat_mask_output *output, int first,
                                      cleat_error *error) {
    const int64_t classes = classes_of(model);
    const size_t pixels = (size_t)(output->out_height * output->out_width);
    float *probabilities = cleat_alloc(pixels, sizeof *probabilities);
    float *logits = cleat_alloc((size_t)classes, sizeof *logits);
    uint8_t *ids = cleat_alloc(pixels, 1);
    cleat_status status = CLEAT_OK;
    if (!probabilities || !logits || !ids)
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a mask of %lld x %lld pixels",
                            (long long)output->out_height, (long long)output->out_width);
    for (size_t i = 0; i < pixels && !status; ++i) {
        interpolate(output, classes, (int64_t)i / output->out_width, (int64_t)i % output->out_width, logits);
        const int32_t c = cleat_class_argmax(logits, classes);
        ids[i] = (uint8_t)(c + first);
        probabilities[i] = probability_of(logits, classes, c);
    }
    if (!status) status = write_files(model, output, ids, probabilities, error);
    cleat_free(ids);
    cleat_free(logits);
    cleat_free(probabilities);
    return status;
}
