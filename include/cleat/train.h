/* Runs of a profile: cleat_train with its options and report, cleat_evaluate and cleat_predict on
 * checkpoints, and the learning-rate schedule. Each call opens and closes all its resources: data, device,
 * run folder.
 *
 * Threads: each call blocks its thread until the run ends, and starts loader and compiler threads, which
 * end with it. A run locks its folder: a second run in the folder is refused. Only `stop` of the options
 * may be changed during the call, also by a signal handler. */
#ifndef CLEAT_TRAIN_H
#define CLEAT_TRAIN_H

#include "cleat/device.h"
#include "cleat/graph.h"
#include "cleat/models.h"
#include "cleat/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CLEAT_PATH = 1280 };

typedef struct cleat_train_options {
    /* Run folder; NULL: profile->run.out, or runs/MODEL-DATE-TIME if that is empty. */
    const char *out;
    bool resume; /* resume from the last checkpoint of the folder */
    /* Stop request, may be NULL. Once non-zero, the run finishes the step, writes a checkpoint and returns
     * CLEAT_ERR_INTERRUPTED. */
    const volatile int *stop;
    void (*print)(void *user, const char *text); /* progress text, with its newlines; may be NULL */
    void *user;
    bool terminal; /* draw a progress bar */
    int width;     /* columns of the terminal */
} cleat_train_options;

/* Breakdown of the start-up time, in seconds, which adds up to cleat_train_report.seconds_first_step. */
typedef struct cleat_startup_stats {
    double data;   /* reading the dataset */
    double device; /* finding and opening the device */
    /* Lengths, micro-batches, the memory plan (with measured device speeds if needed), and the allocation. */
    double plan;
    double setup; /* loader, parameters or the checkpoint to resume, log */
    /* Waiting for programs that are not compiled yet; compilation runs in the background. */
    double kernels;
    double step;      /* remainder of the first step */
    int64_t programs; /* programs of all graphs */
    /* Programs built from source by the end of the step (the driver may have used its own cache). */
    int64_t built;
    int64_t loaded; /* programs loaded from the binary cache of cleat */
} cleat_startup_stats;

/* Device memory, bytes. */
typedef struct cleat_memory_stats {
    int64_t planned;   /* before anything was allocated */
    int64_t allocated; /* at the end; it equals `planned` */
    int64_t peak;      /* high-water mark of this process: larger if a first attempt did not fit */
    int64_t category_bytes[CLEAT_CATEGORIES];
} cleat_memory_stats;

typedef struct cleat_train_report {
    char folder[CLEAT_PATH]; /* of the run */
    int64_t epochs, steps;   /* completed, of the whole run */
    /* Steps without an update (f16): their gradient overflowed at the current loss scale. */
    int64_t skipped_steps;
    cleat_dtype storage; /* activation type: the resolved train.precision */
    int64_t best_step;
    double best_metric;        /* NaN: no finite evaluation, or none at all */
    double seconds;            /* wall time of this process, from the call on */
    double seconds_first_step; /* from the call until the first optimizer step was done on the device */
    cleat_startup_stats start; /* its parts */
    cleat_memory_stats memory;
    cleat_metrics last, best; /* the last evaluation, and the best one of this process */
    bool stopped_early;
    /* From measured steps; 0 where there were too few. */
    double step_seconds;  /* mean of an epoch's steps */
    double epoch_seconds; /* an epoch's steps */
    double run_seconds;   /* the whole run from its beginning, with evaluations and checkpoints */
    /* Number of such runs that fit run.time_budget with 5 % in reserve; 0 without a budget. */
    int64_t runs_in_budget;
    int64_t epochs_planned; /* train.epochs, or fewer where run.budget = fit shortened the schedule */
} cleat_train_report;

/* Trains as the profile says. `report` is filled as far as the run came, also on CLEAT_ERR_INTERRUPTED,
 * CLEAT_ERR_TIME_UP and CLEAT_ERR_NAN; the run's folder then holds a checkpoint to resume from (on
 * CLEAT_ERR_NAN the one before the bad step, if one was written by then). Folder: resolved.ini,
 * metrics.jsonl, ckpt-*, last, best, and .train.lock, which is locked while a run goes on in it:
 * CLEAT_ERR_ARGUMENT for a second one.
 *
 * With run.time_budget the run stops before the next step could end, its checkpoint included, beyond the
 * budget; CLEAT_ERR_TIME_UP at once where the budget is used up already. */
CLEAT_API cleat_status cleat_train(const cleat_profile *profile, const cleat_train_options *options,
                                   cleat_train_report *report, cleat_error *error);

/* Loss terms and metrics of a checkpoint (a checkpoint folder, or a run folder: its best) over the samples
 * of a split of profile->data->path ("train", "val", "test"; "all" for every sample, see
 * cleat_dataset_make_whole). Data to which the profile's splits do not apply (cleat_dataset_is_whole: a
 * series shorter than train_rows and its like) are evaluated whole for "val" and "test"; "train" is
 * CLEAT_ERR_NOT_FOUND then. CLEAT_ERR_NAN where an output or the loss is not finite: *metrics are written
 * then too, and the message counts the samples and names the first. */
CLEAT_API cleat_status cleat_evaluate(const cleat_profile *profile, const char *checkpoint, const char *split,
                                      cleat_metrics *metrics, cleat_error *error);

/* Applies a checkpoint to all samples of `data` (no references needed) and writes the predictions into
 * `out`; *count (may be NULL) is their number. CLEAT_ERR_NAN: some predictions are not finite; all are
 * written and counted nevertheless, and the message names the first. */
CLEAT_API cleat_status cleat_predict(const cleat_profile *profile, const char *checkpoint, const char *data,
                                     const char *out, size_t *count, cleat_error *error);

/* Scales a learning rate that was chosen for base_batch samples per optimizer step to `batch` samples.
 *   none:   learning_rate
 *   linear: learning_rate * batch / base_batch (Goyal et al., "Accurate, Large Minibatch SGD", 2017)
 *   sqrt:   learning_rate * sqrt(batch / base_batch) (Krizhevsky, "One weird trick", 2014) */
CLEAT_API double cleat_scaled_learning_rate(cleat_lr_scaling scaling, double learning_rate, int64_t base_batch,
                                            int64_t batch);

/* The learning rate of optimizer step `step` (the first is 0) of a run of `profile` whose epochs have
 * `steps_per_epoch` steps: scaled to the effective batch, then warm-up and schedule. No card enters.
 * Errors: a warm-up as long as the run or longer, or one that would fall; a floor above the peak. */
CLEAT_API cleat_status cleat_learning_rate(const cleat_profile *profile, int64_t steps_per_epoch, int64_t step,
                                           double *rate, cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif
