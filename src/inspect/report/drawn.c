/* Examples that are drawn: RNA traces with their contacts, forecasts of a series. */
#include "core/memory.h"
#include "report/html.h"
#include "report/plot.h"
#include "report/sections.h"

#include <math.h>
#include <stdio.h>

enum { MAX_RESIDUES = 1024, MAX_VALUES = 4096, SIZE = 240, PAST_PER_HORIZON = 4 };

/* C1' atoms nearer than this are a contact, as in the field's contact maps. */
static const double contact_distance = 12;

typedef struct trace {
    double at[MAX_RESIDUES][3]; /* Å; NaN: not resolved, or implausible */
    int count;
} trace;

static void read_trace(const cJSON *points, trace *out) {
    const cJSON *point;
    out->count = 0;
    cJSON_ArrayForEach(point, points) {
        if (out->count == MAX_RESIDUES) return;
        for (int k = 0; k < 3; ++k) {
            const cJSON *item = cJSON_IsArray(point) ? cJSON_GetArrayItem(point, k) : NULL;
            out->at[out->count][k] = cJSON_IsNumber(item) && fabs(item->valuedouble) < 1e6 ? item->valuedouble : NAN;
        }
        ++out->count;
    }
}

/* The axes in order of falling spread: the widest becomes x, so that a chain lies flat. */
static void find_axes(const trace *points, int axes[3], double middle[3], double *radius) {
    double spread[3] = {0, 0, 0};
    int known = 0;
    for (int k = 0; k < 3; ++k) middle[k] = 0;
    for (int i = 0; i < points->count; ++i)
        if (isfinite(points->at[i][0])) {
            for (int k = 0; k < 3; ++k) middle[k] += points->at[i][k];
            ++known;
        }
    for (int k = 0; k < 3; ++k) middle[k] /= known ? known : 1;
    *radius = 1;
    for (int i = 0; i < points->count; ++i) {
        double square = 0;
        for (int k = 0; k < 3; ++k) {
            double from = points->at[i][k] - middle[k];
            if (!isfinite(from)) continue;
            spread[k] += from * from;
            square += from * from;
        }
        *radius = fmax(*radius, sqrt(square));
    }
    axes[0] = spread[0] >= spread[1] && spread[0] >= spread[2] ? 0 : spread[1] >= spread[2] ? 1 : 2;
    axes[1] = spread[(axes[0] + 1) % 3] >= spread[(axes[0] + 2) % 3] ? (axes[0] + 1) % 3 : (axes[0] + 2) % 3;
    axes[2] = 3 - axes[0] - axes[1];
}

static void draw_trace(const trace *points, const int axes[3], const double middle[3], double scale,
                       const char *class_name, cleat_string *page) {
    bool pen_down = false;
    cleat_string_add(page, "<path class=\"trace %s\" d=\"", class_name);
    for (int i = 0; i < points->count; ++i) {
        double x = SIZE / 2 + scale * (points->at[i][axes[0]] - middle[axes[0]]),
               y = SIZE / 2 - scale * (points->at[i][axes[1]] - middle[axes[1]]);
        if (isfinite(x) && isfinite(y)) cleat_string_add(page, "%c%.1f %.1f", pen_down ? 'L' : 'M', x, y);
        pen_down = isfinite(x) && isfinite(y);
    }
    cleat_string_add(page, "\"/>");
}

/* The coordinates for the script that turns the drawing: 3 whole numbers a residue, in tenths of a pixel. */
static void add_coordinates(const char *name, const trace *points, const int axes[3], const double middle[3],
                            double scale, cleat_string *page) {
    cleat_string_add(page, " data-%s=\"[", name);
    for (int i = 0; i < points->count; ++i) {
        if (i) cleat_string_add(page, ",");
        if (!isfinite(points->at[i][0])) {
            cleat_string_add(page, "null");
            continue;
        }
        for (int k = 0; k < 3; ++k)
            cleat_string_add(page, "%c%.0f", k ? ',' : '[', 10 * scale * (points->at[i][axes[k]] - middle[axes[k]]));
        cleat_string_add(page, "]");
    }
    cleat_string_add(page, "]\"");
}

static bool is_contact(const trace *points, int i, int j) {
    double square = 0;
    for (int k = 0; k < 3; ++k) square += (points->at[i][k] - points->at[j][k]) * (points->at[i][k] - points->at[j][k]);
    return square < contact_distance * contact_distance; /* false for NaN */
}

/* Half of the map, as horizontal runs: `above` the diagonal or below it. */
static void draw_contacts(const trace *points, bool above, const char *class_name, cleat_string *page) {
    int n = points->count;
    cleat_string_add(page, "<path class=\"contacts %s\" d=\"", class_name);
    for (int i = 0; i < n; ++i) {
        int from = above ? i + 1 : 0, to = above ? n : i;
        for (int j = from; j < to;) {
            int length = 0;
            while (j + length < to && is_contact(points, i, j + length)) ++length;
            if (length) cleat_string_add(page, "M%d %d.5h%d", j, i, length);
            j += length ? length : 1;
        }
    }
    cleat_string_add(page, "\"/>");
}

void cleat_example_rna(const cJSON *example, cleat_string *page) {
    trace *both = cleat_alloc(2, sizeof *both), *truth = both, *prediction = both ? both + 1 : NULL;
    if (!both) {
        page->failed = true;
        return;
    }
    read_trace(cleat_json_member(example, "truth"), truth);
    read_trace(cleat_json_member(example, "prediction"), prediction);
    int axes[3], n = truth->count < prediction->count ? truth->count : prediction->count;
    truth->count = prediction->count = n;
    double middle[3], radius, other;
    find_axes(isfinite(cleat_json_number(example, "score")) ? truth : prediction, axes, middle, &radius);
    { /* both must stay inside the drawing */
        int unused[3];
        double its_middle[3];
        find_axes(prediction, unused, its_middle, &other);
        for (int k = 0; k < 3; ++k) other += fabs(its_middle[k] - middle[k]) / 2;
    }
    double scale = (SIZE / 2 - 8) / fmax(radius, other);
    if (n > 1) {
        cleat_string_add(
            page, "<svg class=\"rna\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"trace of truth and prediction\"",
            SIZE, SIZE);
        add_coordinates("truth", truth, axes, middle, scale, page);
        add_coordinates("prediction", prediction, axes, middle, scale, page);
        cleat_string_add(page, ">");
        draw_trace(truth, axes, middle, scale, "truth", page);
        draw_trace(prediction, axes, middle, scale, "prediction", page);
        cleat_string_add(page,
                         "</svg><svg class=\"map\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"contact map\"><path "
                         "class=\"diagonal\" d=\"M0 0L%d %d\"/>",
                         n, n, n, n);
        draw_contacts(truth, true, "truth", page);
        draw_contacts(prediction, false, "prediction", page);
        cleat_string_add(page, "</svg>");
    }
    cleat_free(both);
}

static size_t read_values(const cJSON *values, size_t most, double *out) {
    const cJSON *item;
    size_t count = 0;
    cJSON_ArrayForEach(item, values) {
        if (count == most) break;
        out[count++] = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    }
    return count;
}

typedef struct forecast {
    double x[4][MAX_VALUES], y[4][MAX_VALUES], times[2 * MAX_VALUES], band[MAX_VALUES];
} forecast;

void cleat_example_series(const cJSON *example, bool is_small, cleat_string *page) {
    static const char *const names[] = {"past", "truth", "prediction", "baseline"};
    static const int colours[] = {7, 0, 1, 2};
    forecast *values = cleat_alloc(1, sizeof *values);
    cleat_plot plot = {.id = "", .title = "forecast", .unit = "", .is_small = is_small, .limit = MAX_VALUES};
    size_t past = 0, horizon = (size_t)cJSON_GetArraySize(cleat_json_member(example, "prediction"));
    if (!values) {
        page->failed = true;
        return;
    }
    size_t timed = read_values(cleat_json_member(example, "times"), 2 * MAX_VALUES, values->times);
    for (size_t i = 0; i < timed; ++i)
        if (!isfinite(values->times[i])) timed = 0;
    const size_t errors = read_values(cleat_json_member(example, "error"), MAX_VALUES, values->band);
    for (size_t i = 0; i < errors; ++i) values->band[i] *= 1.2816; /* 80 % of normal errors */
    for (int k = 0; k < 4; ++k) {
        size_t count = read_values(cleat_json_member(example, names[k]), MAX_VALUES, values->y[k]), first = 0;
        if (k == 0) past = count;
        if (k == 0) plot.x_is_time = timed && timed == past + horizon;
        for (size_t i = 0; i < count; ++i)
            values->x[k][i] =
                plot.x_is_time ? values->times[k == 0 ? i : past + i] : (double)i - (k == 0 ? (double)past : 0);
        if (k == 0 && horizon && past > PAST_PER_HORIZON * horizon) first = past - PAST_PER_HORIZON * horizon;
        cleat_plot_line *line =
            cleat_plot_add(&plot, names[k], values->x[k] + first, values->y[k] + first, count - first, colours[k]);
        if (!line) continue;
        line->has_points = false;
        line->dashed = k == 3;
        if (k == 2 && errors == count) line->band = values->band;
    }
    if (plot.count) cleat_plot_draw(&plot, page);
    cleat_free(values);
}
