/* Tables of classes: scores, and the confusion matrix, whose rows are the truth and columns the prediction. */
#include "report/html.h"
#include "report/sections.h"

#include <math.h>

enum { MAX_LABELS = 64 };

static double row_sum(const cJSON *row, int count) {
    double sum = 0;
    for (int i = 0; i < count; ++i) {
        const cJSON *item = cJSON_GetArrayItem(row, i);
        if (cJSON_IsNumber(item)) sum += item->valuedouble;
    }
    return sum;
}

static const char *label_of(const cJSON *labels, int i) {
    const cJSON *label = cJSON_GetArrayItem(labels, i);
    return cJSON_IsString(label) ? label->valuestring : "";
}

static void add_cell(const cJSON *labels, int r, int c, double value, double sum, cleat_string *page) {
    double share = sum > 0 ? value / sum : 0;
    char shown[CLEAT_SHOWN];
    /* Right predictions in blue, wrong ones in orange; the darker, the larger the share of the row. */
    cleat_html_add(page, "<td class=\"%s%s\" style=\"--share:%.3f\" title=\"%s, predicted %s: %.0f (%s)\">",
                   r == c ? "right" : "wrong", share > 0.5 ? " dark" : "", sqrt(fmin(fmax(share, 0), 1)),
                   label_of(labels, r), label_of(labels, c), value, cleat_show_share(share, shown));
    if (value > 0) cleat_string_add(page, "%.0f", value);
    cleat_string_add(page, "</td>");
}

void cleat_confusion_table(const cJSON *confusion, cleat_string *page) {
    const cJSON *labels = cleat_json_member(confusion, "labels"), *counts = cleat_json_member(confusion, "counts");
    int n = cJSON_GetArraySize(labels);
    if (n < 2 || n > MAX_LABELS || cJSON_GetArraySize(counts) != n) return;
    cleat_string_add(page,
                     "<h3>Confusion matrix</h3><p class=\"note\">Rows: the truth. Columns: the prediction.</p><div "
                     "class=\"scroll\"><table class=\"confusion%s\"><thead><tr><th></th>",
                     n > 16 ? " small" : "");
    for (int c = 0; c < n; ++c) cleat_html_add(page, "<th scope=\"col\"><span>%s</span></th>", label_of(labels, c));
    cleat_string_add(page, "</tr></thead><tbody>");
    for (int r = 0; r < n; ++r) {
        const cJSON *row = cJSON_GetArrayItem(counts, r);
        double sum = row_sum(row, n);
        cleat_html_add(page, "<tr><th scope=\"row\">%s</th>", label_of(labels, r));
        for (int c = 0; c < n; ++c) {
            const cJSON *item = cJSON_GetArrayItem(row, c);
            add_cell(labels, r, c, cJSON_IsNumber(item) ? item->valuedouble : 0, sum, page);
        }
        cleat_string_add(page, "</tr>");
    }
    cleat_string_add(page, "</tbody></table></div>");
}

void cleat_score_table(const cJSON *examples, cleat_string *page) {
    static const char *const columns[] = {"precision", "recall", "f1", "support", "iou"};
    const cJSON *classes = cleat_json_member(examples, "classes"), *row;
    const int count = cJSON_HasObjectItem(cJSON_GetArrayItem(classes, 0), "iou") ? 5 : 4;
    const double left_out = cleat_json_number(examples, "classes_left_out");
    char shown[CLEAT_SHOWN];
    if (!cJSON_GetArraySize(classes)) return;
    cleat_string_add(page, "<h3>Classes</h3><div class=\"scroll\"><table><thead><tr><th>class</th>");
    for (int c = 0; c < count; ++c) cleat_string_add(page, "<th scope=\"col\">%s</th>", columns[c]);
    cleat_string_add(page, "</tr></thead><tbody>");
    cJSON_ArrayForEach(row, classes) {
        cleat_html_add(page, "<tr><th scope=\"row\">%s</th>", cleat_json_text(row, "name"));
        for (int c = 0; c < count; ++c)
            cleat_html_add(page, "<td>%s</td>",
                           cleat_show_number(round(1000 * cleat_json_number(row, columns[c])) / 1000, shown));
        cleat_string_add(page, "</tr>");
    }
    cleat_string_add(page, "</tbody></table></div>");
    if (left_out > 0)
        cleat_string_add(page, "<p class=\"note\">%.0f with the least support are left out.</p>", left_out);
}
