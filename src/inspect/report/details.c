/* How to reproduce a run: the values of `auto`, settings, checkpoints with their hashes, environment. */
#include "report/html.h"
#include "report/sections.h"

#include <math.h>

static void add_auto(const cleat_report_run *run, cleat_string *page) {
    const cJSON *rows = cleat_json_member(run->start, "auto"), *row;
    if (!cJSON_GetArraySize(rows)) return;
    cleat_string_add(page, "<h3>Settings chosen automatically</h3><div "
                           "class=\"scroll\"><table><thead><tr><th>setting</th><th class=\"text\">given</th><th "
                           "class=\"text\">became</th><th>why</"
                           "th></tr></thead><tbody>");
    cJSON_ArrayForEach(row, rows) {
        static const char *const cells[] = {"key", "given", "became", "why"};
        cleat_string_add(page, "<tr>");
        for (int i = 0; i < 4; ++i) {
            cleat_html_add(page, i == 0 ? "<th scope=\"row\"><code>%s</code></th>" : "<td class=\"text\">%s</td>",
                           cleat_json_text(row, cells[i]));
        }
        cleat_string_add(page, "</tr>");
    }
    cleat_string_add(page, "</tbody></table></div>");
}

static void add_settings(const cleat_history *history, cleat_string *page) {
    if (!history->n_settings) return;
    cleat_string_add(
        page, "<details><summary>All %zu settings</summary><div class=\"scroll\"><table class=\"settings\"><tbody>",
        history->n_settings);
    for (size_t i = 0; i < history->n_settings; ++i) {
        const cleat_history_setting *setting = &history->settings[i];
        cleat_html_add(page, "<tr><th scope=\"row\"><code>%s.%s</code></th><td class=\"text\">%s</td></tr>",
                       setting->section, setting->key, setting->value);
    }
    cleat_string_add(page, "</tbody></table></div></details>");
}

static void add_checkpoints(const cleat_history *history, cleat_string *page) {
    char shown[CLEAT_SHOWN];
    if (!history->n_checkpoints) return;
    cleat_string_add(
        page,
        "<h3>Checkpoints</h3><div class=\"scroll\"><table><thead><tr><th>name</th><th></th><th>model</th><th>hash of "
        "the model (XXH3)</th></tr></thead><tbody>");
    for (size_t i = 0; i < history->n_checkpoints; ++i) {
        const cleat_history_checkpoint *checkpoint = &history->checkpoints[i];
        cleat_html_add(page,
                       "<tr><th scope=\"row\"><code>%s</code></th><td class=\"text\">%s%s%s</td><td>%s</td>"
                       "<td class=\"text\"><code>%s</code></td></tr>",
                       checkpoint->name, checkpoint->is_best ? "best" : "",
                       checkpoint->is_best && checkpoint->is_last ? ", " : "", checkpoint->is_last ? "last" : "",
                       cleat_show_bytes(checkpoint->model_bytes, shown), checkpoint->model_hash);
    }
    cleat_string_add(page, "</tbody></table></div>");
}

static void add_count_row(const char *name, double value, cleat_string *page) {
    char shown[CLEAT_SHOWN];
    if (isfinite(value)) cleat_table_row(name, cleat_show_number(value, shown), page);
}

static void add_text_row(const char *name, const char *value, cleat_string *page) {
    if (value && *value) cleat_table_row(name, value, page);
}

static void add_environment(const cleat_report_run *run, cleat_string *page) {
    char shown[CLEAT_SHOWN];
    if (!run->start) return;
    cleat_string_add(page, "<h3>Environment</h3><div class=\"scroll\"><table class=\"settings\"><tbody>");
    add_text_row("command", cleat_report_start_text(run, NULL, "command"), page);
    add_text_row("cleat", cleat_report_start_text(run, NULL, "cleat"), page);
    add_text_row("host", cleat_report_start_text(run, NULL, "host"), page);
    add_text_row("device", cleat_report_start_text(run, "device", "name"), page);
    add_text_row("platform", cleat_report_start_text(run, "device", "platform"), page);
    add_text_row("driver", cleat_report_start_text(run, "device", "driver"), page);
    add_count_row("compute units", cleat_report_start_number(run, "device", "compute_units"), page);
    double memory = cleat_report_start_number(run, "device", "memory_total");
    if (isfinite(memory)) cleat_table_row("device memory", cleat_show_bytes(memory, shown), page);
    add_count_row("CPUs allowed", cleat_report_start_number(run, "cpus", "allowed"), page);
    add_count_row("CPU quota", cleat_report_start_number(run, "cpus", "quota"), page);
    cleat_string_add(page, "</tbody></table></div>");
}

static void add_sources(const cleat_report_run *run, cleat_string *page) {
    const cJSON *rows = cleat_json_member(run->start, "figures"), *row;
    if (!cJSON_GetArraySize(rows)) return;
    cleat_string_add(page, "<details><summary>Sources of the system figures</summary><div class=\"scroll\"><table "
                           "class=\"settings\"><tbody>");
    cJSON_ArrayForEach(row, rows) {
        const char *source = cleat_json_text(row, "source");
        cleat_html_add(page,
                       "<tr><th scope=\"row\"><code>%s</code></th><td class=\"text\">%s</td><td class=\"text\">%s</td>"
                       "</tr>",
                       cleat_json_text(row, "name"), cleat_json_text(row, "meaning"),
                       source ? source : "not available on this machine");
    }
    cleat_string_add(page, "</tbody></table></div></details>");
}

void cleat_section_details(const cleat_report_run *run, cleat_string *page) {
    cleat_section_begin("details", "Reproduce this run", page);
    add_auto(run, page);
    add_checkpoints(run->history, page);
    add_environment(run, page);
    add_settings(run->history, page);
    add_sources(run, page);
    cleat_string_add(page, "</section>\n");
}
