/* What the watch found, in words. */
#ifndef CLEAT_SRC_ANOMALY_TEXT_H
#define CLEAT_SRC_ANOMALY_TEXT_H

#include "cleat/data.h"
#include "core/text.h"
#include "exec/finite_check.h"

/* Where it was found. */
typedef struct cleat_anomaly_context {
    const cleat_graph *graph;
    const cleat_dataset *dataset;
    const cleat_micro_batch *micro_batch; /* the micro-batch; NULL: of no sample */
    int64_t slots;                        /* of it, those without a sample included */
    bool scaled;                          /* gradients are multiplied by a loss scale */
    const float
        *parameter; /* where the tensor is a working copy: the parameter's value at its first bad element; else NULL */
} cleat_anomaly_context;

/* Adds a few sentences: tensor, op, elements, what the op read, the cause and what to do about it. `anomaly` has a tensor. */
void cleat_anomaly_format(const cleat_anomaly *anomaly, const cleat_anomaly_context *context, cleat_text *text);

#endif
