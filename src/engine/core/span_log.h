/* Span log: activities of host threads, with times. The tracer shows it beside the work of the device. */
#ifndef CLEAT_SRC_SPAN_LOG_H
#define CLEAT_SRC_SPAN_LOG_H

#include "cleat/core.h"

typedef struct cleat_span {
    const char *name;  /* static string */
    int thread;        /* 0: the thread that called cleat_span_log_start; others in order of their first span */
    int64_t number;    /* of a batch or step; -1: none */
    double start, end; /* seconds of cleat_seconds */
} cleat_span;

typedef struct cleat_span_log cleat_span_log;

/* Any thread may add spans; one thread calls the other functions. The log must outlive the threads that add to it. */
cleat_status cleat_span_log_create(cleat_span_log **log, cleat_error *error);
void cleat_span_log_destroy(cleat_span_log *log); /* NULL is allowed */

/* Starts with an empty log; until then, and after stop, spans are dropped at the cost of one atomic load. */
void cleat_span_log_start(cleat_span_log *log);
void cleat_span_log_stop(cleat_span_log *log);

/* The time now, for cleat_span_end; 0 if `log` is NULL or does not record. */
double cleat_span_begin(cleat_span_log *log);
/* Adds the span from `start` until now; does nothing if `start` is 0 or `log` does not record. */
void cleat_span_end(cleat_span_log *log, const char *name, int64_t number, double start);
void cleat_span_add(cleat_span_log *log, const char *name, int64_t number, double start, double end);

/* The spans [*count] in the order in which they were added. Borrowed until the next start. Only after stop, as
 * cleat_span_log_lost: threads add no more. */
const cleat_span *cleat_span_log_spans(const cleat_span_log *log, size_t *count);
/* Spans that were lost: the log is full (CLEAT_SPANS), or memory was short. */
size_t cleat_span_log_lost(const cleat_span_log *log);

enum { CLEAT_SPANS = 50000, CLEAT_SPAN_THREADS = 320 };

#endif
