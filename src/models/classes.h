/* What models that tell classes share: class weights, counts and their metrics, predictions as CSV. */
#ifndef CLEAT_SRC_CLASSES_H
#define CLEAT_SRC_CLASSES_H

#include "models/model.h"

typedef enum cleat_weighting { CLEAT_WEIGHTING_NONE, CLEAT_WEIGHTING_BALANCED } cleat_weighting;
extern const char *const cleat_weighting_names[]; /* in settings; ends in NULL */

/* The loss of models that tell classes. */
typedef struct cleat_class_loss_settings {
    double label_smoothing;
    cleat_weighting class_weights;
} cleat_class_loss_settings;

/* MEMBER: a cleat_class_loss_settings. */
#define CLASS_LOSS_ROWS(MEMBER)                                                                                        \
    {FIELD(loss, label_smoothing, MEMBER.label_smoothing), FLOAT(0, 0.9, "0"), COMPUTES, .help = "Label smoothing."},  \
    {                                                                                                                  \
        FIELD(loss, class_weights, MEMBER.class_weights), CHOICE(cleat_weighting_names, "none"), COMPUTES,             \
            .help = "Class weights; balanced: inversely proportional to class frequency."                              \
    }

/* What there is to know about a class. */
typedef struct cleat_class {
    float weight; /* in the loss; a class the training part lacks weighs nothing */
    char name[40];
} cleat_class;

/* How a dataset tells of its classes; all get NULL or 0 behind the last one. */
typedef struct cleat_class_source {
    const char *(*name)(const cleat_dataset *dataset, size_t index);
    int64_t (*samples)(const cleat_dataset *dataset, size_t index); /* in the training part */
} cleat_class_source;

/* Names and weights of classes [count]: all 1, or where `weighting` is CLEAT_WEIGHTING_BALANCED w[c] = N / (C n[c]), whose mean
 * over the training part is 1. */
void cleat_classes_read(const cleat_class_source *source, const cleat_dataset *dataset, cleat_weighting weighting,
                        int64_t count, cleat_class *classes);

/* The index of the largest of logits [classes], the first of equals. */
int32_t cleat_class_argmax(const float *logits, int64_t classes);

/* Totals: target, predicted and right of every class, and the confusion matrix [classes, classes] where they are few. */
size_t cleat_classes_metric_state_size(int64_t classes);
/* Adds samples [count] with logits [count, classes]; labels below 0 are left out. */
void cleat_classes_metric_update(const int32_t *labels, const float *logits, int64_t count, int64_t classes,
                                 double *metric_state);
extern const cleat_metric_info cleat_classes_metrics[]; /* ends in a NULL name */
/* accuracy, macro_f1, macro_recall, and where classes are few each kind of confusion. */
void cleat_classes_metric_compute(const cleat_class *known, int64_t classes, const double *metric_state,
                                  cleat_metrics *found);

/* FOLDER/predictions.csv: id, class, its probability, and that of every class. */
cleat_status cleat_classes_write(const cleat_class_source *source, int64_t classes, const cleat_prediction *predictions,
                                 size_t count, const char *folder, cleat_error *error);

#endif
