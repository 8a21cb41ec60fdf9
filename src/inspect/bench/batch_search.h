/* Search for the micro-batch size: the sizes to try, each in a separate process, and the evaluation of the
 * results. The caller supplies the function that makes one attempt. */
#ifndef CLEAT_SRC_BATCH_SEARCH_H
#define CLEAT_SRC_BATCH_SEARCH_H

#include "cleat/bench.h"

/* A report of an attempt, sent whenever more is known; the last one received counts. */
typedef struct cleat_batch_report {
    uint64_t mark; /* CLEAT_BATCH_MARK, which identifies the bytes as a report */
    cleat_batch_point point;
    cleat_status status;         /* status of point.error */
    char text[CLEAT_ERROR_TEXT]; /* point.error, possibly truncated */
    /* If the plan does not fit: the largest size below it that does; 0: none above the one known to run. */
    int64_t fitting;
} cleat_batch_report;

#define CLEAT_BATCH_MARK UINT64_C(0x6863746162207972)

typedef struct cleat_batch_trial {
    int64_t micro_batch_size;
    int64_t good; /* largest size that has run so far; 0: none */
} cleat_batch_trial;

typedef struct cleat_batch_searcher {
    int64_t global_batch_size; /* samples per optimizer step */
    /* Runs in a child process: makes the attempt and sends reports with cleat_child_send(out, ...). */
    void (*attempt)(void *user, const cleat_batch_trial *trial, int out);
    void *user;
    double first_seconds; /* timeout of the first attempt, which compiles kernels */
    /* Minimum timeout of later attempts; to it is added ten times the duration extrapolated from earlier
     * attempts. */
    double min_seconds;
    const cleat_batch_search_options *options;
} cleat_batch_searcher;

/* Makes the attempts and fills `search`, including its evaluation; if the call fails, `search` holds what was
 * completed before. Errors: those of a micro-batch of one sample. */
cleat_status cleat_batch_search_run(const cleat_batch_searcher *searcher, cleat_batch_search *search,
                                    cleat_error *error);

/* Derives largest, best, cliff, recommended and why from the points. */
void cleat_batch_search_select(cleat_batch_search *search);

#endif
