/* The trace of an analysis: Chrome's trace event format (JSON), which Perfetto and chrome://tracing open. */
#ifndef CLEAT_SRC_TRACE_TRACE_H
#define CLEAT_SRC_TRACE_TRACE_H

#include "core/string.h"
#include "trace/analysis.h"

enum { CLEAT_TRACE_EVENTS = 200000 };

typedef struct cleat_trace_counts {
    size_t events;  /* in the trace, all kinds */
    size_t cut;     /* slices that were left out, because a trace has at most CLEAT_TRACE_EVENTS events */
    size_t clamped; /* overlaps up to the timer's resolution that were removed */
} cleat_trace_counts;

/* Appends the JSON text. Tracks of the device: compute, copy in, copy out; of the host: the trainer and each
 * loader thread. Flow arrows lead from the fill of a batch over its upload to the first kernel that works on
 * it. Counters: planned live bytes, commands in the compute queue. */
cleat_status cleat_trace_write(const cleat_analysis *analysis, cleat_string *text, cleat_trace_counts *counts,
                               cleat_error *error);

#endif
