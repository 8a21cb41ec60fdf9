/* Helpers of classification models: class weights, counts and their metrics, predictions as CSV. */
#ifndef CLEAT_SRC_CLASSES_H
#define CLEAT_SRC_CLASSES_H

#include "models/model.h"

typedef enum cleat_weighting { CLEAT_WEIGHTING_NONE, CLEAT_WEIGHTING_BALANCED } cleat_weighting;
extern const char *const cleat_weighting_names[]; /* names in settings; terminated by NULL */

/* Loss settings of classification models. */
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

/* Weight and name of a class. */
typedef struct cleat_class {
    float weight; /* weight in the loss; 0 for a class without training samples */
    char name[40];
} cleat_class;

/* Callbacks for the classes of a dataset; they return NULL or 0 for an index past the last class. */
typedef struct cleat_class_source {
    const char *(*name)(const cleat_dataset *dataset, size_t index);
    int64_t (*samples)(const cleat_dataset *dataset, size_t index); /* number of training samples */
} cleat_class_source;

/* Reads names and weights of classes [count]. The weights are all 1, or with CLEAT_WEIGHTING_BALANCED
 * w[c] = N / (C n[c]), whose mean over the training samples is 1. */
void cleat_classes_read(const cleat_class_source *source, const cleat_dataset *dataset, cleat_weighting weighting,
                        int64_t count, cleat_class *classes);

/* Index of the largest of logits [classes]; the first one among equals. */
int32_t cleat_class_argmax(const float *logits, int64_t classes);

/* Metric state: target, predicted and correct count of each class, and the confusion matrix [classes,
 * classes] if there are few classes. */
size_t cleat_classes_metric_state_size(int64_t classes);
/* Adds samples [count] with logits [count, classes]; labels below 0 are ignored. */
void cleat_classes_metric_update(const int32_t *labels, const float *logits, int64_t count, int64_t classes,
                                 double *metric_state);
extern const cleat_metric_info cleat_classes_metrics[]; /* terminated by a NULL name */
/* Computes accuracy, macro_f1, macro_recall, and with few classes each kind of confusion. */
void cleat_classes_metric_compute(const cleat_class *known, int64_t classes, const double *metric_state,
                                  cleat_metrics *found);

/* Writes FOLDER/predictions.csv: id, class, its probability, and the probability of every class. */
cleat_status cleat_classes_write(const cleat_class_source *source, int64_t classes, const cleat_prediction *predictions,
                                 size_t count, const char *folder, cleat_error *error);

#endif
