/* A session: a workload on a device, ready to run. Used by training, evaluation, prediction, verification and
 * benchmarks. */
#ifndef CLEAT_SRC_SESSION_H
#define CLEAT_SRC_SESSION_H

#include "cleat/data.h"
#include "cleat/exec.h"
#include "cleat/models.h"
#include "cleat/rates.h"
#include "cleat/tuning.h"
#include "fit/fit.h"
#include "graph/graph.h"
#include "weights/architecture.h"

typedef struct cleat_session {
    cleat_device *device;
    const cleat_profile *profile;
    cleat_model *model;
    cleat_workload *work; /* owned */
    cleat_exec *exec;
} cleat_session;

/* Binds `work` to the device. The session takes ownership of `work`, even on failure. The parameters are
 * zero: initialise or load them. device, profile and model must outlive the session. */
cleat_status cleat_session_open(cleat_device *device, const cleat_profile *profile, cleat_model *model,
                                cleat_workload *work, cleat_session **session, cleat_error *error);

/* The parts of a session. device, profile and model are borrowed and must outlive the session. */
typedef struct cleat_session_spec {
    cleat_device *device;
    const cleat_profile *profile;
    cleat_model *model;
    cleat_purpose purpose;       /* 0: training */
    const cleat_bucket *buckets; /* [n_buckets] as in cleat_workload_spec; copied */
    size_t n_buckets;
    int recompute; /* segments in a group that is recomputed in backward; 0: activations are stored */
} cleat_session_spec;

/* Creates a session without checking a memory limit; kernels are chosen as in cleat_session_fit. The parameters are
 * zero. Errors: those of cleat_workload_create; the device's. */
cleat_status cleat_session_create(const cleat_session_spec *spec, cleat_session **session, cleat_error *error);
void cleat_session_destroy(cleat_session *session);

/* cleat_fit_search for an open device. `base_request->rates` is ignored. A GPU's launches are limited
 * (CLEAT_MAX_LAUNCH_SECONDS) by the rates of its card file, or else measured ones; where memory forces a global batch
 * to be cut, measured rates decide whether recomputation pays. The first measurement takes a moment. */
cleat_status cleat_session_search(cleat_device *device, const cleat_fit_request *base_request, cleat_fit_result *fitted,
                                  char *why, size_t why_size, cleat_error *error);

/* The session of the best fit (cleat_session_search, with the kernels of cleat_tuning_load). If the device
 * then has less memory than planned, fits again with a lower limit and logs it. Errors: those of the search;
 * the device's error if nothing smaller fits either. */
cleat_status cleat_session_fit(cleat_device *device, const cleat_fit_request *base_request, cleat_session **session,
                               cleat_error *error);

/* The limit for the next plan after a plan of `bytes` turned out to be too large. */
int64_t cleat_session_reduced_limit(int64_t bytes);

/* Draws the initial parameters from `seed`; buffers get their initial values. */
cleat_status cleat_session_initialise(cleat_session *session, uint64_t seed, cleat_error *error);

/* Loads the parameters and buffers from published weights or a checkpoint of cleat (cleat_weights_load) for
 * the model's family; those that the file lacks are drawn from `seed`. `other_labels` as in
 * cleat_weight_target. The caller frees *report. */
cleat_status cleat_session_load_weights(cleat_session *session, const cleat_weights *weights, uint64_t seed,
                                        const char *other_labels, cleat_weight_report *report, cleat_error *error);

/* Bytes of a staging buffer that can hold any batch of any bucket. */
int64_t cleat_session_input_bytes(const cleat_session *session);

/* The key of dropout's random stream: no two micro-batches of a run have the same one. */
typedef struct cleat_dropout_key {
    uint64_t seed;
    int64_t step;   /* number of optimizer steps before this one */
    uint32_t first; /* number of samples of the global batch before this micro-batch */
} cleat_dropout_key;

/* Fills the inputs that the session itself provides for a micro-batch of `global_batch`. The dataset's fields
 * are in `staging` already. `key` is NULL for graphs without dropout. */
void cleat_session_prepare(const cleat_session *session, const cleat_work_graph *graph, void *staging,
                           const cleat_host_batch *batch, const cleat_global_batch *global_batch,
                           const cleat_dropout_key *key);

/* Fills the inputs of the update graph: the hyperparameters of optimizer step `step` (the first is 0) at
 * learning rate `rate`. */
void cleat_session_prepare_update(const cleat_session *session, void *staging, double rate, int64_t step);
/* The same for a workload with host_norm: the norm of the gradient on the device, which carries the loss scale. */
void cleat_session_prepare_norm(const cleat_session *session, void *staging, float norm);

/* Number of moments that the optimizer keeps, 0 to 2: the others have no bytes. */
int cleat_session_moments(const cleat_session *session);

/* Copies parameters, gradients or moments between device and host: the parameters are
 * [cleat_session_flat(session)], the others [cleat_session_trained(session)], because frozen parameters
 * have none and come last. Writing the parameters also updates the half weights, if there are any. A
 * frozen parameter that the device has only as a half weight is read as the value of that half; one in blocks is
 * not among them. */
int64_t cleat_session_flat(const cleat_session *session);
int64_t cleat_session_trained(const cleat_session *session);
cleat_status cleat_session_read_flat(cleat_session *session, cleat_flat_buffer which, float *values,
                                     cleat_error *error);
cleat_status cleat_session_write_flat(cleat_session *session, cleat_flat_buffer which, const float *values,
                                      cleat_error *error);

/* Replaces `hash` by one of itself and of all weights in blocks. */
cleat_status cleat_session_hash_blocks(cleat_session *session, char hash[33], cleat_error *error);

/* The loss scale (cleat_loss_scale), copied between device and host; only in sessions that train in f16. A
 * session starts with train.loss_scale and no steps. */
typedef struct cleat_loss_scale_values {
    float loss_scale;
    int32_t clean_steps, updates;
} cleat_loss_scale_values;
bool cleat_session_has_loss_scale(const cleat_session *session);
cleat_status cleat_session_read_loss_scale(cleat_session *session, cleat_loss_scale_values *state, cleat_error *error);
cleat_status cleat_session_write_loss_scale(cleat_session *session, const cleat_loss_scale_values *state,
                                            cleat_error *error);

/* The buffers (cleat_buffer) in one array [cleat_session_buffers(session)], copied between device and host. */
int64_t cleat_session_buffers(const cleat_session *session);
cleat_status cleat_session_read_buffers(cleat_session *session, float *values, cleat_error *error);
cleat_status cleat_session_write_buffers(cleat_session *session, const float *values, cleat_error *error);

/* The values of a trained model in one array [cleat_session_values(session)]: the parameters as in their flat
 * buffer, then the buffers (cleat_buffer). */
int64_t cleat_session_values(const cleat_session *session);
cleat_status cleat_session_read_values(cleat_session *session, float *values, cleat_error *error);
cleat_status cleat_session_write_values(cleat_session *session, const float *values, cleat_error *error);

/* Logs the plan by category: the table printed at the start of a run. */
void cleat_session_log_plan(const cleat_session *session);

#endif
