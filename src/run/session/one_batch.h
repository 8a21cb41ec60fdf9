/* One batch of a dataset, loaded once: what verification, benchmarks and the tuner train on. */
#ifndef CLEAT_SRC_ONE_BATCH_H
#define CLEAT_SRC_ONE_BATCH_H

#include "session/session.h"

enum { CLEAT_ONE_BATCH_FIELDS = 16 };

typedef struct cleat_one_batch {
    const cleat_dataset *dataset; /* has at least samples 0 .. B - 1, of the bucket's length */
    const cleat_graph *graph;     /* its inputs are filled */
    const cleat_bucket *bucket;   /* B = micro_batch_size */
    /* Offset of an input from `bytes`, a multiple of 4 bytes. */
    int64_t (*offset)(void *user, const cleat_tensor *input);
    void *user, *bytes;
    /* Set by loading, by the dataset's field: NULL, or inside `bytes`. */
    const void *fields[CLEAT_ONE_BATCH_FIELDS];
} cleat_one_batch;

/* The loader writes the inputs that are dataset fields, each in its storage type. */
cleat_status cleat_one_batch_load(cleat_one_batch *batch, cleat_error *error);
/* The batch as models receive it, and the bucket's global batch, which it represents. Borrows `batch`. */
cleat_host_batch cleat_one_batch_host(const cleat_one_batch *batch, cleat_global_batch *global_batch);

#endif
