/* Figures of classes, and entities counted as conlleval counts them. */
#include "models/text_metrics.h"

static double ratio(int64_t part, int64_t whole) {
    return whole ? (double)part / (double)whole : 0;
}

cleat_score cleat_count_score(const cleat_count *count) {
    return (cleat_score){
        .precision = ratio(count->right, count->predicted),
        .recall = ratio(count->right, count->truth),
        .f1 = ratio(2 * count->right, count->truth + count->predicted), /* the harmonic mean, without its 0 / 0 */
    };
}

/* --- classes -------------------------------------------------------------------------------------------------- */

cleat_class_figures cleat_class_counts_figures(const cleat_count *counts, size_t classes) {
    cleat_class_figures all = {0};
    int64_t samples = 0, right = 0, occurring = 0, there = 0;
    for (size_t class = 0; class < classes; ++class) {
        const cleat_count *count = &counts[class];
        cleat_score score = cleat_count_score(count);
        samples += count->truth;
        right += count->right;
        occurring += count->truth || count->predicted;
        there += count->truth > 0;
        all.macro_f1 += score.f1;
        all.macro_recall += score.recall;
    }
    all.accuracy = ratio(right, samples);
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

void cleat_entities_add(const int32_t *truth, const int32_t *predicted, size_t words, cleat_count *types,
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
