/* Data-parallel training: several ranks, each with its device, compute parts of every global batch.
 *
 * A rank runs its part in its own micro-batches. Then the gradients of all ranks are summed on the host
 * (buffers of cleat_buffer are averaged, weighted by samples), and every rank makes the same update: the norm
 * of the gradient comes from the summed values, which have the same bits everywhere, so the parameters stay
 * equal, even on devices of different vendors. With `ranks` NULL no function has an effect.
 *
 * The norm is computed on the host, because devices would round it differently. The optimizer's kernels do
 * not fuse operations and are built with correctly rounded division and square root if the device has them
 * (`rounds_correctly`); otherwise the first steps are compared, and after a difference rank 0 sends its
 * parameters after each step. */
#ifndef CLEAT_SRC_DATA_PARALLEL_H
#define CLEAT_SRC_DATA_PARALLEL_H

#include "cleat/profile.h"
#include "exec/copy.h"
#include "fit/shares.h"
#include "ranks/ranks.h"
#include "session/session.h"
#include "train/gradient_pieces.h"
#include "train/touched_rows.h"

typedef struct cleat_data_parallel {
    cleat_ranks *ranks;       /* borrowed; NULL: one device trains alone */
    int64_t *shares;          /* [ranks] */
    bool is_given;            /* the shares are distribute.shares, and stay */
    bool is_measured;         /* the shares follow from measured steps */
    bool refines;             /* the shares are new, and are measured again soon */
    bool is_doubted;          /* one measurement found that a step would be shorter without a rank */
    bool has_warned;          /* that one rank alone would be faster */
    cleat_pieces pieces;      /* of the gradient */
    cleat_staging *gradients; /* f32 [pieces.elements] in pinned memory */
    cleat_copy **copies;      /* [pieces.run_count] of this step, from the device */
    size_t copying;           /* number of them */
    cleat_touched_rows rows;  /* of tables */
    float *others;            /* [terms + buffers], of this step ... */
    float *buffers;           /* [buffers], after the last update */
    int64_t terms;            /* number of loss terms, the loss included */
    double timeout;           /* seconds, of the profile */
    /* Of this rank since the shares were chosen: seconds of forward and backward, without the exchange. */
    double step_started, computing;
    double all_seconds;  /* of the logged steps: those after the first ones, if any, else all */
    int64_t logged_from; /* number of those before */
    /* The exchange of these steps, and its exposed part: seconds of the rank that waited least for others
     * in each step. */
    double exchanged, exchanged_alone;
    double waited;      /* seconds more that this rank had nothing to compute: other ranks were not ready */
    double busy_before; /* of the transport until this step */
    int64_t computed;   /* samples */
    int steps;
    double typical_step;      /* seconds: moving average */
    int64_t all_steps;        /* of this process */
    double *squares;          /* [CLEAT_PIECES] of the summed gradient */
    double exposed;           /* seconds of these steps in which only the exchange ran ... */
    double exposed_before;    /* ... up to the steps that are measured for the shares */
    const volatile int *stop; /* stop request, or NULL */
    bool drifts; /* a device computes other bits: the parameters of rank 0 are sent to all after every update */
} cleat_data_parallel;

/* Until the next exchange, a rank may evaluate or write a checkpoint while the others wait for it: all
 * agree to be watched, so only one silent for distribute.timeout is lost. In steps the timeout of the
 * profile applies, and a shorter one after a stop request, because a launcher sends one to all ranks when
 * one is lost. All ranks call it. */
cleat_status cleat_data_parallel_expect_long_work(cleat_data_parallel *parallel, cleat_error *error);

/* Chooses shares: those of the profile, or `measured` [ranks] by cleat_data_parallel_balance (NULL: none),
 * or in proportion to the speeds of the devices. `flops`: measured rate of this device; 0: unknown.
 * CLEAT_ERR_ARGUMENT: the profile's shares are not one per rank, or there are fewer samples than ranks.
 * All ranks call it. The caller closes it, also after an error. */
cleat_status cleat_data_parallel_open(cleat_data_parallel *parallel, cleat_ranks *ranks, const cleat_profile *profile,
                                      const int64_t *measured, double flops, cleat_error *error);
/* The same for a pass without training: only `ranks` and `shares` are set. Profile shares for another
 * number of ranks belong to the training and are ignored. */
cleat_status cleat_data_parallel_open_pass(cleat_data_parallel *parallel, cleat_ranks *ranks,
                                           const cleat_profile *profile, double flops, cleat_error *error);
void cleat_data_parallel_close(cleat_data_parallel *parallel);
/* Maximum number of samples of a global batch that this rank computes; 0: all of them. */
int64_t cleat_data_parallel_part(const cleat_data_parallel *parallel, int64_t samples);
/* cleat_batches_spec.part, with the cleat_data_parallel as `user`. */
void cleat_data_parallel_cut(void *parallel, int64_t samples, int64_t *first, int64_t *count);

/* Memory for the exchange, once the session is open and has its initial values. */
cleat_status cleat_data_parallel_bind(cleat_data_parallel *parallel, cleat_session *session, cleat_error *error);
/* CLEAT_ERR_ARGUMENT: the replicas differ, after a resume or a new start. All ranks call it. */
cleat_status cleat_data_parallel_check_start(cleat_data_parallel *parallel, cleat_session *session, cleat_error *error);

/* A step: begin, forward and backward of the own part (`own` samples of `samples`), exchange, update, end.
 * Each micro-batch is recorded with its inputs before it runs. cleat_data_parallel_run_last runs the last
 * micro-batch, of bucket `bucket`, with its inputs uploaded, so the exchange of a piece begins while
 * backward still runs. cleat_data_parallel_exchange waits for the device; `status` is that of the own
 * part: a failed rank still takes part, with meaningless values, and then all agree on the error. *norm:
 * of the summed gradient, with the loss scale. */
void cleat_data_parallel_begin(cleat_data_parallel *parallel);
void cleat_data_parallel_note(cleat_data_parallel *parallel, const cleat_session *session, size_t bucket,
                              const void *inputs);
cleat_status cleat_data_parallel_run_last(cleat_data_parallel *parallel, cleat_session *session, size_t bucket,
                                          cleat_error *error);
cleat_status cleat_data_parallel_exchange(cleat_data_parallel *parallel, cleat_session *session, int64_t own,
                                          int64_t samples, cleat_status status, float *norm, cleat_error *error);
/* Compares the replicas after the first steps and every distribute.check_every_steps; `step`: steps done. */
cleat_status cleat_data_parallel_end(cleat_data_parallel *parallel, cleat_session *session, int64_t step,
                                     cleat_error *error);

/* Chooses shares from measured steps; *changed: they differ, and the run must be planned again. If two
 * measurements find a step shorter without a rank, it gets a share of 0, with a warning: it computes
 * nothing, but takes part in the sums, whose time stays the same, and keeps its parameters equal. Its
 * speed is not measured again. Warns if one rank alone would be faster, because of the sums. All ranks
 * call it after the same steps. */
cleat_status cleat_data_parallel_balance(cleat_data_parallel *parallel, int64_t samples, bool *changed,
                                         cleat_error *error);
/* Logs how long the exchange took, and how much of it was exposed. */
void cleat_data_parallel_log(cleat_data_parallel *parallel);
/* Once the ranks are broken: restores the buffers after the last update, so a checkpoint contains no part
 * of a step. */
cleat_status cleat_data_parallel_restore_buffers(cleat_data_parallel *parallel, cleat_session *session,
                                                 cleat_error *error);

/* Opens the device that the selector `wanted` or CLEAT_RANK_DEVICES names; with auto or gpu, the ranks of a
 * machine with several GPUs take one each. Without `ranks` it is cleat_doctor_open_device. The caller closes
 * *device. */
cleat_status cleat_rank_open_device(cleat_ranks *ranks, const char *wanted, cleat_device **device, cleat_error *error);

#endif
