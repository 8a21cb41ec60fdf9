/* Examples of an evaluation as JSON (examples.json): some predictions beside the truth, the confusion matrix,
 * scores of each class, and a baseline, which is the metric of a prediction that needs no model.
 *
 *   {"step": 1900, "epoch": 50, "split": "val",
 *    "baseline": {"text": "...", "metric": "accuracy", "value": 0.1, "ascends": true} or null,
 *    "confusion": {"labels": [...], "counts": [[...], ...]} or null,      rows: truth, columns: prediction
 *    "classes": [{"name": "...", "precision": 0.9, "recall": 0.8, "f1": 0.85, "support": 40, "iou": 0.7}, ...] or null,
 *    "classes_left_out": 3,                           of more than CLEAT_CLASSES_SHOWN those with the least support
 *    "examples": [{"kind": "class" | "number" | "mask" | "tags" | "tokens" | "likelihood" | "rna" | "series", "name": "...", ...,
 *                  "choice": "worst" | "typical"}, ...]}
 *
 * The worst samples of the evaluation come first, the worst of them at the beginning; the others are at even distances.
 * Unknown values, and numbers that are not finite, are null. Of figures, images are larger, and a series has
 * an example for each target, with `times`, seconds on the clock of the file (cleat_series_time). */
#ifndef CLEAT_SRC_EXAMPLES_H
#define CLEAT_SRC_EXAMPLES_H

#include "core/json.h"
#include "models/model.h"
#include "models/text_metrics.h"

enum {
    CLEAT_EXAMPLES = 12,           /* maximum number of samples */
    CLEAT_WORST = 6,               /* of which at most these are the worst */
    CLEAT_CLASSES_SHOWN = 100,     /* maximum number of classes with scores */
    CLEAT_DRAWINGS = 100,          /* maximum number of figures of predictions */
    CLEAT_EXAMPLES_BYTES = 195000, /* of the whole file; an example that would exceed it is left out */
};

/* An evaluation. All pointers are borrowed. */
typedef struct cleat_evaluation {
    const cleat_dataset *dataset;
    const uint32_t *samples; /* [n_samples] all that were evaluated */
    size_t n_samples;
    const cleat_prediction *predictions; /* [n_predictions] those to show */
    size_t n_predictions, n_worst;       /* the first n_worst are the worst of all samples */
    const double *metric_state;          /* after the last batch */
    const char *metric;                  /* the run's metric; NULL: the family's first one */
    const char *split;
    int64_t step, epoch; /* below 0: unknown */
    bool drawings;       /* of predictions, to be drawn one by one: there is no metric_state */
} cleat_evaluation;

/* The functions for a family's examples; NULL: not available. */
struct cleat_model_examples {
    /* Appends the JSON object of evaluated->predictions[index]. */
    cleat_status (*add)(const cleat_model *model, const cleat_evaluation *evaluated, size_t index, cleat_string *json,
                        cleat_error *error);
    /* Fills the confusion matrix of a metric state and adds a row of each class (cleat_class_table_add): at most
     * sizes.classes, or of masks without classes two. *table is empty. */
    void (*classes)(const cleat_model *model, const double *metric_state, cleat_class_table *table);
    /* Writes the metric state (zero before) that an evaluation of the baseline's predictions would have
     * left, with NaN where it is unknown, and describes them in text [CLEAT_BASELINE_TEXT]. */
    cleat_status (*baseline)(const cleat_model *model, const cleat_evaluation *evaluated, double *metric_state,
                             char *text, cleat_error *error);
    /* The same of a cheap predictor that is fitted to the training part of the evaluated data; text "": none can be
     * fitted. */
    cleat_status (*fitted)(const cleat_model *model, const cleat_evaluation *evaluated, double *metric_state,
                           char *text, cleat_error *error);
};

/* Whether the family has any of these functions. */
bool cleat_model_has_examples(const cleat_model *model);
/* Computes the stronger of the family's baselines in the run's metric, or in the family's first metric if none has
 * the run's. It depends on the data alone, so it is the same after each evaluation of a run. */
cleat_status cleat_model_baseline(const cleat_model *model, const cleat_evaluation *evaluated, cleat_baseline *baseline,
                                  cleat_error *error);
/* Appends the whole document, which stays below 200 KB. */
cleat_status cleat_model_examples_json(const cleat_model *model, const cleat_evaluation *evaluated,
                                       const cleat_baseline *baseline, cleat_string *json, cleat_error *error);

/* What a metric state says about the classes; empty for a family without any. The caller frees *table. */
cleat_status cleat_model_class_table(const cleat_model *model, const double *metric_state, cleat_class_table *table,
                                     cleat_error *error);
void cleat_class_table_add(cleat_class_table *table, const char *name, const cleat_tag_counts *counts);
/* Appends the members `confusion` and `classes`, of which `most` are shown; null if there are none. */
void cleat_class_table_add_json(const cleat_class_table *table, size_t most, cleat_string *json);

/* Appends the member `name` (NULL: an element) with `text` (NULL: null), cut to `most` characters and an
 * ellipsis. Bytes that are not UTF-8 become U+FFFD. */
void cleat_examples_add_string(cleat_string *json, const char *name, const char *text, size_t most);
/* Appends the start of an example, {"kind":"...","name":"..."; the caller adds members and the closing
 * brace. */
void cleat_examples_begin(cleat_string *json, const char *kind, const cleat_prediction *prediction);

#endif
