/* Confusion matrices, and entities counted as conlleval counts them. */
#include "models/text_metrics.h"

static double ratio(int64_t part, int64_t whole) {
    return whole ? (double)part / (double)whole : 0;
}

static cleat_score score_of(int64_t truth, int64_t predicted, int64_t right) {
    return (cleat_score){
        .truth = truth,
        .predicted = predicted,
        .right = right,
        .precision = ratio(right, predicted),
        .recall = ratio(right, truth),
        .f1 = ratio(2 * right, truth + predicted), /* the harmonic mean, without its 0 / 0 */
    };
}

/* --- classes -------------------------------------------------------------------------------------------------- */

void cleat_confusion_add(int64_t *counts, size_t classes, int32_t truth, int32_t predicted) {
    ++counts[(size_t)truth * classes + (size_t)predicted];
}

static cleat_score score_of_class(const int64_t *counts, size_t classes, size_t class) {
    int64_t truth = 0, predicted = 0;
    for (size_t other = 0; other < classes; ++other) {
        truth += counts[class * classes + other];
        predicted += counts[other * classes + class];
    }
    return score_of(truth, predicted, counts[class * classes + class]);
}

cleat_class_figures cleat_confusion_figures(const int64_t *counts, size_t classes, cleat_score *per_class) {
    cleat_class_figures all = {0};
    int64_t right = 0, occurring = 0, there = 0;
    for (size_t class = 0; class < classes; ++class) {
        cleat_score score = score_of_class(counts, classes, class);
        all.samples += score.truth;
        right += score.right;
        occurring += score.truth || score.predicted;
        there += score.truth > 0;
        all.macro_f1 += score.f1;
        all.macro_recall += score.recall;
        if (per_class) per_class[class] = score;
    }
    all.accuracy = ratio(right, all.samples);
    if (occurring) all.macro_f1 /= (double)occurring;
    if (there) all.macro_recall /= (double)there;
    return all;
}

/* --- tags ----------------------------------------------------------------------------------------------------- */

enum { OUTSIDE = 0, NOWHERE = -1 };

static bool begins(int32_t tag) {
    return tag % 2 == 1;
}

static int32_t type_of(int32_t tag) {
    return (tag - 1) / 2;
}

/* Is `tag`, after the tag `before`, the first of an entity? */
static bool starts(int32_t before, int32_t tag) {
    if (tag == OUTSIDE) return false;
    return begins(tag) || before == OUTSIDE || type_of(before) != type_of(tag);
}

/* Is an entity that `before` is part of over when `tag` follows? */
static bool ends(int32_t before, int32_t tag) {
    return before != OUTSIDE && (tag == OUTSIDE || starts(before, tag));
}

void cleat_entities_add(const int32_t *truth, const int32_t *predicted, size_t words, cleat_entity_count *types,
                        cleat_tag_count *tags) {
    int32_t common = NOWHERE; /* type of the entity that so far is the same on both sides */
    int32_t truth_before = OUTSIDE, predicted_before = OUTSIDE;
    for (size_t i = 0; i <= words; ++i) {
        int32_t t = i < words ? truth[i] : OUTSIDE, p = i < words ? predicted[i] : OUTSIDE;
        bool truth_ends = ends(truth_before, t), predicted_ends = ends(predicted_before, p);
        if (common != NOWHERE && truth_ends && predicted_ends) ++types[common].right;
        if (truth_ends || predicted_ends) common = NOWHERE;
        bool truth_starts = starts(truth_before, t), predicted_starts = starts(predicted_before, p);
        if (truth_starts) ++types[type_of(t)].truth;
        if (predicted_starts) ++types[type_of(p)].predicted;
        if (truth_starts && predicted_starts && type_of(t) == type_of(p)) common = type_of(t);
        if (i < words) tags->right += t == p;
        truth_before = t;
        predicted_before = p;
    }
    tags->words += (int64_t)words;
}

cleat_score cleat_entity_score(const cleat_entity_count *count) {
    return score_of(count->truth, count->predicted, count->right);
}

cleat_score cleat_entities_score(const cleat_entity_count *types, size_t n) {
    cleat_entity_count all = {0};
    for (size_t i = 0; i < n; ++i) {
        all.truth += types[i].truth;
        all.predicted += types[i].predicted;
        all.right += types[i].right;
    }
    return cleat_entity_score(&all);
}
