/* Running a profile: cleat_train, with its options and its report, cleat_evaluate and cleat_predict on
 * checkpoints, and the learning-rate schedules. All that these calls need they open and close themselves:
 * data, device, run folder.
 *
 * Threads: each call occupies its thread until the run ends, and starts loader and compiler threads, which
 * end with it. A run locks its folder: two in one folder are refused. Only `stop` of the options may be
 * set from elsewhere meanwhile, also by a signal handler. */
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
    /* the run's folder; NULL: profile->run.out, and where that is empty runs/MODEL-DATE-TIME */
    const char *out;
    bool resume; /* go on from the folder's last checkpoint */
    /* becomes non-zero: finish the step, checkpoint, return CLEAT_ERR_INTERRUPTED; may be NULL */
    const volatile int *stop;
    void (*print)(void *user, const char *text); /* progress, brings its own line ends; may be NULL */
    void *user;
    bool terminal; /* draw a bar */
    int width;     /* columns of the terminal */
} cleat_train_options;

/* Where the time until the first optimizer step went: seconds that add up to
 * cleat_train_report.seconds_first_step. */
typedef struct cleat_startup_stats {
    double data;   /* reading the dataset */
    double device; /* finding and opening the device */
    /* lengths, micro-batches and the memory plan (with the device's speeds where it needs them), and
     * allocating what is planned */
    double plan;
    double setup; /* loader, parameters or the checkpoint to resume, log */
    /* waiting for programs that were not compiled yet: they are compiled while everything else goes on */
    double kernels;
    double step;      /* the rest of the step */
    int64_t programs; /* that all graphs need, of which at the end of the step ... */
    /* ... so many were made from source (where the driver did not have them in a cache of its own) ... */
    int64_t built;
    int64_t loaded; /* ... and so many came from cleat's cache of binaries */
} cleat_startup_stats;

/* Device memory, bytes. */
typedef struct cleat_memory_stats {
    int64_t planned;   /* before anything was allocated */
    int64_t allocated; /* at the end; it equals `planned` */
    int64_t peak;      /* most there ever was in this process: more where a first try was too large */
    int64_t category_bytes[CLEAT_CATEGORIES];
} cleat_memory_stats;

typedef struct cleat_train_report {
    char folder[CLEAT_PATH]; /* of the run */
    int64_t epochs, steps;   /* done, of the whole run */
    /* f16: steps whose gradient overflowed at the scale of the time: they changed nothing */
    int64_t skipped_steps;
    cleat_dtype storage; /* of activations: what train.precision became */
    int64_t best_step;
    double best_metric;        /* NaN: no evaluation was finite, or there was none */
    double seconds;            /* of this process, from the call on */
    double seconds_first_step; /* from the call until the first optimizer step was done on the device */
    cleat_startup_stats start; /* its parts */
    cleat_memory_stats memory;
    cleat_metrics last, best; /* the last evaluation, and the best one of this process */
    bool stopped_early;
    /* From measured steps; 0 where there were too few. */
    double step_seconds;    /* mean of an epoch's steps */
    double epoch_seconds;   /* an epoch's steps */
    double run_seconds;     /* the whole run from its beginning, with evaluations and checkpoints */
    int64_t runs_in_budget; /* such runs that fit into run.time_budget, 5 % kept in reserve; 0 without one */
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

/* Runs a checkpoint over all samples of `data` (no references needed) and writes the predictions into
 * `out`; *count (may be NULL) is how many. CLEAT_ERR_NAN where some of them are not finite: all are
 * written, and counted, all the same, and the message names the first. */
CLEAT_API cleat_status cleat_predict(const cleat_profile *profile, const char *checkpoint, const char *data,
                                     const char *out, size_t *count, cleat_error *error);

/* learning_rate was chosen for base_batch samples an optimizer step; this is what it becomes for `batch`
 * samples.
 *   none:   learning_rate
 *   linear: learning_rate * batch / base_batch        (Goyal et al., "Accurate, Large Minibatch SGD", 2017)
 *   sqrt:   learning_rate * sqrt(batch / base_batch)  (Krizhevsky, "One weird trick", 2014) */
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
