/* Means of the outputs of several models: of probabilities, in the form of logits, and of quantities. */
#include "models/model.h"

#include "core/memory.h"

#include <float.h>
#include <math.h>
#include <string.h>

static bool are_equal(const float *const *outputs, size_t n, int64_t first, int64_t count) {
    for (size_t i = 1; i < n; ++i)
        if (memcmp(outputs[i] + first, outputs[0] + first, (size_t)count * sizeof **outputs) != 0) return false;
    return true;
}

/* Logits of sums of probabilities, each above 0: softmax ignores their number. */
static void combine_row(const float *const *outputs, size_t n, int64_t first, int64_t classes, double *sums,
                        float *combined) {
    double inside = DBL_MIN, outside = DBL_MIN; /* of a pixel, classes 1 */
    for (int64_t c = 0; c < classes; ++c) sums[c] = DBL_MIN;
    for (size_t i = 0; i < n; ++i) {
        const float *x = outputs[i] + first;
        double most = (double)x[0], whole = 0;
        for (int64_t c = 1; c < classes; ++c) most = fmax(most, (double)x[c]);
        for (int64_t c = 0; c < classes; ++c) whole += exp((double)x[c] - most);
        for (int64_t c = 0; c < classes; ++c) sums[c] += exp((double)x[c] - most) / whole;
        inside += 1 / (1 + exp(-(double)x[0]));
        outside += 1 / (1 + exp((double)x[0]));
    }
    for (int64_t c = 0; c < classes; ++c) combined[first + c] = (float)log(sums[c] / (double)n);
    if (classes == 1) combined[first] = (float)(log(inside) - log(outside));
}

cleat_status cleat_combine_classes(const cleat_model *model, const float *const *outputs, size_t n, int64_t values,
                                   float *combined, cleat_error *error) {
    const int64_t classes = model->sizes.classes > 0 ? model->sizes.classes : 1;
    double *sums = cleat_alloc((size_t)classes, sizeof *sums);
    if (!sums) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the mean of %zu outputs", n);
    for (int64_t at = 0; at + classes <= values; at += classes) {
        if (are_equal(outputs, n, at, classes))
            memcpy(combined + at, outputs[0] + at, (size_t)classes * sizeof *combined);
        else
            combine_row(outputs, n, at, classes, sums, combined);
    }
    cleat_free(sums);
    return CLEAT_OK;
}

cleat_status cleat_combine_mean(const cleat_model *model, const float *const *outputs, size_t n, int64_t values,
                                float *combined, cleat_error *error) {
    (void)model;
    (void)error;
    for (int64_t i = 0; i < values; ++i) {
        double sum = 0;
        for (size_t k = 0; k < n; ++k) sum += (double)outputs[k][i];
        combined[i] = are_equal(outputs, n, i, 1) ? outputs[0][i] : (float)(sum / (double)n);
    }
    return CLEAT_OK;
}
