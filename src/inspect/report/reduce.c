/* Fewer points of a line without losing a spike: least and largest value of each bin. */
#include "report/plot.h"

#include "core/memory.h"

#include <math.h>

typedef struct bin {
    size_t low, high, gap; /* indices; SIZE_MAX: none */
    double sum;
    size_t finite;
} bin;

static bin scan_bin(const double *y, size_t from, size_t to) {
    bin found = {SIZE_MAX, SIZE_MAX, SIZE_MAX, 0, 0};
    for (size_t i = from; i < to; ++i) {
        if (!isfinite(y[i])) {
            found.gap = i;
            continue;
        }
        if (found.low == SIZE_MAX || y[i] < y[found.low]) found.low = i;
        if (found.high == SIZE_MAX || y[i] > y[found.high]) found.high = i;
        found.sum += y[i];
        ++found.finite;
    }
    return found;
}

static void add_point(cleat_reduced_line *out, double x, double y) {
    out->x[out->count] = x;
    out->y[out->count++] = isfinite(y) ? y : NAN;
}

/* `count`: points of the line, whose first and last are also kept. */
static void add_bin(const double *x, const double *y, size_t from, size_t to, size_t count, cleat_reduced_line *out) {
    bin found = scan_bin(y, from, to);
    size_t kept[3] = {found.low, found.high, found.gap};
    for (size_t i = from; i < to; ++i) /* in order of x */
        if (i == kept[0] || i == kept[1] || i == kept[2] || i == 0 || i + 1 == count) add_point(out, x[i], y[i]);
    out->mean_x[out->mean_count] = x[(from + to - 1) / 2];
    out->mean_y[out->mean_count++] = found.finite ? found.sum / (double)found.finite : NAN;
}

static bool has_gap(const double *y, size_t count) {
    for (size_t i = 0; i < count; ++i)
        if (!isfinite(y[i])) return true;
    return false;
}

static bool allocate(cleat_reduced_line *out, size_t points, size_t means) {
    out->x = cleat_alloc(points + 1, sizeof *out->x);
    out->y = cleat_alloc(points + 1, sizeof *out->y);
    out->mean_x = cleat_alloc(means + 1, sizeof *out->mean_x);
    out->mean_y = cleat_alloc(means + 1, sizeof *out->mean_y);
    if (out->x && out->y && out->mean_x && out->mean_y) return true;
    cleat_reduced_line_free(out);
    return false;
}

bool cleat_reduce(const double *x, const double *y, size_t count, size_t limit, cleat_reduced_line *reduced) {
    cleat_reduced_line made = {0};
    bool whole = count <= limit;
    size_t bins = (limit - 2) / (has_gap(y, count) ? 3 : 2);
    if (!allocate(&made, whole ? count : limit, whole ? 0 : bins)) return false;
    if (whole)
        for (size_t i = 0; i < count; ++i) add_point(&made, x[i], y[i]);
    else
        for (size_t b = 0; b < bins; ++b) add_bin(x, y, b * count / bins, (b + 1) * count / bins, count, &made);
    *reduced = made;
    return true;
}

void cleat_reduced_line_free(cleat_reduced_line *reduced) {
    cleat_free(reduced->x);
    cleat_free(reduced->y);
    cleat_free(reduced->mean_x);
    cleat_free(reduced->mean_y);
    *reduced = (cleat_reduced_line){0};
}
