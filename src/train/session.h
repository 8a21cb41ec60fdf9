/* A session: a model on a device, ready to run. Graphs for every bucket, the plan they share, its execution,
 * and the staging buffers of the loader. Training, evaluation, prediction, verification and benchmarks all
 * start here. */
#ifndef CLEAT_SRC_SESSION_H
#define CLEAT_SRC_SESSION_H

#include "cleat/data.h"
#include "cleat/exec.h"
#include "cleat/models.h"
#include "cleat/train.h"
#include "fit/buckets.h"

enum { CLEAT_RING = 64 };

/* A built graph and where the session's own inputs lie in its staging bytes. */
typedef struct cleat_session_graph {
    cleat_graph *graph;
    size_t index; /* in the plan */
    cleat_model_graph built;
    int64_t scale_offset, rng_offset, seed_offset; /* -1: not an input of this graph */
} cleat_session_graph;

typedef struct cleat_session {
    cleat_device *device;
    const cleat_profile *profile;
    cleat_model *model;
    cleat_store *store;
    size_t n_buckets;
    cleat_bucket buckets[CLEAT_BUCKETS];
    cleat_session_graph train[CLEAT_BUCKETS];    /* absent (graph NULL) unless training */
    cleat_session_graph evaluate[CLEAT_BUCKETS]; /* evaluation, or prediction */
    cleat_session_graph update;                  /* clip, AdamW, report */
    cleat_tensor *hyper, *slot;                  /* inputs of `update` */
    cleat_tensor *terms, *ring; /* states: f32 [K + 1] terms and loss; [CLEAT_RING, K + 2] with the norm */
    cleat_plan *plan;
    cleat_exec *exec;
} cleat_session;

typedef enum cleat_purpose { CLEAT_FOR_TRAINING, CLEAT_FOR_EVALUATION, CLEAT_FOR_PREDICTION } cleat_purpose;

/* Builds, plans and binds, for batches of buckets [n]. The parameters are zero: initialise or load them. CLEAT_ERR_FIT when the plan is larger than `limit` bytes (0:
 * no limit). device, profile and model must outlive it. */
cleat_status cleat_session_create(cleat_device *device, const cleat_profile *profile, cleat_model *model,
                                  cleat_purpose purpose, const cleat_bucket *buckets, size_t n, int64_t limit,
                                  cleat_session **session, cleat_error *error);
void cleat_session_destroy(cleat_session *session);

/* The largest batch that divides the effective batch and whose plan fits max_memory_usage of what is free;
 * fills *batch and *session. */
cleat_status cleat_session_fit(cleat_device *device, const cleat_profile *profile, cleat_model *model,
                               cleat_purpose purpose, const cleat_lengths *lengths, int64_t *batch,
                               cleat_session **session, cleat_error *error);

/* Draws the starting parameters from `seed`. */
cleat_status cleat_session_initialise(cleat_session *session, uint64_t seed, cleat_error *error);

/* Bytes that hold any batch of any bucket. */
int64_t cleat_session_input_bytes(const cleat_session *session);

/* Fills the session's own inputs of a batch whose dataset fields are in `staging` already. */
void cleat_session_prepare(const cleat_session *session, const cleat_session_graph *graph, void *staging,
                           const cleat_host_batch *batch, int64_t window_samples, uint64_t seed, uint64_t micro_step);

/* Fills the inputs of the update graph: hyper-parameters of optimizer step `step` (the first is 0) at
 * learning rate `rate`. */
void cleat_session_prepare_update(const cleat_session *session, void *staging, double rate, int64_t step);

/* Parameters and moments between device and host: flat buffers [cleat_session_flat(session)]. which: 0
 * parameters, 1 and 2 moments. */
int64_t cleat_session_flat(const cleat_session *session);
cleat_status cleat_session_read_flat(cleat_session *session, int which, float *values, cleat_error *error);
cleat_status cleat_session_write_flat(cleat_session *session, int which, const float *values, cleat_error *error);

/* Logs the plan by category: the table a run prints at its start. */
void cleat_session_log_plan(const cleat_session *session);

#endif
