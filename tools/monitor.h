/* Interface between the files of `cleat monitor`: the state of a run (monitor_state.c) and its text
 * (monitor_print.c). cmd_monitor.c has the command line and the terminal. */
#ifndef CLEAT_TOOLS_MONITOR_H
#define CLEAT_TOOLS_MONITOR_H

#include "cli.h"
#include "json/member.h"

#include <cleat/history.h>
#include <stdio.h>

typedef struct monitor_state {
    cleat_history *history;
    const cleat_history_table *samples, *train, *eval; /* NULL: none */
    size_t first_sample;                               /* of the last process of the run */
    cJSON *start, *end;                                /* of the last process; NULL: none */
    cleat_history_phase phase;                         /* UNKNOWN as well: no records of the monitor yet */
} monitor_state;

/* Reads the folder; monitor_close frees *state, also a zeroed one. */
cleat_status monitor_open(const char *folder, monitor_state *state, cleat_error *error);
void monitor_close(monitor_state *state);

/* The value of a figure in the last sample, or in one of the few before it if it is null there; NaN: unknown. */
double monitor_latest(const monitor_state *state, const char *name);
/* Its mean over the time of the last process. */
double monitor_mean(const monitor_state *state, const char *name);
/* A number of an object of the start record: "schedule", "total_steps"; NaN: unknown. */
double monitor_start_number(const monitor_state *state, const char *object, const char *name);
/* The last optimizer step that is known; NaN: none. */
double monitor_step(const monitor_state *state);
/* Seconds until the end of the run at the speed since its first step; NaN: unknown, or it has ended. */
double monitor_seconds_left(const monitor_state *state);
/* "running", "ok", "interrupted", "killed", ... */
const char *monitor_status(const monitor_state *state);

typedef struct monitor_style {
    int width; /* columns */
    bool colors, utf8;
} monitor_style;

/* Everything about the run, in lines of at most `width` columns. */
void monitor_print(FILE *out, const monitor_state *state, const monitor_style *style);
/* One line: step, loss, speed. */
void monitor_print_line(FILE *out, const monitor_state *state);
/* Events from number `first` on, in lines of any length; returns the number of events. */
size_t monitor_print_events(FILE *out, const monitor_state *state, size_t first);

#endif
