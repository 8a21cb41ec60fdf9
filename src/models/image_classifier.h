/* Shared by the image classifiers: settings, data, loss, metrics, predictions and examples. */
#ifndef CLEAT_SRC_IMAGE_CLASSIFIER_H
#define CLEAT_SRC_IMAGE_CLASSIFIER_H

#include "models/classes.h"
#include "models/image_models.h"
#include "models/targets.h"

/* The settings struct of a family begins with it. */
typedef struct cleat_image_classifier_settings {
    cleat_data_settings common;
    double dropout;
    cleat_image_settings data;
    cleat_class_loss_settings loss;
} cleat_image_classifier_settings;

/* The rows of [data] and [loss]. MEMBER: a cleat_image_classifier_settings. */
#define IMAGE_CLASSIFIER_ROWS(MEMBER)                                                                                  \
    PROBLEM_ROW(MEMBER.data.options.targets), PATH_ROW(MEMBER.common),                                                 \
        VAL_FRACTION_ROW(MEMBER.data.options.val_fraction), TEST_FRACTION_ROW(MEMBER.data.options.test_fraction),      \
        FOLD_ROWS(MEMBER.data.options.fold), LIMIT_ROW(MEMBER.common),                                                 \
        {FIELD(data, labels, MEMBER.data.options.classes), TEXT(0, 1023, ""), COMPUTES,                                \
         .help = "Classes, or entity types, in order, separated by spaces; empty: those of the training split."},      \
        {FIELD(data, image_column, MEMBER.data.options.image_column), TEXT(0, 127, ""), COMPUTES_LATER,                \
         .help = "Table of images: the column of file names; empty: the one whose first rows name files."},            \
        {FIELD(data, label_column, MEMBER.data.options.label_column), TEXT(1, 1023, "label"), COMPUTES_LATER,          \
         .help = "Column of the class; of labels or numbers: one or several, words or names in double quotes."},       \
        TARGET_ROWS(MEMBER.data.options.targets),                                                                      \
        {FIELD(data, image_folder, MEMBER.data.options.image_folder), TEXT(0, 1023, ""), A_PATH, COMPUTES_LATER,       \
         .help = "Table of images: their folder; empty: that of the table, or one in it."},                            \
        {FIELD(data, fold_column, MEMBER.data.options.fold_column), TEXT(0, 127, ""), COMPUTES_LATER,                  \
         .help = "Tables: column whose equal values are in one fold of a cross-validation; empty: equal texts are."},  \
        IMAGE_ROWS(MEMBER.data), MIX_ROWS(MEMBER.data), CLASS_LOSS_ROWS(MEMBER.loss)

/* Sizes of the data, or without data those of the profile, or the usual ones. */
cleat_model_sizes cleat_image_classifier_sizes(const cleat_model *model);

/* A graph being built: image [B, L, L, C], label i32 [B] or targets (NULL: prediction), and the runtime's inputs. */
typedef struct cleat_image_classifier_graph {
    const cleat_model *model;
    cleat_graph *graph;
    cleat_mode mode;
    int64_t batch; /* B */
    cleat_tensor *image, *label;
    cleat_tensor *mix; /* f32 [B, 2], of mixed images: weights of the two classes; `label` is then [B, 2] */
    cleat_model_inputs inputs;
    cleat_model_graph *built;
} cleat_image_classifier_graph;
cleat_image_classifier_graph cleat_image_classifier_begin(const cleat_model *model, cleat_graph *graph, cleat_mode mode,
                                                          int64_t batch, int64_t length, cleat_model_graph *built);
/* The input of the last layer: x, in training after dropout. Numbers begin the f32 head. */
cleat_tensor *cleat_image_classifier_head(const cleat_image_classifier_graph *g, cleat_tensor *x);
/* Appends the output and, unless predicting, the loss. logits [B, classes] */
void cleat_image_classifier_end(cleat_image_classifier_graph *g, cleat_tensor *logits);

cleat_status cleat_image_classifier_check(const cleat_image_classifier_settings *settings, const cleat_record *record,
                                          cleat_error *error);

/* The functions of cleat_model_class. */
cleat_problem cleat_image_classifier_problem(const void *settings);
void cleat_image_classifier_defaults(void *settings);
cleat_status cleat_image_classifier_open(cleat_model *model, const char *path, cleat_mode mode, const char *fitted,
                                         cleat_dataset **dataset, cleat_error *error);
size_t cleat_image_classifier_fields(const cleat_model *model, cleat_synthetic_field *made);
int64_t cleat_image_classifier_length(const cleat_model *model);
void cleat_image_classifier_sample_weight(const cleat_model *model, const cleat_host_batch *batch,
                                          const cleat_global_batch *global_batch, float *values);

cleat_status cleat_image_classifier_write(const cleat_model *model, const cleat_prediction *predictions, size_t count,
                                          const char *folder, cleat_error *error);
extern const cleat_model_examples cleat_image_classifier_examples;
extern const cleat_label_source cleat_image_classifier_labels;
extern const char *const cleat_image_classifier_terms[1];

/* Members of cleat_model_class that all these families have. */
#define IMAGE_CLASSIFIER_CLASS                                                                                         \
    .defaults = cleat_image_classifier_defaults, .problem = cleat_image_classifier_problem,                            \
    .fit_outputs = cleat_targets_choose, .metrics = cleat_classes_metrics, .terms = cleat_image_classifier_terms,      \
    .n_terms = 1, .check_data = cleat_model_check_path, .open_data = cleat_image_classifier_open,                      \
    .fields = cleat_image_classifier_fields, .fixed_length = cleat_image_classifier_length,                            \
    .sample_weight = cleat_image_classifier_sample_weight, .metric_state_size = cleat_classifier_state_size,           \
    .metric_update = cleat_classifier_update, .metric_compute = cleat_classifier_compute,                              \
    .write = cleat_image_classifier_write, .combine = cleat_classifier_combine,                                        \
    .examples = &cleat_image_classifier_examples, .labels = &cleat_image_classifier_labels, .completes_config = true,  \
    .export_files = cleat_image_export

#endif
