/* Memory of the device: the plan by category, and use over time. */
#include "report/html.h"
#include "report/plot.h"
#include "report/sections.h"

enum { MAX_PARTS = 16, POINTS = 600 };

static void add_plan(const cleat_report_run *run, cleat_string *page) {
    char shown[MAX_PARTS][CLEAT_SHOWN], total_text[CLEAT_SHOWN];
    cleat_bar_part parts[MAX_PARTS];
    size_t count = 0;
    const cJSON *categories = cleat_json_member(cleat_json_member(run->start, "plan"), "categories"), *item;
    double total = cleat_report_start_number(run, "device", "memory_total");
    cJSON_ArrayForEach(item, categories) {
        if (count == MAX_PARTS || !cJSON_IsNumber(item) || !item->string) continue;
        parts[count] = (cleat_bar_part){item->string, cleat_show_bytes(item->valuedouble, shown[count]),
                                        item->valuedouble, (int)count % CLEAT_PLOT_COLOURS};
        ++count;
    }
    if (!count) return;
    cleat_string_add(page, "<h3>The plan</h3>");
    if (total > 0)
        cleat_string_add(page, "<p class=\"note\">Full width: the %s of the device.</p>",
                         cleat_show_bytes(total, total_text));
    cleat_stacked_bar(parts, count, total > 0 ? total : 0, page);
}

static void add_use(const cleat_report_run *runs, size_t count, cleat_string *page, cleat_string *data) {
    static const struct {
        const char *column, *name;
    } lines[] = {{"memory_device", "device, all processes"},
                 {"memory_own", "device, this run"},
                 {"memory_allocated", "allocated by cleat"},
                 {"host_memory", "host, this run"},
                 {"memory_gtt", "host memory mapped to the card"}};
    cleat_plot plot = {.id = "memory-use",
                       .title = "Memory in use",
                       .unit = "bytes",
                       .x_is_seconds = true,
                       .starts_at_zero = true,
                       .limit = POINTS};
    for (size_t r = 0; r < count; ++r)
        for (size_t i = 0; i < sizeof lines / sizeof *lines && runs[r].samples && (count == 1 || i == 1); ++i)
            cleat_plot_add(&plot, count > 1 ? runs[r].history->name : lines[i].name, runs[r].elapsed,
                           cleat_history_values(runs[r].samples, lines[i].column), runs[r].samples->rows,
                           count > 1 ? (int)r : (int)i);
    cleat_plot_write(&plot, page, data);
}

/* Memory within one recorded step: activations and workspace. */
static void add_step(const cleat_report_run *run, cleat_string *page, cleat_string *data) {
    enum { MAX_TIMES = 400 };
    static const char *const names[] = {"activations", "workspace"};
    double time[MAX_TIMES], bytes[2][MAX_TIMES];
    const cJSON *timeline = cleat_json_member(cleat_json_member(run->profile, "memory"), "timeline"), *row;
    size_t count = 0;
    cJSON_ArrayForEach(row, timeline) {
        const cJSON *t = cJSON_GetArrayItem(row, 0), *a = cJSON_GetArrayItem(row, 1), *w = cJSON_GetArrayItem(row, 2);
        if (count == MAX_TIMES || !cJSON_IsNumber(t) || !cJSON_IsNumber(a) || !cJSON_IsNumber(w)) continue;
        time[count] = t->valuedouble * 1e6;
        bytes[0][count] = a->valuedouble;
        bytes[1][count++] = w->valuedouble;
    }
    cleat_plot plot = {.id = "memory-step",
                       .title = "Memory within one step",
                       .note = "Horizontal axis: microseconds of a profiled step.",
                       .unit = "bytes",
                       .starts_at_zero = true,
                       .limit = POINTS};
    for (int i = 0; i < 2; ++i) {
        cleat_plot_line *line = cleat_plot_add(&plot, names[i], time, bytes[i], count, i);
        if (line) line->has_points = false;
    }
    cleat_plot_write(&plot, page, data);
}

void cleat_section_memory(const cleat_report_run *runs, size_t count, cleat_string *page, cleat_string *data) {
    bool any = false;
    for (size_t r = 0; r < count; ++r) any |= runs[r].samples || cleat_json_member(runs[r].start, "plan");
    if (!any) return;
    cleat_section_begin("memory", "Memory", page);
    if (count == 1) add_plan(runs, page);
    cleat_string_add(page, "<div class=\"grid2\">");
    add_use(runs, count, page, data);
    if (count == 1) add_step(runs, page, data);
    cleat_string_add(page, "</div></section>\n");
}
