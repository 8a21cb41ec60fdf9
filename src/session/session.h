/* A session: a workload on a device, ready to run. Training, evaluation, prediction, verification and benchmarks all
 * start here. */
#ifndef CLEAT_SRC_SESSION_H
#define CLEAT_SRC_SESSION_H

#include "cleat/data.h"
#include "cleat/exec.h"
#include "cleat/models.h"
#include "cleat/rates.h"
#include "cleat/tuning.h"
#include "fit/fit.h"
#include "graph/graph.h"

typedef struct cleat_session {
    cleat_device *device;
    const cleat_profile *profile;
    cleat_model *model;
    cleat_workload *work; /* its own */
    cleat_exec *exec;
} cleat_session;

/* Binds `work` to the device; the session owns it, whatever the status. The parameters are zero: initialise or load
 * them. device, profile and model must outlive the session. */
cleat_status cleat_session_open(cleat_device *device, const cleat_profile *profile, cleat_model *model,
                                cleat_workload *work, cleat_session **session, cleat_error *error);

/* For batches of buckets [n], however large; recompute as in cleat_workload; kernels as in cleat_session_fit. */
cleat_status cleat_session_create(cleat_device *device, const cleat_profile *profile, cleat_model *model,
                                  cleat_purpose purpose, const cleat_bucket *buckets, size_t n, int recompute,
                                  cleat_session **session, cleat_error *error);
void cleat_session_destroy(cleat_session *session);

/* cleat_fit_search for a device that is there. `base_request->rates` are not looked at: speeds are found out where they matter,
 * which is where memory cut a window, so that recomputing may be a gain; measuring takes a moment. */
cleat_status cleat_session_search(cleat_device *device, const cleat_fit_request *base_request, cleat_fitted *fitted,
                                  char *why, size_t why_size, cleat_error *error);

/* The session of the best fit (cleat_session_search, with the kernels that cleat_tuning_load names). Where the device
 * then has less memory than the plan counts on, fits again to less, and says so. Errors: of the search; that of the
 * device where nothing smaller fits either. */
cleat_status cleat_session_fit(cleat_device *device, const cleat_fit_request *base_request, cleat_session **session,
                               cleat_error *error);

/* What to plan with after a plan of `bytes` turned out to be too much. */
int64_t cleat_session_reduced_limit(int64_t bytes);

/* Draws the starting parameters from `seed`; buffers get what they start from. */
cleat_status cleat_session_initialise(cleat_session *session, uint64_t seed, cleat_error *error);

/* Bytes that hold any batch of any bucket. */
int64_t cleat_session_input_bytes(const cleat_session *session);

/* What dropout draws from: no two micro-batches of a run share one. */
typedef struct cleat_dropout_key {
    uint64_t seed;
    int64_t step;   /* optimizer steps before this one */
    uint32_t first; /* samples of the window before this micro-batch */
} cleat_dropout_key;

/* Fills the session's own inputs of a batch of `window` whose dataset fields are in `staging` already. `key` NULL: for
 * graphs without dropout. */
void cleat_session_prepare(const cleat_session *session, const cleat_work_graph *graph, void *staging,
                           const cleat_host_batch *batch, const cleat_global_batch *global_batch,
                           const cleat_dropout_key *key);

/* Fills the inputs of the update graph: hyper-parameters of optimizer step `step` (the first is 0) at
 * learning rate `rate`. */
void cleat_session_prepare_update(const cleat_session *session, void *staging, double rate, int64_t step);

/* Parameters and moments between device and host: flat buffers [cleat_session_flat(session)]. `which`:
 * parameters, and with them their working copies where there are any, or moments. */
int64_t cleat_session_flat(const cleat_session *session);
cleat_status cleat_session_read_flat(cleat_session *session, cleat_flat which, float *values, cleat_error *error);
cleat_status cleat_session_write_flat(cleat_session *session, cleat_flat which, const float *values,
                                      cleat_error *error);

/* The loss scale between device and host (cleat_loss_scale): of sessions for training in f16 only. A session starts with train.loss_scale
 * and no steps. */
typedef struct cleat_loss_scale_values {
    float loss_scale;
    int32_t clean_steps, updates;
} cleat_loss_scale_values;
bool cleat_session_has_loss_scale(const cleat_session *session);
cleat_status cleat_session_read_loss_scale(cleat_session *session, cleat_loss_scale_values *state, cleat_error *error);
cleat_status cleat_session_write_loss_scale(cleat_session *session, const cleat_loss_scale_values *state,
                                            cleat_error *error);

/* What a trained model is: the parameters as in their flat buffer, and behind them the buffers (cleat_buffer), in one array
 * [cleat_session_values(session)]. */
int64_t cleat_session_values(const cleat_session *session);
cleat_status cleat_session_read_values(cleat_session *session, float *values, cleat_error *error);
cleat_status cleat_session_write_values(cleat_session *session, const float *values, cleat_error *error);

/* Logs the plan by category: the table a run prints at its start. */
void cleat_session_log_plan(const cleat_session *session);

#endif
