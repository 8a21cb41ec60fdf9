/* Metrics of classes, and of entities counted as in conlleval. */
#include "models/text_metrics.h"

static double ratio(double part, double whole) {
    return whole > 0 ? part / whole : 0;
}

cleat_score cleat_tag_counts_score(const cleat_tag_counts *count) {
    return (cleat_score){
        .precision = ratio(count->right, count->predicted),
        .recall = ratio(count->right, count->target),
        /* the harmonic mean of precision and recall, in a form without its 0 / 0 */
        .f1 = ratio(2 * count->right, count->target + count->predicted),
    };
}

cleat_class_metrics cleat_class_counts_metrics(const cleat_tag_counts *counts, size_t classes) {
    cleat_class_metrics all = {0};
    double samples = 0, right = 0, occurring = 0, there = 0;
    for (size_t class = 0; class < classes; ++class) {
        const cleat_tag_counts *count = &counts[class];
        cleat_score score = cleat_tag_counts_score(count);
        samples += count->target;
        right += count->right;
        occurring += count->target + count->predicted > 0;
        there += count->target > 0;
        all.macro_f1 += score.f1;
        all.macro_recall += score.recall;
    }
    all.accuracy = ratio(right, samples);
    if (occurring > 0) all.macro_f1 /= occurring;
    if (there > 0) all.macro_recall /= there;
    return all;
}

enum { OUTSIDE = 0, NOWHERE = -1 };

static int32_t type_of(int32_t tag) {
    return (tag - 1) / 2;
}

/* Whether `tag`, following the tag `before`, starts an entity. */
static bool starts(int32_t before, int32_t tag) {
    if (tag == OUTSIDE) return false;
    return tag % 2 == 1 || before == OUTSIDE || type_of(before) != type_of(tag);
}

/* Whether the entity of `before` ends when `tag` follows. */
static bool ends(int32_t before, int32_t tag) {
    return before != OUTSIDE && (tag == OUTSIDE || starts(before, tag));
}

void cleat_entities_add(const int32_t *target, const int32_t *predicted, size_t words, cleat_tag_counts *types,
                        cleat_tagging_counts *tags) {
    int32_t common = NOWHERE; /* type of the current entity if it has matched in both sequences so far */
    int32_t target_before = OUTSIDE, predicted_before = OUTSIDE;
    for (size_t i = 0; i <= words; ++i) {
        int32_t t = i < words ? target[i] : OUTSIDE, p = i < words ? predicted[i] : OUTSIDE;
        bool target_ends = ends(target_before, t), predicted_ends = ends(predicted_before, p);
        if (common != NOWHERE && target_ends && predicted_ends) types[common].right += 1;
        if (target_ends || predicted_ends) common = NOWHERE;
        bool target_starts = starts(target_before, t), predicted_starts = starts(predicted_before, p);
        if (target_starts) types[type_of(t)].target += 1;
        if (predicted_starts) types[type_of(p)].predicted += 1;
        if (target_starts && predicted_starts && type_of(t) == type_of(p)) common = type_of(t);
        if (i < words) tags->right += t == p;
        target_before = t;
        predicted_before = p;
    }
    tags->words += (int64_t)words;
}
