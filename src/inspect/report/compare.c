/* Several runs: their results and the settings in which they differ, side by side. */
#include "report/html.h"
#include "report/sections.h"

#include <math.h>
#include <string.h>

static void best_cell(const cleat_report_run *run, cleat_string *page) {
    char shown[CLEAT_SHOWN];
    cleat_html_add(page, "%s <b>%s</b>", run->metric, cleat_show_number(run->best, shown));
}

static void baseline_cell(const cleat_report_run *run, cleat_string *page) {
    char shown[CLEAT_SHOWN];
    if (!isfinite(run->baseline)) return;
    cleat_html_add(page, "%s: %s", cleat_show_number(run->baseline, shown), run->baseline_text);
    cleat_add_beaten(run, page);
}

static void busy_cell(const cleat_report_run *run, cleat_string *page) {
    char shown[CLEAT_SHOWN];
    cleat_string_add(page, "%s", cleat_show_share(1 - run->dry, shown));
}

static void device_cell(const cleat_report_run *run, cleat_string *page) {
    const char *name = cleat_report_start_text(run, "device", "name");
    cleat_html_text(page, name ? name : "–");
}
static void next_cell(const cleat_report_run *run, cleat_string *page) {
    if (run->next_command[0]) cleat_html_add(page, "<code>%s</code>", run->next_command);
}

/* A number of the run as text, or what `add` appends. */
static const struct row {
    const char *name;
    void (*add)(const cleat_report_run *run, cleat_string *page);
    size_t number; /* offset of the double */
    const char *(*show)(double value, char text[CLEAT_SHOWN]);
} rows[] = {{"outcome", cleat_add_outcome, 0, NULL},
            {"best", best_cell, 0, NULL},
            {"baseline", baseline_cell, 0, NULL},
            {"at epoch", NULL, offsetof(cleat_report_run, best_epoch), cleat_show_number},
            {"trend", cleat_trend_sentence, 0, NULL},
            {"steps", NULL, offsetof(cleat_report_run, step), cleat_show_number},
            {"time", NULL, offsetof(cleat_report_run, seconds), cleat_show_duration},
            {"device", device_cell, 0, NULL},
            {"speed", cleat_add_limit, 0, NULL},
            {"samples/s", NULL, offsetof(cleat_report_run, samples_per_second), cleat_show_number},
            {"device busy", busy_cell, 0, NULL},
            {"speed reached", NULL, offsetof(cleat_report_run, roofline), cleat_show_share},
            {"next command", next_cell, 0, NULL}};

static void add_cell(const struct row *row, const cleat_report_run *run, cleat_string *page) {
    char shown[CLEAT_SHOWN];
    cleat_string_add(page, "<td class=\"text\">");
    if (row->add)
        row->add(run, page);
    else
        cleat_string_add(page, "%s",
                         row->show(*(const double *)(const void *)((const char *)run + row->number), shown));
    cleat_string_add(page, "</td>");
}

static void add_head(const cleat_report_run *runs, size_t count, cleat_string *page) {
    cleat_string_add(page, "<thead><tr><th></th>");
    for (size_t r = 0; r < count; ++r)
        cleat_html_add(page, "<th scope=\"col\"><i class=\"key b%zu\"></i>%s</th>", r % 8, runs[r].history->name);
    cleat_string_add(page, "</tr></thead>");
}

static const char *value_of(const cleat_report_run *run, const char *section, const char *key) {
    const char *value = cleat_history_setting_of(run->history, section, key);
    return value ? value : "–";
}

static bool differs(const cleat_report_run *runs, size_t count, const cleat_history_setting *setting) {
    for (size_t r = 0; r < count; ++r)
        if (strcmp(value_of(&runs[r], setting->section, setting->key), setting->value) != 0) return true;
    return false;
}

/* Of the folds of a cross-validation mean and deviation, of others the best value, if all have the same metric. */
static void add_headline(const cleat_report_run *runs, size_t count, cleat_string *page) {
    char best[CLEAT_SHOWN], other[CLEAT_SHOWN];
    const cleat_history_setting folds = {"data", "folds", (char *)value_of(runs, "data", "folds")};
    double number, mean = 0, squares = 0;
    size_t first = 0;
    for (size_t r = 0; r < count; ++r) {
        if (strcmp(runs[r].metric, runs[0].metric) != 0 || isnan(runs[r].best)) return;
        mean += runs[r].best / (double)count;
        if (runs[0].ascends ? runs[r].best > runs[first].best : runs[r].best < runs[first].best) first = r;
    }
    for (size_t r = 0; r < count; ++r) squares += pow(runs[r].best - mean, 2) / (double)(count - 1);
    if (cleat_number_parse(folds.value, &number) && !differs(runs, count, &folds)) {
        cleat_html_add(
            page, "<h2 class=\"headline\">%s <strong>%s</strong> (%s), mean and standard deviation of %zu folds</h2>",
            runs[0].metric, cleat_show_number(mean, best), cleat_show_number(sqrt(squares), other), count);
        return;
    }
    cleat_html_add(page, "<h2 class=\"headline\"><strong>%s</strong> has the best %s: %s", runs[first].history->name,
                   runs[0].metric, cleat_show_number(runs[first].best, best));
    if (count == 2)
        cleat_string_add(page, " <span class=\"against\">against %s</span>",
                         cleat_show_number(runs[1 - first].best, other));
    if (runs[first].is_beaten) cleat_string_add(page, ", not better than its baseline");
    cleat_string_add(page, "</h2>");
}

static size_t add_differences_of(const cleat_report_run *runs, size_t count, size_t of, cleat_string *page) {
    const cleat_history *history = runs[of].history;
    size_t found = 0;
    for (size_t i = 0; i < history->n_settings; ++i) {
        const cleat_history_setting *setting = &history->settings[i];
        bool shown = false; /* in the settings of a run before this one */
        for (size_t r = 0; r < of; ++r)
            shown |= cleat_history_setting_of(runs[r].history, setting->section, setting->key) != NULL;
        if (shown || !differs(runs, count, setting)) continue;
        ++found;
        cleat_html_add(page, "<tr><th scope=\"row\"><code>%s.%s</code></th>", setting->section, setting->key);
        for (size_t r = 0; r < count; ++r)
            cleat_html_add(page, "<td class=\"text\">%s</td>", value_of(&runs[r], setting->section, setting->key));
        cleat_string_add(page, "</tr>");
    }
    return found;
}

void cleat_section_compare(const cleat_report_run *runs, size_t count, cleat_string *page) {
    size_t found = 0;
    cleat_string_add(page, "<section class=\"verdict\" id=\"verdict\">");
    add_headline(runs, count, page);
    cleat_string_add(page, "<div class=\"scroll\"><table class=\"compare\">");
    add_head(runs, count, page);
    cleat_string_add(page, "<tbody>");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        cleat_string_add(page, "<tr><th scope=\"row\">%s</th>", rows[i].name);
        for (size_t r = 0; r < count; ++r) add_cell(&rows[i], &runs[r], page);
        cleat_string_add(page, "</tr>");
    }
    cleat_string_add(page, "</tbody></table></div><h3>Verdict of each run</h3>");
    for (size_t r = 0; r < count; ++r) {
        cleat_html_add(page, "<details class=\"each\" open><summary>%s</summary>", runs[r].history->name);
        cleat_add_verdict(&runs[r], page);
        cleat_string_add(page, "</details>");
    }
    cleat_string_add(page, "<h3>Settings that differ</h3><div class=\"scroll\"><table class=\"compare\">");
    add_head(runs, count, page);
    cleat_string_add(page, "<tbody><tr><th scope=\"row\">best</th>");
    for (size_t r = 0; r < count; ++r) add_cell(&(struct row){.add = best_cell}, &runs[r], page);
    cleat_string_add(page, "</tr>");
    for (size_t r = 0; r < count; ++r) found += add_differences_of(runs, count, r, page);
    cleat_string_add(page, "</tbody></table></div>");
    if (!found) cleat_string_add(page, "<p class=\"note\">None.</p>");
    cleat_string_add(page, "</section>\n");
}
