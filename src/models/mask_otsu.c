/* Otsu's threshold as a baseline for masks of black and white (Otsu, "A threshold selection method from gray-level
 * histograms", IEEE Transactions on Systems, Man, and Cybernetics 9, 1979). */
#include "core/memory.h"
#include "data/image/common.h"
#include "models/baselines.h"
#include "models/mask_classes.h"
#include "models/masks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The first level that best separates the levels up to it from those above; -1: there is one level only. */
static int threshold_of(const uint8_t *grey, int64_t pixels) {
    double counts[256] = {0}, sum = 0, best = 0, below = 0, sum_below = 0;
    int found = -1;
    for (int64_t i = 0; i < pixels; ++i) counts[grey[i]] += 1, sum += grey[i];
    for (int t = 0; t < 255; ++t) {
        const double above = (double)pixels - (below += counts[t]);
        sum_below += t * counts[t];
        const double difference = sum_below / below - (sum - sum_below) / above;
        if (!(below * above * difference * difference > best)) continue; /* also where a side is empty */
        best = below * above * difference * difference;
        found = t;
    }
    return found;
}

/* Adds the samples to the metric state, with what is above the threshold, or for `dark` below it, as the mask. An image
 * of one level has an empty mask. */
static cleat_status add_samples(const cleat_model *model, const cleat_dataset *dataset, const uint32_t *samples,
                                size_t count, bool dark, double *metric_state, cleat_error *error) {
    const int64_t size = cleat_image_describe(dataset).size, pixels = size * size;
    float *logits = cleat_alloc((size_t)pixels, sizeof *logits);
    int32_t *mask = cleat_alloc((size_t)pixels, sizeof *mask);
    cleat_status status = logits && mask ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a mask");
    for (size_t i = 0; i < count && !status; ++i) {
        cleat_image image = {.pixels = NULL};
        status = cleat_dataset_fill(dataset, samples[i], size, NULL, (void *[]){NULL, mask}, error);
        if (!status) status = cleat_image_of_sample(dataset, samples[i], &image, error);
        if (status) continue;
        for (int64_t p = 0; p < pixels; ++p) { /* luminance of ITU-R BT.709, or the first channel */
            const uint8_t *c = image.pixels + p * image.channels;
            image.pixels[p] =
                image.channels == 3 ? (uint8_t)lround(0.2125 * c[0] + 0.7154 * c[1] + 0.0721 * c[2]) : c[0];
        }
        const int threshold = threshold_of(image.pixels, pixels);
        for (int64_t p = 0; p < pixels; ++p)
            logits[p] = threshold >= 0 && (image.pixels[p] > threshold) != dark ? 100.0f : -100.0f;
        cleat_masks_metric_update(model, logits, mask, pixels, NULL, metric_state);
        cleat_image_free(&image);
    }
    cleat_free(mask);
    cleat_free(logits);
    return status;
}

cleat_status cleat_masks_otsu(const cleat_model *model, const cleat_evaluation *evaluated, double *metric_state,
                              char *text, cleat_error *error) {
    const int64_t size = cleat_image_describe(evaluated->dataset).size;
    uint32_t *samples = NULL;
    size_t count = 0;
    cleat_metrics trained[2] = {{0}}; /* of the training part: bright, dark */
    if (cleat_masks_has_classes(model)) return CLEAT_OK;
    cleat_status status = cleat_baseline_samples(evaluated, 10 * size * size + 1, &samples, &count, error);
    for (int dark = 0; dark < 2 && count && !status; ++dark) {
        status = add_samples(model, evaluated->dataset, samples, count, dark, metric_state, error);
        cleat_masks_metric_compute(model, metric_state, &trained[dark]);
        memset(metric_state, 0, cleat_masks_metric_state_size(model) * sizeof *metric_state);
    }
    const bool dark = cleat_metrics_get(&trained[1], "iou") > cleat_metrics_get(&trained[0], "iou");
    if (!status && count) {
        status =
            add_samples(model, evaluated->dataset, evaluated->samples, evaluated->n_samples, dark, metric_state, error);
        snprintf(text, CLEAT_BASELINE_TEXT, "Otsu's threshold of each image; the mask is what is %s",
                 dark ? "darker" : "brighter");
    }
    cleat_samples_free(samples);
    return status;
}
