/* The search for micro-batches: which to try next, each in a process of its own, and what the tries say in the end. What a
 * try does is given from outside. */
#ifndef CLEAT_SRC_BATCH_SEARCH_H
#define CLEAT_SRC_BATCH_SEARCH_H

#include "cleat/bench.h"

/* What a try tells, as often as it knows more; the last one counts. */
typedef struct cleat_batch_report {
    uint64_t mark; /* CLEAT_BATCH_MARK: these bytes are a report */
    cleat_batch_point point;
    cleat_status status;         /* of point.error, ... */
    char text[CLEAT_ERROR_TEXT]; /* ... which is this, cut */
    int64_t fitting; /* where the plan does not fit: the largest batch below that does; 0: none above the one
                            that is known to run */
} cleat_batch_report;

#define CLEAT_BATCH_MARK UINT64_C(0x6863746162207972)

typedef struct cleat_batch_trial {
    int64_t micro_batch_size;
    int64_t good; /* the largest that ran so far; 0: none */
} cleat_batch_trial;

typedef struct cleat_batch_searcher {
    int64_t global_batch_size; /* samples an optimizer step */
    /* Runs in a child process: tries, and tells reports with cleat_child_send(out, ...). */
    void (*attempt)(void *user, const cleat_batch_trial *trial, int out);
    void *user;
    double first_seconds; /* the first try may take so long (kernels are compiled) ... */
    double min_seconds;   /* ... and the others that, and ten times what the ones before let expect */
    const cleat_batch_search_options *options;
} cleat_batch_searcher;

/* Tries, fills and judges `search`; whatever the status, as far as it came. Errors: those of a single sample. */
cleat_status cleat_batch_search_run(const cleat_batch_searcher *searcher, cleat_batch_search *search,
                                    cleat_error *error);

/* Fills largest, best, cliff, recommended and why from the points. */
void cleat_batch_search_select(cleat_batch_search *search);

#endif
