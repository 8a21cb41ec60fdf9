/* The state of a run and its text (monitor_print.c), for `cleat monitor` (cmd_monitor.c). */
#ifndef CLEAT_TOOLS_MONITOR_H
#define CLEAT_TOOLS_MONITOR_H

#include "cli.h"
#include "core/string.h"
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

typedef struct monitor_style {
    int width; /* columns */
    bool colors, utf8;
} monitor_style;

/* Everything about the run, in lines of at most `width` columns. */
void monitor_print(cleat_string *out, const monitor_state *state, const monitor_style *style);
/* One line: step, loss, speed. */
void monitor_print_line(FILE *out, const monitor_state *state);
/* Events from number `first` on, in lines of any length; returns the number of events. */
size_t monitor_print_events(FILE *out, const monitor_state *state, size_t first);

#endif
