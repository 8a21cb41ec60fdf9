/* Progress: a bar or lines, passed to a callback. */
#include "train/progress.h"

#include "core/string.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LINE = 512, BAR = 20 };

static const double seconds_between_bars = 0.1;
/* Time between lines as a fraction of the elapsed time: twelve hours give a thousand lines. */
static const double part_between_lines = 1.0 / 60, min_between_lines = 5, max_between_lines = 60;

static int usable_width(int width) {
    if (width < 20) return 80; /* unknown width */
    return width < LINE / 2 ? width : LINE / 2;
}

void cleat_progress_start(cleat_progress *progress, cleat_progress_fn write, void *user, bool terminal, int width,
                          int64_t first_step, int64_t total, double now) {
    *progress = (cleat_progress){.write = write,
                                 .user = user,
                                 .terminal = terminal,
                                 .width = usable_width(width),
                                 .total = total,
                                 .first_step = first_step,
                                 .start = now,
                                 .last = -INFINITY};
}

static double percent(const cleat_progress *progress, int64_t step) {
    return progress->total > 0 ? 100.0 * (double)step / (double)progress->total : 100.0;
}

/* Uses the steps since `earlier`, at least half of this process's, but without the first results, which
 * include compilation and warm-up. */
static void remaining_text(const cleat_progress *progress, int64_t step, double now, char text[32]) {
    char duration[CLEAT_DURATION_TEXT];
    const cleat_progress_mark *from = &progress->earlier;
    *text = 0;
    if (!progress->has_marks || step <= from->step) return;
    const double left = (now - from->time) / (double)(step - from->step) * (double)(progress->total - step);
    snprintf(text, 32, "  ETA %s", cleat_duration_text(rint(left), duration));
}

/* Moves the start of the measured steps to the latest mark once as many steps have followed it. */
static void advance_marks(cleat_progress *progress, int64_t step, double now) {
    const cleat_progress_mark mark = {.step = step, .time = now};
    if (!progress->has_marks) progress->earlier = progress->latest = mark;
    progress->has_marks = true;
    if (step - progress->latest.step <= progress->latest.step - progress->earlier.step) return;
    progress->earlier = progress->latest;
    progress->latest = mark;
}

/* "\r[####................]  20% 80/400  text  ETA 3 s", cut to the terminal width, and padded with blanks to
 * overwrite the previous line. */
static void draw_bar(cleat_progress *progress, int64_t step, const char *text, const char *remaining) {
    char line[LINE], out[2 * LINE], bar[BAR + 1];
    int filled = (int)(percent(progress, step) / 100 * BAR);
    for (int i = 0; i < BAR; ++i) bar[i] = i < filled ? '#' : '.';
    bar[BAR] = 0;
    snprintf(line, sizeof line, "[%s] %3.0f%% %lld/%lld  %s%s", bar, floor(percent(progress, step)), (long long)step,
             (long long)progress->total, text, remaining);
    line[progress->width - 1] = 0;
    int length = (int)strlen(line);
    snprintf(out, sizeof out, "\r%s%*s", line, progress->drawn > length ? progress->drawn - length : 0, "");
    progress->write(progress->user, out);
    progress->drawn = length;
}

static void show(cleat_progress *progress, int64_t step, const char *text, double now) {
    char remaining[32], line[LINE];
    progress->last = now;
    remaining_text(progress, step, now, remaining);
    if (progress->terminal) {
        draw_bar(progress, step, text, remaining);
        return;
    }
    snprintf(line, sizeof line - 1, "step %lld/%lld (%.0f%%)  %s%s", (long long)step, (long long)progress->total,
             floor(percent(progress, step)), text, remaining);
    strcat(line, "\n");
    progress->write(progress->user, line);
}

void cleat_progress_update(cleat_progress *progress, int64_t step, const char *text, double now, bool force) {
    if (!progress->write) return;
    const double lines = fmin(fmax((now - progress->start) * part_between_lines, min_between_lines), max_between_lines);
    const double pause = progress->terminal ? seconds_between_bars : lines;
    if (force || now - progress->last >= pause) show(progress, step, text, now);
    advance_marks(progress, step, now);
}

void cleat_progress_line(cleat_progress *progress, const char *text) {
    char blank[LINE];
    if (!progress->write) return;
    if (progress->drawn > 0) {
        snprintf(blank, sizeof blank, "\r%*s\r", progress->drawn, "");
        progress->write(progress->user, blank);
        progress->drawn = 0;
    }
    progress->write(progress->user, text);
    progress->write(progress->user, "\n");
}

void cleat_progress_end(cleat_progress *progress) {
    if (progress->write && progress->drawn > 0) progress->write(progress->user, "\n");
    progress->drawn = 0;
}
