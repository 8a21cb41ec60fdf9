/* One output of several models' outputs for a sample: functions of cleat_model_class.combine. */
#ifndef CLEAT_SRC_MODELS_COMBINE_H
#define CLEAT_SRC_MODELS_COMBINE_H

#include "cleat/models.h"

/* Logits of the classes of a sample, of each token or pixel -> logits whose softmax is the mean of the softmaxes; of
 * masks in black and white, whose sigmoid is the mean of the sigmoids. Equal rows are copied: they keep their bits. */
cleat_status cleat_combine_classes(const cleat_model *model, const float *const *outputs, size_t n, int64_t values,
                                   float *combined, cleat_error *error);
/* The mean of each value. */
cleat_status cleat_combine_mean(const cleat_model *model, const float *const *outputs, size_t n, int64_t values,
                                float *combined, cleat_error *error);

#endif
