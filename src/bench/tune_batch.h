/* What the inputs of a step's graphs hold while the tuner times single nodes: a batch of made-up samples,
 * as the loader feeds it. */
#ifndef CLEAT_SRC_TUNE_BATCH_H
#define CLEAT_SRC_TUNE_BATCH_H

#include "session/one_batch.h"

enum { CLEAT_TUNE_INPUTS = 16 };

/* An input, by name: graphs come and go. */
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

/* For batches of `bucket`, whose training graph is `graph`. The caller closes it. */
cleat_status cleat_tune_batch_open(const cleat_model *model, const cleat_graph *graph, const cleat_bucket *bucket,
                                   cleat_tune_batch *batch, cleat_error *error);
void cleat_tune_batch_close(cleat_tune_batch *batch);
/* Whether it is a batch of such a bucket. */
bool cleat_tune_batch_serves(const cleat_tune_batch *batch, const cleat_bucket *bucket);
/* Copies the values of the graph's input `tensor`, where the batch has them. */
void cleat_tune_batch_read(const cleat_tune_batch *batch, const cleat_tensor *tensor, void *values);

#endif
