/* Helpers of classification models: class weights, counts and their metrics, predictions as CSV. */
#ifndef CLEAT_SRC_CLASSES_H
#define CLEAT_SRC_CLASSES_H

#include "models/example_images.h"
#include "models/examples.h"

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
typedef struct cleat_class_info {
    float weight; /* weight in the loss; 0 for a class without training samples */
    char name[CLEAT_CLASS_NAME];
    int64_t samples;  /* number of training samples */
    int32_t shown;    /* its row and column of the confusion matrix */
    double threshold; /* with several labels: it is predicted from this probability on */
} cleat_class_info;

/* Callbacks for the classes of a dataset; they return NULL or 0 for an index past the last class. */
typedef struct cleat_class_source {
    const char *(*name)(const cleat_dataset *dataset, size_t index);
    int64_t (*samples)(const cleat_dataset *dataset, size_t index); /* number of training samples */
    int32_t (*label)(const cleat_dataset *dataset, size_t sample);  /* class of a sample; below 0: none */
} cleat_class_source;

/* Reads names, weights and counts of classes [count]. The weights are all 1, or with CLEAT_WEIGHTING_BALANCED
 * w[c] = N / (C n[c]), whose mean over the training samples is 1. */
void cleat_classes_read(const cleat_class_source *source, const cleat_dataset *dataset, cleat_weighting weighting,
                        int64_t count, cleat_class_info *classes);

/* Warns, before a training, of unbalanced classes, classes without training or validation samples, and two
 * whose names differ only in case or blanks, with the settings that help. */
/* Warns of the classes whose `counts` [count] (NULL: of training samples) are 0: they have no `what`, with
 * `effect`. */
void cleat_classes_warn_absent(const char *path, const cleat_class_info *classes, const int64_t *counts, int64_t count,
                               const char *what, const char *effect);
cleat_status cleat_classes_warn(const cleat_class_source *source, const cleat_dataset *dataset, const char *path,
                                cleat_weighting weighting, int64_t count, const cleat_class_info *classes,
                                cleat_error *error);

/* Index of the largest of logits [classes]; the first one among equals. */
int32_t cleat_class_argmax(const float *logits, int64_t classes);
/* -log softmax(logits)[label] */
double cleat_class_negative_log(const float *logits, int64_t classes, int32_t label);

/* Labels of the confusion matrix: one for each class, up to CLEAT_CONFUSION_LABELS; the rarest classes of the
 * training samples beyond that share the last one. */
int64_t cleat_confusion_labels(int64_t classes);
/* Counts a sample of the classes `truth` and `found` in matrix [labels, labels]. */
void cleat_confusion_count(const cleat_class_info *known, int64_t classes, int32_t truth, int32_t found,
                           double *matrix);
/* Copies a matrix with the names of its labels. */
void cleat_confusion_copy(const cleat_class_info *known, int64_t classes, const double *matrix,
                          cleat_class_table *table);

/* Metric state: target, predicted and correct count of each class, and the confusion matrix. */
size_t cleat_classes_metric_state_size(int64_t classes);
/* Adds samples [count] with logits [count, classes]; labels below 0 are ignored. Returns the wrong share, or NaN. */
double cleat_classes_metric_update(const cleat_class_info *known, const int32_t *labels, const float *logits,
                                   int64_t count, int64_t classes, double *metric_state);
extern const cleat_metric_info cleat_classes_metrics[]; /* terminated by a NULL name */
/* Computes accuracy, macro_f1 and macro_recall. */
void cleat_classes_metric_compute(int64_t classes, const double *metric_state, cleat_metrics *found);
void cleat_classes_table(const cleat_class_info *known, int64_t classes, const double *metric_state,
                         cleat_class_table *table);

/* The name of a class, NULL for a label below 0. */
const char *cleat_class_name(const cleat_class_info *known, int32_t label);
/* The state after always predicting the most frequent class of the training data. */
void cleat_classes_baseline(const cleat_class_info *known, int64_t classes, const double *metric_state, double *state,
                            char *text);
/* A sample with its class: one of `image` and `text` may be NULL. The prediction's output is the logits. */
typedef struct cleat_class_example {
    const cleat_image *image;
    const char *text;
    int32_t label;
    bool figure; /* larger images */
} cleat_class_example;
cleat_status cleat_classes_add_example(const cleat_class_info *known, int64_t classes,
                                       const cleat_prediction *prediction, const cleat_class_example *example,
                                       cleat_string *json, cleat_error *error);

/* Writes FOLDER/predictions.csv: id, class, its probability, and the probability of every class. */
cleat_status cleat_classes_write(const cleat_class_source *source, int64_t classes, const cleat_prediction *predictions,
                                 size_t count, const char *folder, cleat_error *error);

/* Functions of a family whose samples have a class each, or targets (models/targets.h): model->own is a
 * cleat_class_info [sizes.classes], which cleat_classifier_open sets. */
cleat_status cleat_classifier_open(cleat_model *model, const cleat_class_source *source, const cleat_dataset *dataset,
                                   cleat_weighting weighting, cleat_mode mode, cleat_error *error);
size_t cleat_classifier_state_size(const cleat_model *model);
cleat_status cleat_classifier_update(const cleat_model *model, const cleat_host_batch *batch, const float *output,
                                     double *metric_state, cleat_error *error);
/* Means of probabilities of classes, of each label, or of numbers. */
cleat_status cleat_classifier_combine(const cleat_model *model, const float *const *outputs, size_t n, int64_t values,
                                      float *combined, cleat_error *error);
void cleat_classifier_table(const cleat_model *model, const double *metric_state, cleat_class_table *table);
void cleat_classifier_compute(const cleat_model *model, const double *metric_state, cleat_metrics *found);
cleat_status cleat_classifier_baseline(const cleat_model *model, const cleat_evaluation *evaluated,
                                       double *metric_state, char *text, cleat_error *error);

#endif
