/* Masks: the code shared by SegFormer and EmberFormer. */
#include "models/masks.h"

#include "cleat/ops.h"
#include "core/files.h"
#include "core/json.h"
#include "core/memory.h"
#include "graph/graph.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double RARE = 0.02; /* share of the pixels below which a mask is called unbalanced */

cleat_status cleat_masks_make_own(cleat_model *model, int64_t n_classes, cleat_error *error) {
    cleat_mask_own *own = cleat_alloc(1, sizeof *own + (size_t)n_classes * sizeof *own->classes);
    if (!own) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a model");
    own->n_classes = n_classes;
    cleat_free(model->own);
    model->own = own;
    return CLEAT_OK;
}

const cleat_metric_info cleat_masks_metrics[] = {{"iou", true},    {"f1", true},        {"precision", true},
                                                 {"recall", true}, {"image_iou", true}, {"best_f1", true},
                                                 {NULL, false}};

static const cleat_mask_settings *settings_of(const cleat_model *model) {
    return model->settings;
}

/* Square root of the ratio of background to mask pixels. The full ratio would let the few mask pixels
 * outweigh all others. */
static float positive_weight(const cleat_model *model) {
    const cleat_mask_own *own = model->own;
    double asked = settings_of(model)->positive_weight;
    if (asked != CLEAT_AUTO) return (float)asked;
    return own && own->positive > 0 && own->positive < 1 ? (float)sqrt((1 - own->positive) / own->positive) : 1.0f;
}

void cleat_masks_log_balance(const cleat_model *model, const char *path) {
    const double positive = ((const cleat_mask_own *)model->own)->positive, weight = (double)positive_weight(model);
    if (!(positive > 0 && (positive < RARE || positive > 1 - RARE))) return;
    cleat_log(
        CLEAT_LOG_WARNING,
        "%s: the masks are unbalanced: %.2g %% of the training pixels are 1, which weigh %.3g times as much as the "
        "others in the loss (loss.positive_weight; auto: the square root of the ratio of their numbers). loss.dice "
        "adds an overlap loss. See iou (run.metric = iou), since an empty or a full mask is right in %.3g %% of the "
        "pixels",
        path, 100 * positive, weight, 100 * fmax(positive, 1 - positive));
}

int64_t cleat_masks_layers(const cleat_model *model) {
    const cleat_segformer shape = cleat_masks_shape(model, CLEAT_MODE_TRAIN);
    return cleat_nn_segformer_layers(&shape);
}

cleat_tensor *cleat_masks_segment(const cleat_model *model, cleat_graph *graph, cleat_mode mode, cleat_tensor *x,
                                  cleat_model_inputs *inputs) {
    const cleat_segformer shape = cleat_masks_shape(model, mode);
    const cleat_norm_mode norm = cleat_model_norm_mode(graph, mode, inputs);
    if (x) cleat_masks_check_size(graph, &shape, x->shape[1], x->shape[2]);
    return cleat_nn_segformer(graph, x, &shape, inputs->rng, &norm);
}

void cleat_masks_add_loss(const cleat_model *model, cleat_graph *graph, cleat_mode mode, cleat_tensor *logits,
                          cleat_tensor *mask, const cleat_model_inputs *inputs, cleat_model_graph *built) {
    logits = cleat_model_output(graph, logits, built);
    if (mode == CLEAT_MODE_PREDICT) return;
    const cleat_mask_loss_spec spec = {.positive_weight = positive_weight(model),
                                       .focal_gamma = (float)settings_of(model)->focal_gamma,
                                       .dice_weight = (float)settings_of(model)->dice};
    cleat_tensor *loss = cleat_masks_shape(model, mode).classes > 1
                             ? cleat_cross_entropy(graph, logits, mask, inputs->sample_weight,
                                                   (float)settings_of(model)->loss.label_smoothing)
                             : cleat_mask_loss(graph, logits, mask, inputs->sample_weight, &spec);
    cleat_model_add_loss(graph, mode, inputs, loss, built);
}

/* Metric state. Pixels are counted by target and by probability in bins of 1 / BINS. True positives, false
 * positives and false negatives are counted at the threshold and for persistence. The last two are the sum
 * of the images' intersection over union, and the number of images with a non-empty union. */
enum { BINS = 20 };
enum { TP, FP, FN, COUNTS };
enum {
    FALSE_BINS,
    TRUE_BINS = BINS,
    HERE = 2 * BINS,
    BEFORE = HERE + COUNTS,
    IMAGE_IOU = BEFORE + COUNTS,
    IMAGES,
    METRIC_STATE_SIZE
};

size_t cleat_masks_metric_state_size(const cleat_model *model) {
    (void)model;
    return METRIC_STATE_SIZE;
}

static double probability(float logit) {
    return 1 / (1 + exp(-(double)logit));
}

static void count(bool target, bool found, double *counts) {
    if (target && found) counts[TP] += 1;
    if (!target && found) counts[FP] += 1;
    if (target && !found) counts[FN] += 1;
}

double cleat_masks_metric_update(const cleat_model *model, const float *logits, const int32_t *mask, int64_t pixels,
                                 const int32_t *persistence, double *metric_state) {
    int64_t labelled = 0;
    double here[COUNTS] = {0};
    for (int64_t i = 0; i < pixels; ++i) {
        if (mask[i] != 0 && mask[i] != 1) continue;
        labelled += 1;
        double p = probability(logits[i]);
        int bin = isnan(p) ? 0 : (int)(p * BINS);
        metric_state[(mask[i] ? TRUE_BINS : FALSE_BINS) + (bin < BINS ? bin : BINS - 1)] += 1;
        count(mask[i], p >= settings_of(model)->threshold, here);
        if (persistence && persistence[i] >= 0) count(mask[i], persistence[i], metric_state + BEFORE);
    }
    double either = here[TP] + here[FP] + here[FN];
    for (int i = 0; i < COUNTS; ++i) metric_state[HERE + i] += here[i];
    if (either > 0) metric_state[IMAGE_IOU] += here[TP] / either;
    metric_state[IMAGES] += either > 0;
    return !labelled ? NAN : either > 0 ? 1 - here[TP] / either : 0;
}

static double ratio(double a, double b) {
    return b > 0 ? a / b : 0;
}
static double f1_of(const double *counts) {
    return ratio(2 * counts[TP], 2 * counts[TP] + counts[FP] + counts[FN]);
}
static double iou_of(const double *counts) {
    return ratio(counts[TP], counts[TP] + counts[FP] + counts[FN]);
}

/* The best F1 over all thresholds at bin edges. */
static double best_f1(const double *metric_state, double *threshold) {
    double best = 0, counts[COUNTS] = {0};
    *threshold = NAN;
    for (int i = 0; i < BINS; ++i) counts[FN] += metric_state[TRUE_BINS + i];
    for (int i = BINS - 1; i > 0; --i) {
        counts[TP] += metric_state[TRUE_BINS + i];
        counts[FN] -= metric_state[TRUE_BINS + i];
        counts[FP] += metric_state[FALSE_BINS + i];
        if (f1_of(counts) <= best) continue;
        best = f1_of(counts);
        *threshold = (double)i / BINS;
    }
    return best;
}

void cleat_masks_metric_compute(const cleat_model *model, const double *metric_state, cleat_metrics *found) {
    const double *here = metric_state + HERE, *before = metric_state + BEFORE;
    double threshold, best = best_f1(metric_state, &threshold);
    (void)model;
    cleat_metrics_add(found, "iou", iou_of(here));
    cleat_metrics_add(found, "f1", f1_of(here));
    cleat_metrics_add(found, "precision", ratio(here[TP], here[TP] + here[FP]));
    cleat_metrics_add(found, "recall", ratio(here[TP], here[TP] + here[FN]));
    cleat_metrics_add(found, "image_iou", ratio(metric_state[IMAGE_IOU], metric_state[IMAGES]));
    cleat_metrics_add(found, "best_f1", best);
    cleat_metrics_add(found, "best_threshold", threshold);
    if (before[TP] + before[FP] + before[FN] == 0) return;
    cleat_metrics_add(found, "persistence_f1", f1_of(before));
    cleat_metrics_add(found, "persistence_iou", iou_of(before));
}

enum { BLACK = 0, GREY = 128, WHITE = 255 };

/* Draws truth and prediction, and counts them as the metrics do. */
static void draw_masks(const cleat_model *model, const cleat_mask_example *example, uint8_t *truth, uint8_t *prediction,
                       double counts[COUNTS]) {
    for (int64_t r = 0; r < example->height; ++r)
        for (int64_t c = 0; c < example->width; ++c) {
            const int32_t target = example->mask ? example->mask[r * example->stride + c] : -1;
            const bool found = probability(example->logits[r * example->stride + c]) >= settings_of(model)->threshold;
            const bool known = target == 0 || target == 1;
            if (known) count(target, found, counts);
            *truth++ = !known ? GREY : target ? WHITE : BLACK;
            *prediction++ = found ? WHITE : BLACK;
        }
}

cleat_status cleat_masks_add_example(const cleat_model *model, const cleat_prediction *prediction,
                                     const cleat_mask_example *example, cleat_string *json, cleat_error *error) {
    const size_t pixels = (size_t)(example->height * example->width);
    double counts[COUNTS] = {0};
    uint8_t *truth = cleat_alloc(2 * pixels, 1);
    if (!truth) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the masks of an example");
    cleat_image mask = {.height = example->height, .width = example->width, .channels = 1, .pixels = truth};
    draw_masks(model, example, truth, truth + pixels, counts);
    cleat_examples_begin(json, "mask", prediction);
    if (example->image_text) cleat_examples_add_string(json, "image_text", example->image_text, CLEAT_BASELINE_TEXT);
    cleat_status status =
        cleat_examples_add_image(json, "image", example->image, CLEAT_SHRINK_MEAN,
                                 example->mask ? CLEAT_EXAMPLE_IMAGE_BYTES : CLEAT_FIGURE_BYTES, error);
    if (!status)
        status = cleat_examples_add_image(json, "truth", example->mask ? &mask : NULL, CLEAT_SHRINK_NEAREST,
                                          CLEAT_EXAMPLE_MASK_BYTES, error);
    mask.pixels = truth + pixels;
    if (!status)
        status =
            cleat_examples_add_image(json, "prediction", &mask, CLEAT_SHRINK_NEAREST, CLEAT_EXAMPLE_MASK_BYTES, error);
    json_add(json, json_digits("score", counts[TP] / (counts[TP] + counts[FP] + counts[FN]), 6),
             json_text("score_name", "iou"), json_close('}'));
    cleat_free(truth);
    return status;
}

static double pixels_of(const double *metric_state, bool target) {
    double pixels = 0;
    for (int i = 0; i < BINS; ++i) pixels += metric_state[(target ? TRUE_BINS : FALSE_BINS) + i];
    return pixels;
}

void cleat_masks_table(const cleat_model *model, const double *metric_state, cleat_class_table *table) {
    const double *here = metric_state + HERE, right = pixels_of(metric_state, false) - here[FP];
    const double counts[] = {right, here[FP], here[FN], here[TP]};
    (void)model;
    *table = (cleat_class_table){.rows = table->rows, .has_iou = true, .confusion = {2, {"background", "mask"}, {0}}};
    memcpy(table->confusion.counts, counts, sizeof counts);
    cleat_class_table_add(table, "background", &(cleat_tag_counts){right + here[FP], right + here[FN], right});
    cleat_class_table_add(table, "mask", &(cleat_tag_counts){here[TP] + here[FN], here[TP] + here[FP], here[TP]});
}

/* Scores of a prediction without probabilities are those of every threshold. The mean over the images is
 * unknown. */
static void set_counts(const double counts[COUNTS], double *metric_state) {
    memcpy(metric_state + HERE, counts, COUNTS * sizeof *counts);
    metric_state[TRUE_BINS + BINS - 1] = counts[TP];
    metric_state[FALSE_BINS + BINS - 1] = counts[FP];
    metric_state[TRUE_BINS] = counts[FN];
    metric_state[IMAGE_IOU] = NAN;
    metric_state[IMAGES] = 1;
}

cleat_status cleat_masks_baseline(const cleat_model *model, const cleat_evaluation *evaluated, double *metric_state,
                                  char *text, cleat_error *error) {
    const double *from = evaluated->metric_state, *before = from + BEFORE;
    const double all[COUNTS] = {[TP] = pixels_of(from, true), [FP] = pixels_of(from, false)};
    const bool persistence = before[TP] + before[FP] + before[FN] > 0;
    (void)model;
    (void)error;
    set_counts(persistence ? before : all, metric_state);
    snprintf(text, CLEAT_BASELINE_TEXT, "%s",
             persistence ? "persistence: the mask of the last known day" : "every pixel in the mask");
    return CLEAT_OK;
}

/* Bilinear interpolation between pixel centres, as in cleat_resize; the result is a probability. */
static float interpolate(const float *logits, int64_t height, int64_t width, int64_t stride, double y, double x) {
    double top = fmin(fmax(y, 0), (double)(height - 1)), left = fmin(fmax(x, 0), (double)(width - 1));
    int64_t r = (int64_t)top, c = (int64_t)left;
    int64_t below = r + 1 < height ? r + 1 : r, right = c + 1 < width ? c + 1 : c;
    double dy = top - (double)r, dx = left - (double)c;
    return (float)((1 - dy) *
                       ((1 - dx) * probability(logits[r * stride + c]) + dx * probability(logits[r * stride + right])) +
                   dy * ((1 - dx) * probability(logits[below * stride + c]) +
                         dx * probability(logits[below * stride + right])));
}

cleat_status cleat_masks_path(const cleat_mask_output *output, const char *ending, char *path, cleat_error *error) {
    char name[CLEAT_FILE_PATH];
    if ((size_t)snprintf(name, sizeof name, "%s%s", output->id, ending) >= sizeof name)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%.100s...: too long for a file name", output->id);
    return cleat_path_join(output->folder, name, path, CLEAT_FILE_PATH, error);
}

cleat_status cleat_masks_outline(const cleat_model *model, const cleat_mask_output *output, const uint8_t *mask,
                                 const uint8_t *palette, cleat_error *error) {
    static const uint8_t orange[] = {213, 94, 0};
    const int64_t height = output->out_height, width = output->out_width;
    char path[CLEAT_FILE_PATH];
    if (!output->image) return CLEAT_OK;
    cleat_image drawn = {.height = height, .width = width, .channels = 3};
    if (!(drawn.pixels = cleat_alloc((size_t)(height * width), 3)))
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a figure");
    cleat_examples_brighten(output->image);
    for (int64_t i = 0; i < height * width; ++i) {
        const int64_t x = i % width, y = i / width, channels = output->image->channels;
        const bool edge = (x > 0 && mask[i] != mask[i - 1]) || (x + 1 < width && mask[i] != mask[i + 1]) ||
                          (y > 0 && mask[i] != mask[i - width]) || (y + 1 < height && mask[i] != mask[i + width]);
        const uint8_t *colour = palette ? palette + 3 * mask[i] : orange, *pixel = output->image->pixels + i * channels;
        for (int c = 0; c < 3; ++c)
            drawn.pixels[3 * i + c] = edge && (palette || mask[i]) ? colour[c] : pixel[channels == 3 ? c : 0];
    }
    const cleat_mask_output file = {.folder = model->options.drawings, .id = output->id};
    cleat_status status = cleat_masks_path(&file, ".png", path, error);
    if (!status) status = cleat_image_write_png(path, &drawn, error);
    cleat_image_free(&drawn);
    return status;
}

cleat_status cleat_masks_write(const cleat_model *model, const cleat_mask_output *output, cleat_error *error) {
    const int64_t out_height = output->out_height, out_width = output->out_width;
    char path[CLEAT_FILE_PATH];
    size_t pixels = (size_t)(out_height * out_width);
    float *probabilities = cleat_alloc(pixels, sizeof *probabilities);
    uint8_t *mask = cleat_alloc(pixels, 1);
    cleat_status status = CLEAT_OK;
    if (!probabilities || !mask) {
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a mask of %lld x %lld pixels",
                            (long long)out_height, (long long)out_width);
        goto done;
    }
    for (int64_t r = 0; r < out_height; ++r)
        for (int64_t c = 0; c < out_width; ++c) {
            double y = ((double)r + 0.5) * (double)output->height / (double)out_height - 0.5;
            double x = ((double)c + 0.5) * (double)output->width / (double)out_width - 0.5;
            float p = interpolate(output->logits, output->height, output->width, output->stride, y, x);
            probabilities[r * out_width + c] = p;
            mask[r * out_width + c] = p >= settings_of(model)->threshold ? 255 : 0;
        }
    status = cleat_masks_path(output, ".npy", path, error);
    if (!status) status = cleat_npy_write(path, probabilities, out_height, out_width, error);
    if (!status) status = cleat_masks_path(output, ".png", path, error);
    if (!status) status = cleat_png_write(path, mask, out_height, out_width, error);
    if (!status) status = cleat_masks_outline(model, output, mask, NULL, error);
done:
    cleat_free(mask);
    cleat_free(probabilities);
    return status;
}
