/* The tables of an analysis: text for people, CSV and JSON for programs. */
#ifndef CLEAT_SRC_TRACE_TABLE_H
#define CLEAT_SRC_TRACE_TABLE_H

#include "core/string.h"
#include "trace/analysis.h"

/* Each appends one document to `text`. Seconds, calls, FLOP and bytes are per step. */
void cleat_table_text(const cleat_analysis *analysis, cleat_string *text);
void cleat_table_csv(const cleat_analysis *analysis, cleat_string *text);
void cleat_table_json(const cleat_analysis *analysis, cleat_string *text);

/* Mean duration of an active step in seconds. */
static inline double cleat_analysis_step(const cleat_analysis *analysis) {
    return analysis->seconds / (double)analysis->active;
}

#endif
