/* The kernel tuner (cleat_tune of cleat/measure.h), from the inside: the contest of a node's variants (contest.c). What it
 * found is kept by session/tuned.h. */
#ifndef CLEAT_SRC_TUNE_H
#define CLEAT_SRC_TUNE_H

#include "cleat/measure.h"
#include "graph/choices.h"

/* --- a contest ------------------------------------------------------------------------------------------------ */

typedef struct cleat_contest {
    cleat_device *device;
    const cleat_node *node;
    const cleat_variant *variants[CLEAT_TUNE_CANDIDATES]; /* [count], all serve the node; the first is the default */
    bool out[CLEAT_TUNE_CANDIDATES];                      /* not even tried */
    size_t count;
    int64_t limit;  /* bytes */
    double seconds; /* a candidate, about */
    /* Writes the values of an input of the node, where it knows them: integers must mean something to the kernels.
     * Other floats are random, other integers zero. May be NULL. */
    void (*input)(void *user, const cleat_tensor *tensor, void *values);
    void *user;
} cleat_contest;

/* Chooses by the candidates' seconds: the default, unless another is faster by more than what a measurement repeated on
 * another day may differ by. Writes chosen and why. */
void cleat_tune_judge(cleat_tune_node *node);

/* Runs the variants by turns on the same tensors, and leaves the fastest run of each in result->candidates [count]:
 * whatever else the machine does can only make a run longer, and turns make it hit all alike. Those that are hopeless
 * after a run, or then after a few bursts, are not run again. Candidates that fail, other than the default, are left out
 * with their error. CLEAT_ERR_FIT: the node does not fit within the limit. */
cleat_status cleat_contest_run(const cleat_contest *contest, cleat_tune_node *result, cleat_error *error);

#endif
