/* Which plots the report has: losses, metrics and rates over steps, and figures of the system over time. */
#include "report/html.h"
#include "report/plot.h"
#include "report/sections.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Points of a line: of the loss, of other lines. */
enum { MAIN_POINTS = 2000, SIDE_POINTS = 600, MAX_METRIC_PLOTS = 8, GROUP = 3, BASELINE_COLOUR = 7 };

typedef struct writer {
    const cleat_report_run *runs;
    size_t count;
    cleat_string *page, *data;
} writer;

/* "training"; with several runs "NAME, training", or NAME alone if a plot has one line a run. */
static const char *line_name(const writer *out, size_t run, const char *name, bool is_only, char text[160]) {
    const char *of = out->runs[run].history->name;
    if (out->count == 1)
        snprintf(text, 160, "%s", name);
    else if (is_only)
        snprintf(text, 160, "%s", of);
    else
        snprintf(text, 160, "%s, %s", of, name);
    return text;
}

static bool is_constant(const cleat_history_table *table, const double *values) {
    for (size_t i = 1; table && values && i < table->rows; ++i)
        if (values[i] != values[0] && !(isnan(values[i]) && isnan(values[0]))) return false;
    return true;
}

static bool is_baseline(const char *name) {
    return strncmp(name, "persistence_", 12) == 0 || strncmp(name, "seasonal_", 9) == 0 ||
           strncmp(name, "blend_", 6) == 0;
}

static cleat_plot_line *add_column(writer *out, cleat_plot *plot, size_t run, const cleat_history_table *table,
                                   const char *column, const char *name, int colour) {
    char text[160];
    if (!table) return NULL;
    return cleat_plot_add(plot, line_name(out, run, name, strcmp(column, "loss") != 0 && !is_baseline(column), text),
                          cleat_history_values(table, "step"), cleat_history_values(table, column), table->rows,
                          out->count > 1 ? (int)run : colour);
}

static void write_loss(writer *out) {
    cleat_plot plot = {.id = "loss", .title = "Loss", .unit = "", .can_log = true, .limit = MAIN_POINTS};
    for (size_t r = 0; r < out->count; ++r) {
        cleat_plot_line *line = add_column(out, &plot, r, out->runs[r].train, "loss", "training", 0);
        if (line) line->is_noisy = true;
        line = add_column(out, &plot, r, out->runs[r].eval, "loss", "evaluation", 1);
        if (line) line->dashed = true;
    }
    cleat_plot_write(&plot, out->page, out->data);
}

static bool is_rate(const char *name) {
    return cleat_has_word("step epoch loss grad_norm loss_scale learning_rate", name, ' ');
}

/* The terms of one run; terms that never change (weight 0) are left out. */
static void write_terms(writer *out) {
    cleat_plot plot = {
        .id = "terms", .title = "Terms of the training loss", .unit = "", .can_log = true, .limit = SIDE_POINTS};
    const cleat_history_table *train = out->runs[0].train;
    if (out->count > 1 || !train) return;
    for (size_t i = 0; i < train->columns; ++i) {
        if (is_rate(train->items[i].name) || is_constant(train, train->items[i].values)) continue;
        cleat_plot_line *line =
            add_column(out, &plot, 0, train, train->items[i].name, train->items[i].name, (int)plot.count);
        if (line) line->is_noisy = true;
    }
    if (plot.count > 1) cleat_plot_write(&plot, out->page, out->data);
}

/* A forecast without a model, or the baseline of the examples, as a horizontal line. */
static void add_baselines(writer *out, cleat_plot *plot, const char *metric, double x[2], double y[2]) {
    static const char *const prefixes[] = {"persistence_", "seasonal_", "blend_"};
    const cleat_report_run *run = &out->runs[0];
    bool found = false;
    for (size_t i = 0; i < 3; ++i) {
        char name[96];
        snprintf(name, sizeof name, "%s%s", prefixes[i], metric);
        cleat_plot_line *line = add_column(out, plot, 0, run->eval, name, name, BASELINE_COLOUR - (int)i);
        if (line) line->dashed = found = true;
        if (line && out->count > 1) line->colour = BASELINE_COLOUR;
    }
    if (found || strcmp(metric, run->metric) != 0 || !isfinite(run->baseline)) return;
    x[0] = 0;
    x[1] = run->step > 0 ? run->step : 1;
    y[0] = y[1] = run->baseline;
    char text[160];
    cleat_plot_line *line = cleat_plot_add(plot, line_name(out, 0, "baseline", false, text), x, y, 2, BASELINE_COLOUR);
    if (line) {
        line->dashed = true;
        line->has_points = false;
    }
}

static void write_metric(writer *out, const char *metric, const char *note) {
    char id[96];
    double x[2], y[2];
    snprintf(id, sizeof id, "metric-%s", metric);
    cleat_plot plot = {.id = id, .title = metric, .note = note, .unit = "", .limit = SIDE_POINTS};
    for (size_t r = 0; r < out->count; ++r) add_column(out, &plot, r, out->runs[r].eval, metric, metric, 0);
    if (plot.count) add_baselines(out, &plot, metric, x, y);
    cleat_plot_write(&plot, out->page, out->data);
}

/* Length of the prefix up to the last '_' that names a group: mse_step_8, f1_person. 0: none. */
static size_t group_prefix(const cleat_history_table *eval, const char *name) {
    const char *last = strrchr(name, '_');
    size_t length = last ? (size_t)(last - name) + 1 : 0, members = 0;
    for (size_t i = 0; length && i < eval->columns; ++i) members += strncmp(eval->items[i].name, name, length) == 0;
    return members >= GROUP ? length : 0;
}

/* A count of a confusion matrix, which evaluations of 0.1 record as NAME_as_NAME. */
static bool is_confusion(const cleat_history_table *eval, const char *name) {
    const char *as = strstr(name, "_as_");
    char itself[64];
    if (as) snprintf(itself, sizeof itself, "%.*s_as_%.*s", (int)(as - name), name, (int)(as - name), name);
    return as && cleat_history_values(eval, itself);
}

static void write_group(writer *out, const char *name, size_t length) {
    char id[96], title[96];
    const cleat_history_table *eval = out->runs[0].eval;
    snprintf(id, sizeof id, "group-%.*s", (int)length, name);
    snprintf(title, sizeof title, "%.*s…", (int)length, name);
    cleat_plot plot = {.id = id, .title = title, .unit = "", .limit = SIDE_POINTS};
    for (size_t i = 0; i < eval->columns; ++i)
        if (strncmp(eval->items[i].name, name, length) == 0)
            add_column(out, &plot, 0, eval, eval->items[i].name, eval->items[i].name, (int)plot.count);
    cleat_plot_write(&plot, out->page, out->data);
}

/* Metrics of evaluations that training does not log: those that it logs are terms of the loss. */
static void write_other_metrics(writer *out) {
    const cleat_history_table *eval = out->runs[0].eval;
    size_t plots = 0;
    for (size_t i = 0; eval && i < eval->columns && plots < MAX_METRIC_PLOTS; ++i) {
        const char *name = eval->items[i].name;
        if (is_rate(name) || is_baseline(name) || is_confusion(eval, name) || strcmp(name, out->runs[0].metric) == 0 ||
            cleat_history_values(out->runs[0].train, name))
            continue;
        size_t length = group_prefix(eval, name);
        bool first = true;
        for (size_t k = 0; k < i && length; ++k) first &= strncmp(eval->items[k].name, name, length) != 0;
        if (length && out->count == 1) {
            if (!first) continue;
            write_group(out, name, length);
        } else
            write_metric(out, name, NULL);
        ++plots;
    }
}

static void write_rate(writer *out, const char *column, const char *title, bool noisy) {
    cleat_plot plot = {.id = column, .title = title, .unit = "", .can_log = true, .limit = SIDE_POINTS};
    bool constant = true;
    for (size_t r = 0; r < out->count; ++r) {
        const cleat_history_table *train = out->runs[r].train;
        constant &= is_constant(train, cleat_history_values(train, column));
        cleat_plot_line *line = add_column(out, &plot, r, train, column, title, 0);
        if (line) line->is_noisy = noisy;
    }
    plot.can_log = noisy;
    if (!constant) cleat_plot_write(&plot, out->page, out->data);
}

/* A single evaluation is not a curve. */
static void write_single_evaluation(const cleat_report_run *run, cleat_string *page) {
    char shown[CLEAT_SHOWN];
    cleat_string_add(page, "<h3>The evaluation</h3><table><tbody>");
    for (size_t i = 0; i < run->eval->columns; ++i)
        cleat_table_row(run->eval->items[i].name, cleat_show_number(run->eval->items[i].values[0], shown), page);
    cleat_string_add(page, "</tbody></table>");
}

void cleat_section_learning(const cleat_report_run *runs, size_t count, cleat_string *page, cleat_string *data) {
    writer out = {runs, count, page, data};
    bool any = false;
    for (size_t r = 0; r < count; ++r) any |= runs[r].train || runs[r].eval;
    if (!any) return;
    cleat_section_begin("learning", "Learning", page);
    cleat_string_add(page, "<p class=\"tools\"><label>Smoothing <input type=\"range\" id=\"smoothing\" min=\"0\" "
                           "max=\"100\" value=\"25\"></label> "
                           "<span>Drag across a plot to zoom all of them (touch: two fingers); double-click to see "
                           "everything.</span></p>");
    cleat_string_add(page, "<div class=\"wide\">");
    write_loss(&out);
    cleat_string_add(page, "</div><div class=\"grid2\">");
    bool single = count == 1 && runs[0].eval && runs[0].eval->rows == 1;
    if (!single && strcmp(runs[0].metric, "loss") != 0)
        write_metric(&out, runs[0].metric,
                     runs[0].ascends ? "Selects the best checkpoint; higher is better."
                                     : "Selects the best checkpoint; lower is better.");
    if (!single) write_other_metrics(&out);
    write_terms(&out);
    write_rate(&out, "learning_rate", "Learning rate", false);
    write_rate(&out, "grad_norm", "Gradient norm", true);
    write_rate(&out, "loss_scale", "Loss scale", false);
    cleat_string_add(page, "</div>");
    if (single) write_single_evaluation(runs, page);
    cleat_string_add(page, "</section>\n");
}

typedef struct time_plot {
    const char *id, *title, *note, *unit;
    bool noisy;
    struct {
        const char *column, *name;
    } lines[5];
} time_plot;

static const time_plot time_plots[] = {
    {"throughput", "Samples per second", NULL, "", true, {{"samples_per_second", "samples/s"}}},
    {"use",
     "Device utilisation",
     "Idle: the compute queue was empty. Speed reached: share of the roofline.",
     "share",
     false,
     {{"dry_share", "idle"},
      {"roofline_share", "speed reached"},
      {"busy_device", "busy (driver)"},
      {"dry_loader", "idle: loader"}}},
    {"power", "Power in watts", NULL, "", false, {{"power", "power"}}},
    {"temperature", "Temperature in °C", NULL, "", false, {{"temperature", "temperature"}}},
    {"clock", "Clock in MHz", NULL, "", false, {{"clock", "clock"}}},
    {"workers", "Loader threads", NULL, "", false, {{"workers", "threads"}, {"loader_fill_seconds", "busy"}}},
    {"host", "CPUs used by the run", NULL, "", false, {{"host_cpu", "CPUs"}}},
};

static void write_time_plot(writer *out, const time_plot *kind) {
    cleat_plot plot = {.id = kind->id,
                       .title = kind->title,
                       .note = kind->note,
                       .unit = kind->unit,
                       .x_is_seconds = true,
                       .starts_at_zero = true,
                       .limit = SIDE_POINTS};
    bool constant = true;
    for (size_t r = 0; r < out->count; ++r)
        for (int i = 0; i < 5 && kind->lines[i].column; ++i) {
            const cleat_history_table *samples = out->runs[r].samples;
            const double *values = cleat_history_values(samples, kind->lines[i].column);
            char text[160];
            if (!values || (out->count > 1 && i > 0)) continue;
            constant &= is_constant(samples, values);
            cleat_plot_line *line =
                cleat_plot_add(&plot, line_name(out, r, kind->lines[i].name, true, text), out->runs[r].elapsed, values,
                               samples->rows, out->count > 1 ? (int)r : i);
            if (!line) continue;
            line->is_noisy = kind->noisy;
            line->has_points = false;
        }
    if (!constant) cleat_plot_write(&plot, out->page, out->data);
}

void cleat_section_system_plots(const cleat_report_run *runs, size_t count, cleat_string *page, cleat_string *data) {
    writer out = {runs, count, page, data};
    cleat_string_add(page, "<div class=\"grid2\">");
    for (size_t i = 0; i < sizeof time_plots / sizeof *time_plots; ++i) write_time_plot(&out, &time_plots[i]);
    cleat_string_add(page, "</div>");
}
