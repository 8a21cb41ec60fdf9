/* Progress as text: a bar redrawn in place on a terminal, plain lines in a log. This file prints nothing
 * itself: all text is passed to a callback. */
#ifndef CLEAT_SRC_PROGRESS_H
#define CLEAT_SRC_PROGRESS_H

#include "cleat/core.h"

/* `text` must be written unchanged; it contains its own "\r" or
 * "\n". */
typedef void (*cleat_progress_fn)(void *user, const char *text);

typedef struct cleat_progress_mark {
    int64_t step;
    double time;
} cleat_progress_mark;

typedef struct cleat_progress {
    cleat_progress_fn write;
    void *user;
    bool terminal;      /* true: a bar; false: lines */
    int width;          /* columns of the terminal */
    int64_t total;      /* steps of the whole run */
    int64_t first_step; /* first step of this process */
    /* Two updates of this process: the ETA uses the steps since `earlier`. Valid if has_marks. */
    cleat_progress_mark earlier, latest;
    bool has_marks;
    double start, last; /* in seconds, of the clock passed to update */
    int drawn;          /* columns of the bar on the last line of the terminal */
} cleat_progress;

/* `write` NULL disables all output. `now`: seconds of any monotonic clock. */
void cleat_progress_start(cleat_progress *progress, cleat_progress_fn write, void *user, bool terminal, int width,
                          int64_t first_step, int64_t total, double now);
/* Reports that step `step` of `total` is done; `text` adds details ("epoch 3/40  loss 1.25"). Draws a bar
 * at most 10 times a second, and a line every 5 seconds, after an hour every minute; always draws with `force`. */
void cleat_progress_update(cleat_progress *progress, int64_t step, const char *text, double now, bool force);
/* Writes a separate line above the bar. */
void cleat_progress_line(cleat_progress *progress, const char *text);
/* Ends the bar and moves the cursor to a new line. */
void cleat_progress_end(cleat_progress *progress);

#endif
