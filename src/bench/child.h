/* A function in a process of its own: when it runs out of memory, crashes or hangs, the caller learns how. */
#ifndef CLEAT_SRC_CHILD_H
#define CLEAT_SRC_CHILD_H

#include "cleat/core.h"

typedef struct cleat_child {
    /* Runs in the child, which ends when it returns; tells what it knows by cleat_child_send(out, ...), as often as
     * it likes. */
    void (*body)(void *user, int out);
    void *user;
    size_t record_bytes; /* of what it tells; at most a pipe writes at once (4096) */
    double seconds;      /* then it is killed; INFINITY: never */
} cleat_child;

typedef struct cleat_child_end {
    size_t records; /* whole ones that arrived; the last is kept */
    int signal;     /* that ended it; 0: it ended by itself */
    bool timed_out; /* it was killed because its time was over */
    double seconds; /* it lived */
    char text[160]; /* how it failed; "" where it told something and ended by itself */
} cleat_child_end;

/* Forks, waits, collects. The calling process must have one thread only, as after any fork, and must not have used
 * OpenCL: drivers do not survive a fork. `record` is written where a whole one arrived. Errors: no pipe, no process. */
cleat_status cleat_child_run(const cleat_child *child, void *record, cleat_child_end *end, cleat_error *error);

/* In the child: sends one record. */
void cleat_child_send(int out, const void *record, size_t bytes);

#endif
