/* A plot as a <figure>: caption, legend, drawing, and the data that the page's script draws. */
#include "report/plot.h"

#include "report/html.h"

#include <math.h>
#include <stdio.h>

enum { VALUE_DIGITS = 5 };

/* A line whose values span this ratio begins in a logarithmic scale. */
static const double log_ratio = 80;

static bool has_value(const double *y, size_t count) {
    for (size_t i = 0; i < count; ++i)
        if (isfinite(y[i])) return true;
    return false;
}

cleat_plot_line *cleat_plot_add(cleat_plot *plot, const char *name, const double *x, const double *y, size_t count,
                                int colour) {
    if (plot->count == CLEAT_PLOT_LINES || !x || !y || !has_value(y, count)) return NULL;
    cleat_plot_line *line = &plot->lines[plot->count++];
    *line = (cleat_plot_line){
        .x = x, .y = y, .count = count, .colour = colour % CLEAT_PLOT_COLOURS, .has_points = count <= 60};
    snprintf(line->name, sizeof line->name, "%s", name);
    return line;
}

/* Whether all values are above 0 and span more than log_ratio. */
static void choose_scale(cleat_plot *plot) {
    double low = INFINITY, high = 0;
    if (!plot->can_log) return;
    for (size_t k = 0; k < plot->count; ++k)
        for (size_t i = 0; i < plot->lines[k].count; ++i) {
            double y = plot->lines[k].y[i];
            if (!isfinite(y)) continue;
            if (y <= 0) {
                plot->can_log = false; /* some values would vanish */
                return;
            }
            low = fmin(low, y);
            high = fmax(high, y);
        }
    plot->is_log = high > log_ratio * low;
}

/* x as whole numbers, each as the difference from the one before. */
static void add_x(cleat_string *data, const double *x, size_t count) {
    long long before = 0;
    for (size_t i = 0; i < count; ++i) {
        char text[32];
        long long now = fabs(x[i]) < 1e15 ? llround(x[i]) : before;
        int size = snprintf(text, sizeof text, i ? ",%lld" : "%lld", now - before);
        cleat_string_add_bytes(data, text, (size_t)size);
        before = now;
    }
}

static void add_y(cleat_string *data, const double *y, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        if (i) cleat_string_add_bytes(data, ",", 1);
        cleat_html_number(data, y[i], VALUE_DIGITS);
    }
}

static void add_line_data(const cleat_plot *plot, const cleat_plot_line *line, cleat_string *data) {
    cleat_reduced_line reduced;
    if (!cleat_reduce(line->x, line->y, line->count, plot->limit, &reduced)) {
        data->failed = true;
        return;
    }
    cleat_string_add(data, "{\"name\":");
    cleat_html_json_string(data, line->name);
    cleat_string_add(data, ",\"colour\":%d,\"dashed\":%s,\"points\":%s,\"noisy\":%s,\"x\":[", line->colour,
                     line->dashed ? "true" : "false", line->has_points ? "true" : "false",
                     line->is_noisy ? "true" : "false");
    add_x(data, reduced.x, reduced.count);
    cleat_string_add(data, "],\"y\":[");
    add_y(data, reduced.y, reduced.count);
    cleat_string_add(data, "]");
    if (line->is_noisy && reduced.mean_count) {
        cleat_string_add(data, ",\"mean_x\":[");
        add_x(data, reduced.mean_x, reduced.mean_count);
        cleat_string_add(data, "],\"mean_y\":[");
        add_y(data, reduced.mean_y, reduced.mean_count);
        cleat_string_add(data, "]");
    }
    cleat_string_add(data, "}");
    cleat_reduced_line_free(&reduced);
}

static void add_data(const cleat_plot *plot, cleat_string *data) {
    if (data->size) cleat_string_add(data, ",\n");
    cleat_string_add(data, "{\"id\":");
    cleat_html_json_string(data, plot->id);
    cleat_string_add(data, ",\"unit\":");
    cleat_html_json_string(data, plot->unit);
    cleat_string_add(data, ",\"seconds\":%s,\"zero\":%s,\"log\":%s,\"can_log\":%s,\"lines\":[",
                     plot->x_is_seconds ? "true" : "false", plot->starts_at_zero ? "true" : "false",
                     plot->is_log ? "true" : "false", plot->can_log ? "true" : "false");
    for (size_t i = 0; i < plot->count; ++i) {
        if (i) cleat_string_add(data, ",");
        add_line_data(plot, &plot->lines[i], data);
    }
    cleat_string_add(data, "]}");
}

static void add_legend(const cleat_plot *plot, cleat_string *page) {
    cleat_string_add(page, "<ul class=\"legend%s\">", plot->count == 1 ? " one" : "");
    for (size_t i = 0; i < plot->count; ++i) {
        const cleat_plot_line *line = &plot->lines[i];
        cleat_html_add(page, "<li><i class=\"key c%d%s\"></i>%s <output></output></li>", line->colour,
                       line->dashed ? " dashed" : "", line->name);
    }
    cleat_string_add(page, "</ul>");
}

void cleat_plot_write(cleat_plot *plot, cleat_string *page, cleat_string *data) {
    if (!plot->count) return;
    choose_scale(plot);
    cleat_html_add(page, "<figure class=\"plot\" data-plot=\"%s\"><figcaption><h3>%s</h3>", plot->id, plot->title);
    if (plot->note) cleat_html_add(page, "<p>%s</p>", plot->note);
    cleat_string_add(page, "</figcaption>");
    add_legend(plot, page);
    cleat_string_add(page, "<div class=\"canvas\"></div><div class=\"drawing\">");
    cleat_plot_draw(plot, page);
    cleat_string_add(page, "</div></figure>\n");
    add_data(plot, data);
}
