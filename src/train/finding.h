/* What the watch found, in words. */
#ifndef CLEAT_SRC_FINDING_H
#define CLEAT_SRC_FINDING_H

#include "cleat/data.h"
#include "core/text.h"
#include "exec/watch.h"

/* Where it was found. */
typedef struct cleat_finding_place {
    const cleat_graph *graph;
    const cleat_dataset *dataset;
    const cleat_micro_batch *micro_batch; /* the micro-batch; NULL: of no sample */
    int64_t slots;                        /* of it, those without a sample included */
    bool scaled;                          /* gradients are multiplied by a loss scale */
    const float
        *parameter; /* where the tensor is a working copy: the parameter's value at its first bad element; else NULL */
} cleat_finding_place;

/* Adds a few sentences: tensor, op, elements, what the op read, the cause and what to do about it. `finding` has a tensor. */
void cleat_finding_say(const cleat_finding *finding, const cleat_finding_place *place, cleat_text *text);

#endif
