/* Metrics of classification and tagging: hand-counted cases, and every pair of short tag sequences against an
 * independent span extraction. */
/* ctest: quick */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "models/classes.h"
#include "models/text_metrics.h"
#include "platform/files.h"

static void assert_near(double got, double wanted) {
    if (!(fabs(got - wanted) < 1e-12)) fail_msg("%.15g, not %.15g", got, wanted);
}

/* --- classes -------------------------------------------------------------------------------------------------- */

enum { MAX_CLASSES = 6, MAX_SAMPLES = 10 };

/* Metrics of classes a, b, ... from labels and predictions. */
static cleat_metrics metrics_of(int64_t classes, const int32_t *target, const int32_t *said, int64_t count) {
    static const cleat_class_info known[MAX_CLASSES] = {{1, "a", 0, 0, 0}, {1, "b", 0, 1, 0}, {1, "c", 0, 2, 0},
                                                        {1, "d", 0, 3, 0}, {1, "e", 0, 4, 0}, {1, "f", 0, 5, 0}};
    float logits[MAX_SAMPLES * MAX_CLASSES] = {0};
    double metric_state[3 * MAX_CLASSES + MAX_CLASSES * MAX_CLASSES] = {0};
    cleat_metrics found = {0};
    for (int64_t i = 0; i < count; ++i) logits[i * classes + said[i]] = 1;
    assert_true(cleat_classes_metric_state_size(classes) <= sizeof metric_state / sizeof *metric_state);
    cleat_classes_metric_update(known, target, logits, count / 2, classes, metric_state); /* in two pieces */
    cleat_classes_metric_update(known, target + count / 2, logits + count / 2 * classes, count - count / 2, classes,
                                metric_state);
    cleat_classes_metric_compute(classes, metric_state, &found);
    return found;
}

static void counts_classes(void **state) {
    (void)state;
    static const int32_t target[] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2}, said[] = {0, 0, 0, 1, 1, 1, 2, 2, 0, 2};
    for (int64_t classes = 3; classes <= MAX_CLASSES; classes += 3) {
        cleat_metrics found = metrics_of(classes, target, said, 10);
        assert_near(cleat_metrics_get(&found, "accuracy"), 0.6);
        assert_near(cleat_metrics_get(&found, "macro_recall"), (0.75 + 0.5 + 0.5) / 3);
        assert_near(cleat_metrics_get(&found, "macro_f1"), (0.75 + 4.0 / 7 + 0.4) / 3);
        assert_int_equal(found.count, 3); /* the confusion matrix is no metric */
    }
    assert_int_equal(cleat_classes_metric_state_size(21841), 3 * 21841 + 64 * 64); /* not its square */
}

static void scores_counts(void **state) {
    (void)state;
    cleat_score score = cleat_tag_counts_score(&(cleat_tag_counts){.target = 4, .predicted = 3, .right = 2});
    assert_near(score.precision, 2.0 / 3);
    assert_near(score.recall, 0.5);
    assert_near(score.f1, 4.0 / 7);
    score = cleat_tag_counts_score(&(cleat_tag_counts){0});
    assert_near(score.precision + score.recall + score.f1, 0);
}

/* A class that never occurs is not counted; a class that is only predicted counts as an F1 of 0; an absent
 * label is not counted. */
static void leaves_absent_classes_out(void **state) {
    (void)state;
    static const int32_t target[] = {0, 1, -1, 1}, said[] = {0, 1, 2, 3};
    cleat_metrics none = metrics_of(4, target, said, 0);
    for (size_t i = 0; i < none.count; ++i) assert_near(none.items[i].value, 0);
    cleat_metrics all = metrics_of(4, target, said, 4);
    assert_near(cleat_metrics_get(&all, "accuracy"), 2.0 / 3);
    assert_near(cleat_metrics_get(&all, "macro_recall"), (1 + 0.5) / 2);
    assert_near(cleat_metrics_get(&all, "macro_f1"), (1 + 2.0 / 3 + 0) / 3);
}

/* --- tags ----------------------------------------------------------------------------------------------------- */

enum { TYPES = 2, LONGEST = 4, TAGS = 1 + 2 * TYPES };

/* "O", "Bx", "Ix", "By", "Iy", separated by blanks. */
static size_t read_tags(const char *text, int32_t *tags) {
    size_t count = 0;
    for (; *text; ++text) {
        if (*text == ' ') continue;
        tags[count] = 0;
        if (*text != 'O') {
            tags[count] = (*text == 'B' ? 1 : 2) + (text[1] == 'y' ? 2 : 0);
            ++text;
        }
        ++count;
    }
    return count;
}

static void counts_entities(void **state) {
    (void)state;
    static const struct {
        const char *target, *predicted;
        cleat_tag_counts x, y;
        int64_t right_tags;
    } rows[] = {
        {"", "", {0, 0, 0}, {0, 0, 0}, 0},
        {"O O", "O O", {0, 0, 0}, {0, 0, 0}, 2},
        {"Bx Ix O By", "Bx Ix O By", {1, 1, 1}, {1, 1, 1}, 4},
        {"Bx Ix O", "Bx O O", {1, 1, 0}, {0, 0, 0}, 2},   /* too short */
        {"Bx O O", "Bx Ix O", {1, 1, 0}, {0, 0, 0}, 2},   /* too long */
        {"Bx Ix", "By Iy", {1, 0, 0}, {0, 1, 0}, 0},      /* another type */
        {"O Bx", "O Ix", {1, 1, 1}, {0, 0, 0}, 1},        /* I after O starts an entity */
        {"Bx Ix", "Ix Ix", {1, 1, 1}, {0, 0, 0}, 1},      /* and at the start of the sentence */
        {"Bx By", "Bx Iy", {1, 1, 1}, {1, 1, 1}, 1},      /* and after another type */
        {"Bx Bx", "Bx Ix", {2, 1, 0}, {0, 0, 0}, 1},      /* one entity instead of two */
        {"Bx Bx Ix", "Bx Bx O", {2, 2, 1}, {0, 0, 0}, 2}, /* the first is right */
        {"Bx Ix Iy Iy", "Bx Ix By Iy", {1, 1, 1}, {1, 1, 1}, 3},
        {"Bx Ix Ix", "Ix By Ix", {1, 2, 0}, {0, 1, 0}, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        int32_t target[8], predicted[8];
        cleat_tag_counts types[TYPES] = {0};
        cleat_tagging_counts tags = {0};
        size_t words = read_tags(rows[i].target, target);
        assert_int_equal(read_tags(rows[i].predicted, predicted), words);
        cleat_entities_add(target, predicted, words, types, &tags);
        if (memcmp(&types[0], &rows[i].x, sizeof *types) != 0 || memcmp(&types[1], &rows[i].y, sizeof *types) != 0)
            fail_msg("row %zu: x %d %d %d, y %d %d %d", i, (int)types[0].target, (int)types[0].predicted,
                     (int)types[0].right, (int)types[1].target, (int)types[1].predicted, (int)types[1].right);
        assert_int_equal(tags.words, words);
        assert_int_equal(tags.right, rows[i].right_tags);
    }
}

static void scores_entities(void **state) {
    (void)state;
    int32_t target[8], predicted[8];
    cleat_tag_counts types[TYPES] = {0};
    cleat_tagging_counts tags = {0};
    size_t words = read_tags("Bx O By Iy O Bx", target);
    read_tags("Bx O By O O O", predicted);
    cleat_entities_add(target, predicted, words, types, &tags);
    words = read_tags("Bx", target);
    read_tags("By", predicted);
    cleat_entities_add(target, predicted, words, types, &tags);
    cleat_score x = cleat_tag_counts_score(&types[0]), y = cleat_tag_counts_score(&types[1]);
    assert_near(x.precision, 1);
    assert_near(x.recall, 1.0 / 3);
    assert_near(x.f1, 0.5);
    assert_near(y.f1, 0);
    assert_int_equal(types[1].target, 1);
    assert_int_equal(types[1].predicted, 2);
    assert_int_equal(tags.words, 7);
    assert_int_equal(tags.right, 4);
}

typedef struct span {
    size_t first, last;
    int type;
} span;

/* The entities of a sentence: each tag either continues the last span or does not. */
static size_t find_spans(const int32_t *tags, size_t words, span *spans) {
    size_t count = 0;
    for (size_t i = 0; i < words; ++i) {
        if (tags[i] == 0) continue;
        int type = tags[i] <= 2 ? 0 : 1;
        bool inside = tags[i] == 2 || tags[i] == 4;
        span *open = count && spans[count - 1].last + 1 == i ? &spans[count - 1] : NULL;
        if (inside && open && open->type == type)
            open->last = i;
        else
            spans[count++] = (span){i, i, type};
    }
    return count;
}

static void agrees_with_spans(void **state) {
    (void)state;
    size_t sequences = 1;
    for (int i = 0; i < LONGEST; ++i) sequences *= TAGS;
    for (size_t a = 0; a < sequences; ++a)
        for (size_t b = 0; b < sequences; ++b) {
            int32_t target[LONGEST], predicted[LONGEST];
            span there[LONGEST], said[LONGEST];
            cleat_tag_counts types[TYPES] = {0}, wanted[TYPES] = {0};
            cleat_tagging_counts tags = {0};
            for (size_t i = 0, x = a, y = b; i < LONGEST; ++i, x /= TAGS, y /= TAGS) {
                target[i] = (int32_t)(x % TAGS);
                predicted[i] = (int32_t)(y % TAGS);
            }
            size_t n = find_spans(target, LONGEST, there), m = find_spans(predicted, LONGEST, said);
            for (size_t i = 0; i < n; ++i) ++wanted[there[i].type].target;
            for (size_t j = 0; j < m; ++j) ++wanted[said[j].type].predicted;
            for (size_t i = 0; i < n; ++i)
                for (size_t j = 0; j < m; ++j)
                    wanted[there[i].type].right += there[i].first == said[j].first && there[i].last == said[j].last &&
                                                   there[i].type == said[j].type;
            cleat_entities_add(target, predicted, LONGEST, types, &tags);
            if (memcmp(types, wanted, sizeof types) != 0) fail_msg("sequences %zu and %zu", a, b);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_classes),
        cmocka_unit_test(scores_counts),
        cmocka_unit_test(leaves_absent_classes_out),
        cmocka_unit_test(counts_entities),
        cmocka_unit_test(scores_entities),
        cmocka_unit_test(agrees_with_spans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
