/* Metrics of text classification and of word tagging. Pure functions over label ids. Counts are additive,
 * so a caller may process a dataset in parts and compute the metrics at the end. */
#ifndef CLEAT_SRC_TEXT_METRICS_H
#define CLEAT_SRC_TEXT_METRICS_H

#include "cleat/core.h"

/* Counts of a class or of an entity type: in the target, predicted, and predicted correctly; part of metric states. */
typedef struct cleat_tag_counts {
    double target, predicted, right;
} cleat_tag_counts;

/* precision = right / predicted, recall = right / target, f1 = 2 precision recall / (precision + recall);
 * each is 0 if its divisor is 0. */
typedef struct cleat_score {
    double precision, recall, f1;
} cleat_score;

cleat_score cleat_tag_counts_score(const cleat_tag_counts *count);

typedef struct cleat_class_metrics {
    double accuracy;
    double macro_f1; /* mean F1 over the classes that occur in the target or the predictions */
    /* mean recall over the classes that occur in the target: the metric of SemEval's sentiment tasks */
    double macro_recall;
} cleat_class_metrics;

/* Metrics of counts [classes]. All are 0 without samples. */
cleat_class_metrics cleat_class_counts_metrics(const cleat_tag_counts *counts, size_t classes);

/* Tags: 0 is O, 1 + 2 t is B-type, 2 + 2 t is I-type of type t. */

typedef struct cleat_tagging_counts {
    int64_t words, right; /* all words, and words with the correct tag */
} cleat_tagging_counts;

/* Counts entities as in the CoNLL-2000 evaluation (conlleval): an entity starts at B, and at I after O or
 * after another type; it ends before the next start, before O, and at the end of the sentence. It is
 * correct if the target contains an entity with the same first word, last word and type. Adds one
 * sentence: target, predicted [words]; `types` [n] and `tags` are accumulated. The tag of a word without a
 * prediction (cut off) must be O. */
void cleat_entities_add(const int32_t *target, const int32_t *predicted, size_t words, cleat_tag_counts *types,
                        cleat_tagging_counts *tags);

#endif
