/* Several runs: their results and the settings in which they differ, side by side. */
#include "report/html.h"
#include "report/sections.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef void (*cell_fn)(const cleat_report_run *run, cleat_string *page);

static void outcome_cell(const cleat_report_run *run, cleat_string *page) {
    const char *tone, *text = cleat_outcome_text(run->outcome, &tone);
    cleat_string_add(page, "<span class=\"chip %s\">%s</span>", tone, text);
}

static void limit_cell(const cleat_report_run *run, cleat_string *page) {
    const char *tone, *text = cleat_limit_text(run->limit, &tone);
    cleat_string_add(page, "<span class=\"chip %s\">%s</span>", tone, text);
}

static void best_cell(const cleat_report_run *run, cleat_string *page) {
    char shown[CLEAT_SHOWN];
    cleat_html_text(page, run->metric);
    cleat_string_add(page, " <b>%s</b>", cleat_show_number(run->best, shown));
}

static void baseline_cell(const cleat_report_run *run, cleat_string *page) {
    char shown[CLEAT_SHOWN];
    if (!isfinite(run->baseline)) return;
    cleat_string_add(page, "%s: ", cleat_show_number(run->baseline, shown));
    cleat_html_text(page, run->baseline_text);
    if (run->is_beaten && run->outcome != CLEAT_REPORT_RUNNING)
        cleat_string_add(page, " <span class=\"chip bad\">Not better than the baseline</span>");
}

static void number_cell(double value, cleat_string *page) {
    char shown[CLEAT_SHOWN];
    cleat_string_add(page, "%s", cleat_show_number(value, shown));
}

static void share_cell(double value, cleat_string *page) {
    char shown[CLEAT_SHOWN];
    cleat_string_add(page, "%s", cleat_show_share(value, shown));
}

static void epoch_cell(const cleat_report_run *run, cleat_string *page) {
    number_cell(run->best_epoch, page);
}
static void steps_cell(const cleat_report_run *run, cleat_string *page) {
    number_cell(run->step, page);
}
static void speed_cell(const cleat_report_run *run, cleat_string *page) {
    number_cell(run->samples_per_second, page);
}
static void work_cell(const cleat_report_run *run, cleat_string *page) {
    share_cell(1 - run->dry, page);
}
static void roofline_cell(const cleat_report_run *run, cleat_string *page) {
    share_cell(run->roofline, page);
}
static void time_cell(const cleat_report_run *run, cleat_string *page) {
    char shown[CLEAT_SHOWN];
    cleat_string_add(page, "%s", cleat_show_duration(run->seconds, shown));
}
static void device_cell(const cleat_report_run *run, cleat_string *page) {
    const char *name = cleat_report_start_text(run, "device", "name");
    cleat_html_text(page, name ? name : "–");
}
static void trend_cell(const cleat_report_run *run, cleat_string *page) {
    cleat_trend_sentence(run, page);
}
static void next_cell(const cleat_report_run *run, cleat_string *page) {
    if (!run->next_command[0]) return;
    cleat_string_add(page, "<code>");
    cleat_html_text(page, run->next_command);
    cleat_string_add(page, "</code>");
}

static const struct {
    const char *name;
    cell_fn add;
} rows[] = {{"outcome", outcome_cell},  {"best", best_cell},        {"baseline", baseline_cell},
            {"at epoch", epoch_cell},   {"trend", trend_cell},      {"steps", steps_cell},
            {"time", time_cell},        {"device", device_cell},    {"speed", limit_cell},
            {"samples/s", speed_cell},  {"device busy", work_cell}, {"speed reached", roofline_cell},
            {"next command", next_cell}};

static void add_head(const cleat_report_run *runs, size_t count, cleat_string *page) {
    cleat_string_add(page, "<thead><tr><th></th>");
    for (size_t r = 0; r < count; ++r) {
        cleat_string_add(page, "<th scope=\"col\"><i class=\"key b%zu\"></i>", r % 8);
        cleat_html_text(page, runs[r].history->name);
        cleat_string_add(page, "</th>");
    }
    cleat_string_add(page, "</tr></thead>");
}

/* The run with the best value, if all have the same metric. */
static void add_headline(const cleat_report_run *runs, size_t count, cleat_string *page) {
    char best[CLEAT_SHOWN], other[CLEAT_SHOWN];
    size_t first = 0;
    for (size_t r = 0; r < count; ++r) {
        if (strcmp(runs[r].metric, runs[0].metric) != 0 || isnan(runs[r].best)) return;
        if (runs[0].ascends ? runs[r].best > runs[first].best : runs[r].best < runs[first].best) first = r;
    }
    cleat_string_add(page, "<h2 class=\"headline\"><strong>");
    cleat_html_text(page, runs[first].history->name);
    cleat_string_add(page, "</strong> has the best ");
    cleat_html_text(page, runs[0].metric);
    cleat_string_add(page, ": %s", cleat_show_number(runs[first].best, best));
    if (count == 2)
        cleat_string_add(page, " <span class=\"against\">against %s</span>",
                         cleat_show_number(runs[1 - first].best, other));
    if (runs[first].is_beaten) cleat_string_add(page, ", not better than its baseline");
    cleat_string_add(page, "</h2>");
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
        cleat_string_add(page, "<tr><th scope=\"row\"><code>");
        cleat_html_format(page, "%s.%s", setting->section, setting->key);
        cleat_string_add(page, "</code></th>");
        for (size_t r = 0; r < count; ++r) {
            cleat_string_add(page, "<td class=\"text\">");
            cleat_html_text(page, value_of(&runs[r], setting->section, setting->key));
            cleat_string_add(page, "</td>");
        }
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
        for (size_t r = 0; r < count; ++r) {
            cleat_string_add(page, "<td class=\"text\">");
            rows[i].add(&runs[r], page);
            cleat_string_add(page, "</td>");
        }
        cleat_string_add(page, "</tr>");
    }
    cleat_string_add(
        page, "</tbody></table></div><h3>Settings that differ</h3><div class=\"scroll\"><table class=\"compare\">");
    add_head(runs, count, page);
    cleat_string_add(page, "<tbody>");
    for (size_t r = 0; r < count; ++r) found += add_differences_of(runs, count, r, page);
    cleat_string_add(page, "</tbody></table></div>");
    if (!found) cleat_string_add(page, "<p class=\"note\">None.</p>");
    cleat_string_add(page, "</section>\n");
}
