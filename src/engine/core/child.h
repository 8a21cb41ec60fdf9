/* Runs a function in a child process and reports to the caller if it runs out of memory, crashes or hangs. */
#ifndef CLEAT_SRC_CHILD_H
#define CLEAT_SRC_CHILD_H

#include "cleat/core.h"

typedef struct cleat_child {
    /* Executed in the child, which exits when it returns; sends any number of records with
     * cleat_child_send(out, ...). */
    void (*body)(void *user, int out);
    void *user;
    size_t record_bytes; /* size of a record; at most 4096, an atomic pipe write */
    double seconds;      /* timeout after which the child is killed; INFINITY: none */
    /* Called in the caller for each complete record; NULL: only the last record is kept. */
    void (*received)(void *user, const void *record);
} cleat_child;

typedef struct cleat_child_end {
    size_t records; /* number of complete records received; the last one is kept */
    int signal;     /* signal that terminated the child; 0: it exited */
    bool timed_out; /* killed because of the timeout */
    double seconds; /* lifetime of the child */
    char text[160]; /* description of the failure; "" if records arrived and the child exited */
} cleat_child_end;

/* Forks, waits and collects the records. As for any fork, the calling process must be single-threaded, and it
 * must not have used OpenCL: drivers do not survive a fork. `record` is written only if a complete one
 * arrived. Errors: pipe or process creation failed. */
cleat_status cleat_child_run(const cleat_child *child, void *record, cleat_child_end *end, cleat_error *error);

/* Called in the child: sends one record. */
void cleat_child_send(int out, const void *record, size_t bytes);

#endif
