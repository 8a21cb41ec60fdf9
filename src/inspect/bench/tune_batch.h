/* Input values of a training step's graphs for timing single nodes: a batch of synthetic samples as produced
 * by the loader. */
#ifndef CLEAT_SRC_TUNE_BATCH_H
#define CLEAT_SRC_TUNE_BATCH_H

#include "session/one_batch.h"

enum { CLEAT_TUNE_INPUTS = 16 };

/* An input, identified by name, because graphs are recreated. */
typedef struct cleat_tune_input {
    char name[CLEAT_NAME];
    int64_t offset, size; /* bytes */
} cleat_tune_input;

typedef struct cleat_tune_batch {
    cleat_bucket bucket;
    cleat_tune_input inputs[CLEAT_TUNE_INPUTS]; /* [count] */
    size_t count;
    char *bytes;
} cleat_tune_batch;

/* Creates a batch for `bucket`, whose training graph is `graph`. The caller closes it. */
cleat_status cleat_tune_batch_open(const cleat_model *model, const cleat_graph *graph, const cleat_bucket *bucket,
                                   cleat_tune_batch *batch, cleat_error *error);
void cleat_tune_batch_close(cleat_tune_batch *batch);
/* Returns whether the batch was created for a bucket of this size. */
bool cleat_tune_batch_serves(const cleat_tune_batch *batch, const cleat_bucket *bucket);
/* Copies the values of the graph input `tensor`, if the batch contains them. */
void cleat_tune_batch_read(const cleat_tune_batch *batch, const cleat_tensor *tensor, void *values);

#endif
