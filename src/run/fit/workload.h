/* A workload: the graphs of every bucket that a profile runs on a card, and the plan that they share. Pure:
 * the facts of a card suffice. */
#ifndef CLEAT_SRC_WORKLOAD_H
#define CLEAT_SRC_WORKLOAD_H

#include "cleat/data.h"
#include "cleat/fit.h"
#include "cleat/models.h"
#include "graph/tuning.h"
#include "ops/update.h"

enum { CLEAT_RING = 64 };

/* Instead of a number of segments: outputs of cheap ops alone (cleat_graph_recompute_cheap). */
enum { CLEAT_RECOMPUTE_CHEAP = -1 };

typedef enum cleat_purpose { CLEAT_FOR_TRAINING, CLEAT_FOR_EVALUATION, CLEAT_FOR_PREDICTION, CLEAT_FOR_GENERATION } cleat_purpose;

/* A built graph, and the byte offsets of the inputs that the runtime itself fills, within the staging
 * buffer. */
typedef struct cleat_work_graph {
    cleat_graph *graph; /* NULL: the purpose does not need this graph */
    size_t index;       /* position in the plan */
    cleat_model_graph built;
    /* -1: not an input of this graph. */
    int64_t sample_weight_offset, rng_offset, seed_offset, samples_offset;
} cleat_work_graph;

typedef struct cleat_workload {
    const cleat_model *model;
    cleat_store *store;
    cleat_dtype storage; /* of activations and half weights, or CLEAT_TF32; from train.precision */
    int recompute;       /* segments in a group that is recomputed in backward; 0: activations are stored; or _CHEAP */
    size_t n_buckets;
    cleat_bucket buckets[CLEAT_BUCKETS];
    cleat_work_graph train[CLEAT_BUCKETS];
    cleat_work_graph evaluate[CLEAT_BUCKETS]; /* evaluation, or prediction */
    cleat_work_graph update;                  /* clipping, optimizer, log_step */
    cleat_work_graph refresh;                 /* parameters -> half weights; NULL: there are none */
    cleat_tensor *hyper, *slot;               /* inputs of `update` */
    cleat_tensor *norm;                       /* the same, if the host computes the norm of the gradient; else NULL */
    /* States: f32 [K + 1] terms and loss; f32 [CLEAT_RING, K + 2] the same with the gradient norm, or
     * [CLEAT_RING, K + 3] also with the loss scale. */
    cleat_tensor *terms, *ring;
    cleat_loss_scale loss_scale; /* states; NULL except in training with f16 */
    cleat_plan *plan;
} cleat_workload;

/* The storage type for train.precision (cleat_precision) on a card with these facts. auto: f16 if the card
 * has a matrix unit, because half-precision products are faster there. tf32: CLEAT_TF32, or f32 if the card
 * has no unit for it (cleat_matrix_refuse). */
cleat_dtype cleat_precision_storage(int precision, const cleat_device_facts *facts);
/* Logs a warning if cleat_precision_storage gives f32 for tf32. */
void cleat_warn_no_tf32(int precision, const cleat_device_facts *facts);
/* Inverse of cleat_precision_storage. */
cleat_precision cleat_storage_precision(cleat_dtype storage);

/* The parts of a workload. All is borrowed; only `model` must outlive the workload. */
typedef struct cleat_workload_spec {
    const cleat_device_facts *facts;  /* of the card */
    const cleat_tuning_table *tuning; /* kernels measured on the card; NULL: the default ones */
    const cleat_model *model;
    cleat_purpose purpose;       /* 0: training */
    const cleat_bucket *buckets; /* [n_buckets] ascending lengths, 1 to CLEAT_BUCKETS of them */
    size_t n_buckets;
    int recompute; /* segments in a group that is recomputed in backward; 0: activations are stored; or _CHEAP */
    bool
        host_norm; /* the norm of the gradient is an input of the update, because several devices sum their gradients */
} cleat_workload_spec;

/* Builds and plans the graphs. CLEAT_ERR_ARGUMENT: no buckets, or too many; CLEAT_ERR_FIT: a tensor is larger
 * than the card's largest buffer. The caller destroys the workload. */
cleat_status cleat_workload_create(const cleat_workload_spec *spec, cleat_workload **workload, cleat_error *error);
void cleat_workload_destroy(cleat_workload *workload);

/* Whether every global batch is one micro-batch. */
bool cleat_workload_is_whole(const cleat_workload *workload);

/* Number of segments of the training graphs (see cleat_segment): the largest useful `recompute`. */
size_t cleat_workload_segments(const cleat_workload *workload);

#endif
