/* What a profile asks a card to run: the graphs of every bucket, and the plan they share. Pure: facts of a card
 * suffice. */
#ifndef CLEAT_SRC_WORKLOAD_H
#define CLEAT_SRC_WORKLOAD_H

#include "cleat/data.h"
#include "cleat/fit.h"
#include "cleat/models.h"
#include "cleat/ops.h"
#include "graph/tuning.h"

enum { CLEAT_RING = 64 };

typedef enum cleat_purpose { CLEAT_FOR_TRAINING, CLEAT_FOR_EVALUATION, CLEAT_FOR_PREDICTION } cleat_purpose;

/* A built graph, and where the runtime's own inputs lie in its staging bytes. */
typedef struct cleat_work_graph {
    cleat_graph *graph; /* NULL: this purpose has no such graph */
    size_t index;       /* in the plan */
    cleat_model_graph built;
    int64_t sample_weight_offset, rng_offset, seed_offset, samples_offset; /* -1: not an input of this graph */
} cleat_work_graph;

typedef struct cleat_workload {
    const cleat_model *model;
    cleat_store *store;
    cleat_dtype storage; /* of activations and of the weights' working copies: train.precision */
    int recompute;       /* segments a group that is recomputed in backward; 0: activations are stored */
    size_t n_buckets;
    cleat_bucket buckets[CLEAT_BUCKETS];
    cleat_work_graph train[CLEAT_BUCKETS];
    cleat_work_graph evaluate[CLEAT_BUCKETS]; /* evaluation, or prediction */
    cleat_work_graph update;                  /* clip, AdamW, report */
    cleat_work_graph refresh;                 /* parameters -> working copies; NULL: there are none */
    cleat_tensor *hyper, *slot;               /* inputs of `update` */
    cleat_tensor *terms,
        *ring; /* states: f32 [K + 1] terms and loss; [CLEAT_RING, K + 2] with the norm, + 3 with the scale */
    cleat_loss_scale loss_scale; /* states; NULL but for training in f16 */
    cleat_plan *plan;
} cleat_workload;

/* The storage type that train.precision (cleat_precision) means on such a card. auto: f16 where there is a matrix unit, because products of
 * halves pay there. */
cleat_dtype cleat_precision_storage(int precision, const cleat_device_facts *facts);
/* The other way. */
cleat_precision cleat_storage_precision(cleat_dtype storage);

/* Builds and plans for batches of `buckets` [n]. `choices`: kernels that were measured on the card, needed for the call
 * only; NULL: the default ones. `model` must outlive it. CLEAT_ERR_FIT: a tensor is larger than the card's largest
 * buffer. */
cleat_status cleat_workload_create(const cleat_device_facts *facts, const cleat_tuning_table *tuning,
                                   const cleat_model *model, cleat_purpose purpose, const cleat_bucket *buckets,
                                   size_t n, int recompute, cleat_workload **workload, cleat_error *error);
void cleat_workload_destroy(cleat_workload *workload);

/* Whether every window is one micro-batch. */
bool cleat_workload_is_whole(const cleat_workload *workload);

/* Segments the model's training graphs have (see cleat_segment): the largest useful `recompute`. */
size_t cleat_workload_segments(const cleat_workload *workload);

#endif
