/* The tables of an analysis: text for people, CSV and JSON for programs. */
#ifndef CLEAT_SRC_TRACE_TABLE_H
#define CLEAT_SRC_TRACE_TABLE_H

#include "core/string.h"
#include "trace/analysis.h"

/* Each appends one document to `text`. Seconds, calls, FLOP and bytes are per step. */
void cleat_table_text(const cleat_analysis *analysis, cleat_string *text);
void cleat_table_csv(const cleat_analysis *analysis, cleat_string *text);
void cleat_table_json(const cleat_analysis *analysis, cleat_string *text);

static inline double cleat_per_step(const cleat_analysis *analysis, double sum) {
    return sum / (double)analysis->active;
}
/* The share of the active steps' time. */
static inline double cleat_share(const cleat_analysis *analysis, double seconds) {
    return analysis->seconds > 0 ? seconds / analysis->seconds : 0;
}

#endif
