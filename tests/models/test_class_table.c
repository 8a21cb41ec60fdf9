/* Tables of classes beside scikit-learn 1.9's classification_report, jaccard_score and confusion_matrix, and seqeval
 * 1.2's classification_report: class_table.py prints the numbers below. */
/* ctest: quick */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "core/memory.h"
#include "models/classes.h"

static void assert_near(double got, double wanted) {
    if (!(fabs(got - wanted) < 1e-12)) fail_msg("%.15g, not %.15g", got, wanted);
}

static void assert_rows(const cleat_class_table *table, const cleat_class_row *wanted, size_t count) {
    assert_int_equal(table->count, count);
    for (size_t i = 0; i < count; ++i) {
        const cleat_class_row *row = &table->rows[i];
        assert_string_equal(row->name, wanted[i].name);
        assert_near(row->precision, wanted[i].precision);
        assert_near(row->recall, wanted[i].recall);
        assert_near(row->f1, wanted[i].f1);
        assert_near(row->support, wanted[i].support);
        if (isnan(wanted[i].iou)) assert_true(isnan(row->iou));
        if (!isnan(wanted[i].iou)) assert_near(row->iou, wanted[i].iou);
    }
}

/* --- classes -------------------------------------------------------------------------------------------------- */

enum { CLASSES = 7, MOST = 300 };

static const char truth[] = "012301230123001122330011223300001111222233330000111122224444",
                  said[] = "012301230123101202330110203301001211022235330030111102224000";

/* Class 5 is only predicted, class 6 does not occur: scikit-learn has no intersection over union of it. */
static const cleat_class_row rows[CLASSES] = {
    {"0", 0.5789473684210527, 0.7333333333333333, 0.6470588235294118, 15, 0.4782608695652174},
    {"1", 0.8, 0.8, 0.8, 15, 0.6666666666666666},
    {"2", 0.8461538461538461, 0.7333333333333333, 0.7857142857142857, 15, 0.6470588235294118},
    {"3", 0.9090909090909091, 0.9090909090909091, 0.9090909090909091, 11, 0.8333333333333334},
    {"4", 1, 0.25, 0.4, 4, 0.25},
    {"5", 0, 0, 0, 0, 0},
    {"6", 0, 0, 0, 0, NAN}};
static const double matrix[6][6] = {{11, 3, 0, 1, 0, 0}, {1, 12, 2, 0, 0, 0}, {4, 0, 11, 0, 0, 0},
                                    {0, 0, 0, 10, 0, 1}, {3, 0, 0, 0, 1, 0},  {0, 0, 0, 0, 0, 0}};

static void scores_are_those_of_scikit_learn(void **state) {
    (void)state;
    static cleat_class_row made[CLASSES];
    static cleat_class_table table = {.rows = made};
    cleat_class_info known[CLASSES] = {{0}};
    double *sums = cleat_alloc(cleat_classes_metric_state_size(CLASSES), sizeof *sums), wrong = 0;
    for (int c = 0; c < CLASSES; ++c) {
        snprintf(known[c].name, sizeof known[c].name, "%d", c);
        known[c].shown = c;
    }
    for (size_t i = 0; i < strlen(truth); ++i) {
        const int32_t label = truth[i] - '0';
        float logits[CLASSES] = {0};
        logits[said[i] - '0'] = 1;
        wrong += cleat_classes_metric_update(known, &label, logits, 1, CLASSES, sums);
    }
    assert_near(wrong, 15);
    cleat_classes_table(known, CLASSES, sums, &table);
    assert_rows(&table, rows, CLASSES);
    assert_int_equal(table.confusion.labels, CLASSES);
    for (int i = 0; i < 36; ++i) assert_near(table.confusion.counts[i / 6 * CLASSES + i % 6], matrix[i / 6][i % 6]);
    cleat_free(sums);
}

/* --- entities ------------------------------------------------------------------------------------------------- */

static const char *const names[] = {"O", "B-loc", "I-loc", "B-per", "I-per"};
static const char *const sentences[][2] = {{"B-per I-per O B-loc O", "B-per I-per O B-loc O"},
                                           {"B-per O B-loc I-loc O O", "B-per I-per O I-loc O B-loc"},
                                           {"O B-loc B-loc I-loc", "O B-loc I-loc I-loc"},
                                           {"I-per I-per B-per", "B-per I-per I-loc"}};

static size_t read_tags(const char *text, int32_t *tags) {
    char word[16];
    size_t count = 0;
    for (int size; sscanf(text, "%15s%n", word, &size) == 1; text += size)
        for (int32_t t = 0; t < 5; ++t)
            if (strcmp(word, names[t]) == 0) tags[count++] = t;
    return count;
}

static void entities_are_those_of_seqeval(void **state) {
    (void)state;
    static const cleat_class_row wanted[] = {{"loc", 0.2, 0.25, 0.2222222222222222, 4, 0.125},
                                             {"per", 0.6666666666666666, 0.5, 0.5714285714285715, 4, 0.4}};
    static cleat_class_row made[2];
    static cleat_class_table table = {.rows = made};
    cleat_tag_counts types[2] = {{0}};
    cleat_tagging_counts tags = {0};
    for (size_t i = 0; i < 4; ++i) {
        int32_t target[8], found[8];
        const size_t words = read_tags(sentences[i][0], target);
        assert_int_equal(read_tags(sentences[i][1], found), words);
        cleat_entities_add(target, found, words, types, &tags);
    }
    for (int t = 0; t < 2; ++t) cleat_class_table_add(&table, names[1 + 2 * t] + 2, &types[t]);
    assert_rows(&table, wanted, 2);
}

/* --- which rows are shown ------------------------------------------------------------------------------------- */

/* Support 0, 1, 2, 0, 1, 2, ... */
static void many(cleat_class_table *table) {
    *table = (cleat_class_table){.rows = cleat_alloc(MOST, sizeof *table->rows)};
    for (int i = 0; i < MOST; ++i) {
        char name[16];
        snprintf(name, sizeof name, "c%d", i);
        cleat_class_table_add(table, name, &(cleat_tag_counts){i % 3, 2, i % 3 > 0});
    }
}

static void the_most_frequent_are_shown(void **state) {
    (void)state;
    static cleat_class_table table;
    many(&table);
    size_t shown = 0;
    for (size_t i = 0; i < MOST; ++i) {
        assert_true(cleat_class_table_shows(&table, i, MOST));
        const bool wanted = i % 3 == 2 || (i % 3 == 1 && i < 3 * 20);
        assert_int_equal(cleat_class_table_shows(&table, i, 120), wanted);
        shown += wanted;
    }
    assert_int_equal(shown, 120);
    cleat_string json = {0};
    cleat_class_table_add_json(&table, 1, &json);
    assert_string_equal(json.data, "\"confusion\":null,\"classes\":[{\"name\":\"c2\",\"precision\":0.5,\"recall\":0.5,"
                                   "\"f1\":0.5,\"support\":2}],\"classes_left_out\":299");
    cleat_string_free(&json);
    cleat_class_table_free(&table);
    assert_true(!table.rows && !table.count);
}

static void the_json_of_an_evaluation_has_all(void **state) {
    (void)state;
    static cleat_class_table table;
    cleat_metrics metrics = {.count = 1, .items = {{"loss", 0.25}}};
    char *json = NULL;
    assert_int_equal(cleat_class_table_json(&table, &metrics, &json, NULL), CLEAT_OK);
    assert_string_equal(json, "{\"loss\": 0.25}"); /* a family without classes */
    free(json);
    many(&table);
    table.has_iou = true;
    snprintf(table.rows[0].name, sizeof table.rows[0].name, "a \"\\\xff");
    table.confusion = (cleat_confusion){.labels = 2, .names = {"no", "yes"}, .counts = {1, 2, 3, 4}};
    assert_int_equal(cleat_class_table_json(&table, &metrics, &json, NULL), CLEAT_OK);
    cJSON *all = cJSON_Parse(json), *classes = cJSON_GetObjectItem(all, "classes");
    assert_int_equal(cJSON_GetArraySize(classes), MOST);
    assert_null(cJSON_GetObjectItem(all, "classes_left_out"));
    assert_string_equal(cJSON_GetObjectItem(cJSON_GetArrayItem(classes, 0), "name")->valuestring, "a \"\\\xEF\xBF\xBD");
    assert_near(cJSON_GetObjectItem(cJSON_GetArrayItem(classes, 1), "iou")->valuedouble, 0.5);
    assert_non_null(strstr(json, "\"confusion\": {\"labels\": [\"no\", \"yes\"], \"counts\": [[1, 2], [3, 4]]}"));
    cJSON_Delete(all);
    free(json);
    cleat_class_table_free(&table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_those_of_scikit_learn), cmocka_unit_test(entities_are_those_of_seqeval),
        cmocka_unit_test(the_most_frequent_are_shown), cmocka_unit_test(the_json_of_an_evaluation_has_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
