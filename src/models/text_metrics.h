/* How well texts are classified and words are tagged. Pure functions over label ids; counts add up, so that a caller
 * may go through a data set in any pieces and ask for the figures at the end. */
#ifndef CLEAT_SRC_TEXT_METRICS_H
#define CLEAT_SRC_TEXT_METRICS_H

#include "cleat/core.h"

/* What was there, what was said to be there, and how much of that is right; and
 *   precision = right / predicted,  recall = right / truth,  f1 = 2 precision recall / (precision + recall),
 * each 0 where its divisor is 0. */
typedef struct cleat_score {
    int64_t truth, predicted, right;
    double precision, recall, f1;
} cleat_score;

/* --- classes: a confusion matrix, counts [classes, classes], truth down, prediction across -------------------- */

/* Adds one sample. Labels are 0 .. classes - 1. */
void cleat_confusion_add(int64_t *counts, size_t classes, int32_t truth, int32_t predicted);

typedef struct cleat_class_figures {
    int64_t samples;
    double accuracy;
    double macro_f1;     /* mean F1 of the classes that are there or are predicted */
    double macro_recall; /* mean recall of the classes that are there: the measure of SemEval's sentiment tasks */
} cleat_class_figures;

/* All figures are 0 without a sample. per_class [classes], or NULL. */
cleat_class_figures cleat_confusion_figures(const int64_t *counts, size_t classes, cleat_score *per_class);

/* --- tags: 0 is O, 1 + 2 t is B-type, 2 + 2 t is I-type of type t --------------------------------------------- */

/* Entities as the CoNLL-2000 evaluation (conlleval) sees them: one starts at B, and at I after O or after another
 * type; it ends before the next start, before O, and at the sentence's end. It is right when one with the same
 * first word, last word and type is in the truth. */
typedef struct cleat_entity_count {
    int64_t truth, predicted, right;
} cleat_entity_count;

typedef struct cleat_tag_count {
    int64_t words, right; /* words whose tag is right */
} cleat_tag_count;

/* Adds one sentence: truth, predicted [words]; types [n] is added to. A word without a prediction (cut off) goes in
 * as O. */
void cleat_entities_add(const int32_t *truth, const int32_t *predicted, size_t words, cleat_entity_count *types,
                        cleat_tag_count *tags);
cleat_score cleat_entity_score(const cleat_entity_count *count);
/* All types together (micro average). */
cleat_score cleat_entities_score(const cleat_entity_count *types, size_t n);

#endif
