/* Progress as text: a bar that redraws itself on a terminal, plain lines in a log. Prints nothing itself:
 * text goes to a callback. */
#ifndef CLEAT_SRC_PROGRESS_H
#define CLEAT_SRC_PROGRESS_H

#include "cleat/core.h"

/* `text` is to be written as it is (it brings its own "\r" or "\n"). */
typedef void (*cleat_progress_fn)(void *user, const char *text);

typedef struct cleat_progress {
    cleat_progress_fn write;
    void *user;
    bool terminal;      /* a bar; else lines */
    int width;          /* columns of the terminal */
    int64_t total;      /* steps of the whole run */
    int64_t first_step; /* where this process began: the ETA counts only its own steps */
    double start, last; /* seconds, of the clock handed to update */
    int drawn;          /* columns of the bar that stands on the terminal's last line */
} cleat_progress;

/* `write` NULL turns everything off. `now`: seconds of any steady clock. */
void cleat_progress_start(cleat_progress *progress, cleat_progress_fn write, void *user, bool terminal, int width,
                          int64_t first_step, int64_t total, double now);
/* Step `step` of `total` is done; `text` says more ("epoch 3/40  loss 1.25"). Draws at most 10 times a second
 * on a terminal, and a line every 10 seconds in a log; always when `force`. */
void cleat_progress_update(cleat_progress *progress, int64_t step, const char *text, double now, bool force);
/* A line of its own, above the bar. */
void cleat_progress_line(cleat_progress *progress, const char *text);
/* Ends the bar: the cursor stands on a fresh line. */
void cleat_progress_end(cleat_progress *progress);

/* "3 s", "4 min 05 s", "2 h 07 min", "3 d 04 h". `text` [24]. */
void cleat_duration_text(double seconds, char text[24]);

#endif
