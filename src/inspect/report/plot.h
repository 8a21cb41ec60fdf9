/* A plot: lines over steps or seconds. It becomes data for the scripts of the page and, for a page without
 * scripts and on paper, an SVG drawing. */
#ifndef CLEAT_SRC_REPORT_PLOT_H
#define CLEAT_SRC_REPORT_PLOT_H

#include "core/string.h"

enum { CLEAT_PLOT_LINES = 24, CLEAT_PLOT_COLOURS = 8 };

typedef struct cleat_plot_line {
    char name[160];
    const double *x, *y; /* [count], x ascending; y NaN: a gap. Not owned */
    const double *band;  /* [count] half the height of a shaded band around the line; NULL: none */
    size_t count;
    int colour;      /* 0 .. CLEAT_PLOT_COLOURS - 1, of the page's palette */
    bool dashed;     /* evaluations beside training */
    bool has_points; /* few values: mark each */
    bool is_noisy;   /* offer smoothing */
} cleat_plot_line;

typedef struct cleat_plot {
    const char *id; /* unique in the page */
    const char *title;
    const char *note;  /* under the title; NULL: none */
    const char *unit;  /* of y; "" if none. "share": 0..1 shown as percent; "bytes" */
    bool x_is_seconds; /* else steps */
    bool x_is_time;    /* Unix seconds; for cleat_plot_draw only */
    bool starts_at_zero;
    bool is_log; /* y begins in a logarithmic scale, chosen by cleat_plot_add */
    bool can_log;
    bool is_small; /* drawn at half the width */
    size_t limit;  /* points a line at most */
    cleat_plot_line lines[CLEAT_PLOT_LINES];
    size_t count;
} cleat_plot;

/* Adds a line; lines without a finite value, and lines beyond CLEAT_PLOT_LINES, are left out. */
cleat_plot_line *cleat_plot_add(cleat_plot *plot, const char *name, const double *x, const double *y, size_t count,
                                int colour);

/* Appends the <figure> with its drawing to `page` and the JSON object of its data to `data`, with a comma
 * before it unless `data` is empty. Appends nothing for a plot without lines. */
void cleat_plot_write(cleat_plot *plot, cleat_string *page, cleat_string *data);

/* --- reduction (reduce.c) --------------------------------------------------------------------------------------- */

/* Points of a line with all of its extremes: bins of equal numbers of points keep their least and largest
 * value, and a gap if they contain one. mean_*: mean of each bin at its middle, for smoothing. */
typedef struct cleat_reduced_line {
    double *x, *y; /* [count] */
    size_t count;
    double *mean_x, *mean_y; /* [mean_count]; empty if the line was not reduced */
    size_t mean_count;
} cleat_reduced_line;

/* At most `limit` points (at least 6); false without memory. The caller frees it with cleat_reduced_line_free. */
bool cleat_reduce(const double *x, const double *y, size_t count, size_t limit, cleat_reduced_line *reduced);
void cleat_reduced_line_free(cleat_reduced_line *reduced);

/* --- drawing (svg.c) ---------------------------------------------------------------------------------------------- */

/* Appends an <svg> of the lines. */
void cleat_plot_draw(const cleat_plot *plot, cleat_string *page);
/* Up to 12 round numbers from `low` to `high`; of a logarithmic axis, powers of ten (low > 0). Returns their
 * number. */
size_t cleat_axis_ticks(double low, double high, bool is_log, size_t wanted, double ticks[12]);
/* A number at an axis: "0.002", "1e-05", "12k"; shares as percent, bytes as GiB, seconds as h or min. */
const char *cleat_axis_text(double value, const char *unit, char text[48]);

#endif
