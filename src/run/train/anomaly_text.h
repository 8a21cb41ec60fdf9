/* Wording of an anomaly that a finite check found. */
#ifndef CLEAT_SRC_ANOMALY_TEXT_H
#define CLEAT_SRC_ANOMALY_TEXT_H

#include "cleat/data.h"
#include "core/string.h"
#include "exec/finite_check.h"

/* Where the anomaly was found. */
typedef struct cleat_anomaly_context {
    const cleat_graph *graph;
    const cleat_dataset *dataset;
    const cleat_micro_batch *micro_batch; /* micro-batch of the anomaly; NULL: it belongs to no sample */
    int64_t slots;                        /* size of the micro-batch, empty slots included */
    bool scaled;                          /* the gradients are multiplied by a loss scale */
    /* for a half weight: f32 value of the parameter at its first bad element; else NULL */
    const float *parameter;
} cleat_anomaly_context;

/* Adds a few sentences to `text`: tensor, op, elements, operands of the op, cause and remedy. `anomaly`
 * must have a tensor. */
void cleat_anomaly_format(const cleat_anomaly *anomaly, const cleat_anomaly_context *context, cleat_string *text);

#endif
