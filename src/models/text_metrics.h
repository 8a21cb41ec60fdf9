/* How well texts are classified and words are tagged. Pure functions over label ids; counts add up, so that a caller
 * may go through a data set in any pieces and ask for the metrics at the end. */
#ifndef CLEAT_SRC_TEXT_METRICS_H
#define CLEAT_SRC_TEXT_METRICS_H

#include "cleat/core.h"

/* Of a class or of a type of entities: what was there, what was said to be there, and how much of that is right. */
typedef struct cleat_count {
    int64_t target, predicted, right;
} cleat_count;

/*   precision = right / predicted,  recall = right / target,  f1 = 2 precision recall / (precision + recall),
 * each 0 where its divisor is 0. */
typedef struct cleat_score {
    double precision, recall, f1;
} cleat_score;

cleat_score cleat_count_score(const cleat_count *count);

/* --- classes -------------------------------------------------------------------------------------------------- */

typedef struct cleat_class_metrics {
    double accuracy;
    double macro_f1;     /* mean F1 of the classes that are there or are predicted */
    double macro_recall; /* mean recall of the classes that are there: the measure of SemEval's sentiment tasks */
} cleat_class_metrics;

/* Of counts [classes]. All metrics are 0 without a sample. */
cleat_class_metrics cleat_class_counts_metrics(const cleat_count *counts, size_t classes);

/* --- tags: 0 is O, 1 + 2 t is B-type, 2 + 2 t is I-type of type t --------------------------------------------- */

typedef struct cleat_tag_count {
    int64_t words, right; /* words whose tag is right */
} cleat_tag_count;

/* Entities as the CoNLL-2000 evaluation (conlleval) sees them: one starts at B, and at I after O or after another
 * type; it ends before the next start, before O, and at the sentence's end. It is right when one with the same
 * first word, last word and type is in the target.
 * Adds one sentence: target, predicted [words]; types [n] is added to. A word without a prediction (cut off) goes in
 * as O. */
void cleat_entities_add(const int32_t *target, const int32_t *predicted, size_t words, cleat_count *types,
                        cleat_tag_count *tags);

#endif
