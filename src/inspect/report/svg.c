/* Drawing of a plot as SVG, for a page without scripts and on paper. */
#include "platform/text.h"
#include "report/html.h"
#include "report/plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    WIDTH = 640,
    HEIGHT = 240,
    SMALL_WIDTH = 340,
    SMALL_HEIGHT = 170,
    LEFT = 56,
    RIGHT = 12,
    TOP = 8,
    BOTTOM = 30,
    DRAWN_POINTS = 300
};

typedef struct axis {
    double low, high; /* logarithms, if is_log */
    double from, to;  /* pixels */
    bool is_log;
} axis;

static double place(const axis *on, double value) {
    double at = on->is_log ? log10(value) : value;
    return on->from + (at - on->low) / (on->high - on->low) * (on->to - on->from);
}

/* The largest of 1, 2, 5 times a power of ten so that at most `wanted` of them cover `span`. */
static double round_step(double span, size_t wanted) {
    double step = pow(10, floor(log10(span / (double)wanted)));
    static const double factors[] = {1, 2, 5, 10};
    for (size_t i = 0; i < 4; ++i)
        if (span / (step * factors[i]) <= (double)wanted) return step * factors[i];
    return 10 * step;
}

size_t cleat_axis_ticks(double low, double high, bool is_log, size_t wanted, double ticks[12]) {
    size_t count = 0;
    if (!(high > low)) return 0;
    if (is_log) {
        double first = ceil(log10(low) - 1e-9), last = floor(log10(high) + 1e-9);
        double step = fmax(1, ceil((last - first + 1) / (double)wanted));
        for (double e = first; e <= last && count < 12; e += step) ticks[count++] = pow(10, e);
        if (count >= 2) return count;
        count = 0; /* less than two decades: as many round numbers as a linear axis has */
    }
    double step = round_step(high - low, wanted);
    for (double at = ceil(low / step - 1e-9) * step; at <= high + 1e-9 * step && count < 12; at += step)
        ticks[count++] = fabs(at) < 1e-9 * step ? 0 : at;
    return count;
}

/* Ticks of an axis of seconds: steps that are round in seconds, minutes, hours, days or years. */
static size_t second_ticks(double low, double high, size_t wanted, double ticks[12]) {
    static const double steps[] = {1,     2,      5,      10,     20,      30,      60,       120,
                                   300,   600,    1200,   1800,   3600,    7200,    14400,    28800,
                                   86400, 172800, 432000, 864000, 2592000, 7776000, 31557600, 157788000};
    double step = 0;
    size_t count = 0;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && !step; ++i)
        if ((high - low) / steps[i] <= (double)wanted) step = steps[i];
    if (!step) return cleat_axis_ticks(low, high, false, wanted, ticks);
    for (double at = ceil(low / step) * step; at <= high && count < 12; at += step) ticks[count++] = at;
    return count;
}

/* Ticks of an axis of bytes: powers of two. */
static size_t byte_ticks(double low, double high, size_t wanted, double ticks[12]) {
    double step = exp2(ceil(log2((high - low) / (double)wanted)));
    size_t count = 0;
    for (double at = ceil(low / step) * step; at <= high && count < 12; at += step) ticks[count++] = at;
    return count;
}

static void show_seconds(double value, char text[48]) {
    if (value >= 7200)
        snprintf(text, 48, "%.3g h", value / 3600);
    else if (value >= 120)
        snprintf(text, 48, "%.3g min", value / 60);
    else
        snprintf(text, 48, "%.3g s", value);
}

const char *cleat_axis_text(double value, const char *unit, char text[48]) {
    if (strcmp(unit, "share") == 0)
        snprintf(text, 48, "%.3g %%", 100 * value);
    else if (strcmp(unit, "bytes") == 0)
        snprintf(text, 48, value >= 1073741824.0 ? "%.3g GiB" : "%.0f MiB",
                 value >= 1073741824.0 ? value / 1073741824.0 : value / 1048576.0);
    else if (strcmp(unit, "seconds") == 0)
        show_seconds(value, text);
    else if (fabs(value) >= 1e6)
        snprintf(text, 48, "%.3gM", value / 1e6);
    else if (fabs(value) >= 10000)
        snprintf(text, 48, "%.4gk", value / 1000);
    else
        snprintf(text, 48, fabs(value) >= 1000 ? "%.4g" : "%.3g", value);
    return text;
}

static int width_of(const cleat_plot *plot) {
    return plot->is_small ? SMALL_WIDTH : WIDTH;
}

static int height_of(const cleat_plot *plot) {
    return plot->is_small ? SMALL_HEIGHT : HEIGHT;
}

/* Values beyond 1e250 are gaps: the span, and a margin, of an axis must be finite. */
static bool is_drawable(double value) {
    return fabs(value) < 1e250;
}

static void widen(double value, double *low, double *high) {
    if (!is_drawable(value)) return;
    if (value < *low) *low = value;
    if (value > *high) *high = value;
}

static void find_range(const cleat_plot *plot, axis *x, axis *y) {
    double low = INFINITY, high = -INFINITY, left = INFINITY, right = -INFINITY;
    for (size_t k = 0; k < plot->count; ++k)
        for (size_t i = 0; i < plot->lines[k].count; ++i) {
            widen(plot->lines[k].x[i], &left, &right);
            const double half = plot->lines[k].band ? plot->lines[k].band[i] : 0;
            widen(plot->lines[k].y[i] - half, &low, &high);
            widen(plot->lines[k].y[i] + half, &low, &high);
        }
    if (!(low <= high)) low = high = 1;
    if (!(left <= right)) left = right = 0;
    if (plot->starts_at_zero && !plot->is_log) widen(0, &low, &high);
    if (plot->is_log) {
        low = log10(low);
        high = log10(high);
    }
    double margin = high > low ? 0.04 * (high - low) : fmax(fabs(high) * 0.1, 1e-6);
    bool on_zero = plot->starts_at_zero && !plot->is_log && low == 0;
    *y = (axis){on_zero ? 0 : low - margin, high + margin, height_of(plot) - BOTTOM, TOP, plot->is_log};
    *x = (axis){left, right > left ? right : left + 1, LEFT, width_of(plot) - RIGHT, false};
}

/* Formats a tick of an axis of times: 13:30, or a day; or a month, to whose first day it moves *at. */
static void show_time(double span, double *at, char text[48]) {
    const bool months = span > 60 * 86400.0;
    struct tm time;
    gmtime_r(&(time_t){(time_t)*at + (months ? 86400 : 0)}, &time); /* years are a quarter of a day longer than 365 */
    if (months) time = (struct tm){.tm_year = time.tm_year, .tm_mon = time.tm_mon, .tm_mday = 1};
    *at = (double)timegm(&time);
    strftime(text, 48, months ? "%Y-%m" : span < 5 * 86400 && fmod(*at, 86400) != 0 ? "%H:%M" : "%Y-%m-%d", &time);
}

static void draw_grid(const cleat_plot *plot, const axis *x, const axis *y, cleat_string *page) {
    double ticks[12], low = plot->is_log ? pow(10, y->low) : y->low, high = plot->is_log ? pow(10, y->high) : y->high;
    char text[48];
    size_t count = strcmp(plot->unit, "bytes") == 0 ? byte_ticks(low, high, 5, ticks)
                                                    : cleat_axis_ticks(low, high, plot->is_log, 5, ticks);
    for (size_t i = 0; i < count; ++i) {
        double at = place(y, ticks[i]);
        if (!isfinite(at)) continue; /* 0 on a logarithmic axis */
        cleat_string_add(
            page, "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>",
            LEFT, at, width_of(plot) - RIGHT, LEFT - 6, at + 4, cleat_axis_text(ticks[i], plot->unit, text));
    }
    count = plot->x_is_seconds || plot->x_is_time
                ? second_ticks(x->low, x->high, plot->is_small ? 4 : 7, ticks)
                : cleat_axis_ticks(x->low, x->high, false, plot->is_small ? 4 : 7, ticks);
    for (size_t i = 0; i < count; ++i) {
        cleat_axis_text(ticks[i], plot->x_is_seconds ? "seconds" : "", text);
        if (plot->x_is_time) show_time(x->high - x->low, &ticks[i], text);
        if (ticks[i] < x->low) continue;
        cleat_string_add(page, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>", place(x, ticks[i]),
                         height_of(plot) - 12, text);
    }
}

static void draw_points(const cleat_plot *plot, const cleat_plot_line *line, const axis *x, const axis *y,
                        cleat_string *page) {
    for (size_t i = 0; i < line->count; ++i) {
        if (!is_drawable(line->x[i]) || !is_drawable(line->y[i]) || (plot->is_log && line->y[i] <= 0)) continue;
        cleat_string_add(page, "<circle class=\"c%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>", line->colour,
                         place(x, line->x[i]), place(y, line->y[i]));
    }
}

static void draw_band(const cleat_plot_line *line, const axis *x, const axis *y, cleat_string *page) {
    cleat_string_add(page, "<path class=\"band\" d=\"");
    for (size_t i = 0, drawn = 0; i < 2 * line->count; ++i) { /* there above the line, and back below it */
        const bool back = i >= line->count;
        const size_t at = back ? 2 * line->count - 1 - i : i;
        const double value = line->y[at] + (back ? -line->band[at] : line->band[at]);
        if (!is_drawable(line->x[at]) || !is_drawable(value)) continue;
        cleat_string_add(page, "%c%.1f %.1f", drawn++ ? 'L' : 'M', place(x, line->x[at]), place(y, value));
    }
    cleat_string_add(page, "\"/>");
}

static void draw_line(const cleat_plot *plot, const cleat_plot_line *line, const axis *x, const axis *y,
                      cleat_string *page) {
    cleat_reduced_line reduced;
    bool pen_down = false;
    if (!cleat_reduce(line->x, line->y, line->count, DRAWN_POINTS, &reduced)) {
        page->failed = true;
        return;
    }
    cleat_string_add(page, "<path class=\"line c%d%s%s\" d=\"", line->colour, line->dashed ? " dashed" : "",
                     line->is_noisy && line->count > 60 ? " noisy" : "");
    for (size_t i = 0; i < reduced.count; ++i) {
        if (!is_drawable(reduced.x[i]) || !is_drawable(reduced.y[i]) || (plot->is_log && reduced.y[i] <= 0)) {
            pen_down = false;
            continue;
        }
        cleat_string_add(page, "%c%.1f %.1f", pen_down ? 'L' : 'M', place(x, reduced.x[i]), place(y, reduced.y[i]));
        pen_down = true;
    }
    cleat_string_add(page, "\"/>");
    cleat_reduced_line_free(&reduced);
    if (line->has_points) draw_points(plot, line, x, y, page);
}

void cleat_plot_draw(const cleat_plot *plot, cleat_string *page) {
    axis x, y;
    find_range(plot, &x, &y);
    cleat_string_add(page, "<svg%s", plot->is_small ? " class=\"small\"" : "");
    cleat_html_add(page, " viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">", width_of(plot), height_of(plot),
                   plot->title);
    draw_grid(plot, &x, &y, page);
    for (size_t i = 0; i < plot->count; ++i)
        if (plot->lines[i].band) draw_band(&plot->lines[i], &x, &y, page);
    for (size_t i = 0; i < plot->count; ++i) draw_line(plot, &plot->lines[i], &x, &y, page);
    cleat_string_add(page, "</svg>");
}
