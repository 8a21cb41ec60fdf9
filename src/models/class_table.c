/* Scores of each class and the confusion matrix of an evaluation. */
#include "models/examples.h"

#include "core/memory.h"

#include <math.h>
#include <stdio.h>

void cleat_class_table_free(cleat_class_table *table) {
    cleat_free(table->rows);
    *table = (cleat_class_table){0};
}

cleat_status cleat_model_class_table(const cleat_model *model, const double *metric_state, cleat_class_table *table,
                                     cleat_error *error) {
    const cleat_model_examples *of = model->type->examples;
    const size_t most = model->sizes.classes > 2 ? (size_t)model->sizes.classes : 2;
    cleat_class_row *rows = cleat_alloc(most, sizeof *rows);
    if (!rows) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the scores of %zu classes", most);
    *table = (cleat_class_table){.rows = rows};
    if (of && of->classes) of->classes(model, metric_state, table);
    return CLEAT_OK;
}

void cleat_class_table_add(cleat_class_table *table, const char *name, const cleat_tag_counts *counts) {
    const cleat_score score = cleat_tag_counts_score(counts);
    const double either = counts->target + counts->predicted - counts->right;
    cleat_class_row *row = &table->rows[table->count++];
    *row = (cleat_class_row){"",       score.precision, score.recall,
                             score.f1, counts->target,  either > 0 ? counts->right / either : NAN};
    snprintf(row->name, sizeof row->name, "%s", name);
}

bool cleat_class_table_shows(const cleat_class_table *table, size_t row, size_t most) {
    const double own = table->rows[row].support;
    size_t before = 0;
    for (size_t i = 0; i < table->count && before < most && table->count > most; ++i)
        before += table->rows[i].support > own || (table->rows[i].support == own && i < row);
    return before < most;
}

static void add_confusion(const cleat_confusion *confusion, cleat_string *json) {
    const size_t labels = confusion->labels;
    json_add(json, labels ? json_open("confusion", '{') : json_text("confusion", NULL));
    if (!labels) return;
    json_add(json, json_open("labels", '['));
    for (size_t i = 0; i < labels; ++i) cleat_examples_add_string(json, NULL, confusion->names[i], CLEAT_CLASS_NAME);
    json_add(json, json_close(']'), json_open("counts", '['));
    for (size_t i = 0; i < labels * labels; ++i) {
        if (i % labels == 0) json_add(json, json_open(NULL, '['));
        json_add(json, json_fixed(NULL, confusion->counts[i], 0));
        if (i % labels == labels - 1) json_add(json, json_close(']'));
    }
    json_add(json, json_close(']'), json_close('}'));
}

void cleat_class_table_add_json(const cleat_class_table *table, size_t most, cleat_string *json) {
    add_confusion(&table->confusion, json);
    json_add(json, table->count ? json_open("classes", '[') : json_text("classes", NULL));
    for (size_t i = 0; i < table->count; ++i) {
        const cleat_class_row *row = &table->rows[i];
        if (!cleat_class_table_shows(table, i, most)) continue;
        json_add(json, json_open(NULL, '{'), json_clean("name", row->name), json_number("precision", row->precision),
                 json_number("recall", row->recall), json_number("f1", row->f1),
                 json_fixed("support", row->support, 0));
        if (table->has_iou) json_add(json, json_number("iou", row->iou));
        json_add(json, json_close('}'));
    }
    if (table->count) json_add(json, json_close(']'));
    if (table->count > most) json_add(json, json_count("classes_left_out", (int64_t)(table->count - most)));
}

cleat_status cleat_class_table_json(const cleat_class_table *table, const cleat_metrics *metrics, char **json,
                                    cleat_error *error) {
    cleat_string text = {.spaced = true};
    json_add(&text, json_open(NULL, '{'));
    for (size_t i = 0; i < metrics->count; ++i)
        json_add(&text, json_number(metrics->items[i].name, metrics->items[i].value));
    if (table->count) cleat_class_table_add_json(table, table->count, &text);
    json_add(&text, json_close('}'));
    return cleat_string_detach(&text, json, error);
}
