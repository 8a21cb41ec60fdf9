/* Runs of a profile: training, evaluation and prediction with checkpoints, and the learning-rate schedule.
 * Each call opens and closes all its resources: data, device, run folder.
 *
 * Threads: each call blocks the calling thread until the run ends, and starts loader and compiler threads
 * that end with it. A run locks its folder, and a second run in the same folder is an error. Only the
 * variable behind `stop` of the options may be changed during the call, also by a signal handler. */
#ifndef CLEAT_TRAIN_H
#define CLEAT_TRAIN_H

#include "cleat/compile.h"
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
    /* Resume from the last checkpoint in the folder, with the settings that it was trained with, except that
     * train.epochs may differ if that changes no learning rate of the steps done, as with train.schedule =
     * constant. Data that differ from those of the checkpoint are CLEAT_ERR_ARGUMENT, unless
     * run.resume_other_data is set. Without a checkpoint, a new run starts, with a warning;
     * CLEAT_ERR_ARGUMENT if the folder contains run folders, or is a checkpoint folder. */
    bool resume;
    /* Run folder or checkpoint folder of another run, which is only read: copy that run up to its last
     * checkpoint into the run folder, which contains no run yet, and resume there; NULL: do not. Not together
     * with `resume`. The learning-rate schedule may differ from this step on. */
    const char *resume_from;
    /* Stop request; may be NULL. When the value becomes non-zero, the run completes the step, writes a
     * checkpoint and returns CLEAT_ERR_INTERRUPTED. While the run still opens (device, data, plan), it
     * returns after the stage in progress, without a step and without a checkpoint. */
    const volatile int *stop;
    void (*print)(void *user, const char *text); /* receives progress text, including newlines; may be NULL */
    void *user;
    /* true: a bar, redrawn 10 times a second; false: a line every 5 seconds, after an hour every minute */
    bool terminal;
    int width; /* columns of the bar's terminal */
    /* How the run was started and the path of its profile, for records and hints; may be NULL. */
    const char *command, *profile_path;
    /* The run ends, without a checkpoint, once the last cycle of run.trace is recorded; this is not an error.
     * If data.path does not exist, it trains on synthetic samples of the longest length. */
    bool trace_only;
    /* Receives `user` and each line of metrics.jsonl, a JSON object and a newline, once it is in the file; called on
     * the thread of the run; may be NULL. */
    void (*record)(void *user, const char *line);
    /* Called with `user` once the device has completed the first step of this call; may be NULL. A process
     * that ends earlier loses no training; later, `stop` leaves a checkpoint. */
    void (*began)(void *user);
    /* Train together with other processes (cleat_ranks_open), which make the same call; NULL: alone. Rank 0
     * writes the run folder, which all must be able to read, and calls `print` and `record`; a stop request
     * to any rank stops all. If a rank is lost, CLEAT_ERR_RANK_LOST is returned, and the finished steps are a
     * checkpoint in the run folder, written by the first rank of that machine that still runs. Borrowed. */
    struct cleat_ranks *ranks;
    /* Processes that compile kernels before the first step; not used by ranks. Borrowed; NULL: none. */
    const cleat_compile_helpers *compile_helpers;
    /* After this epoch, if the schedule has more, the run writes a checkpoint and returns CLEAT_ERR_TIME_UP. The
     * schedule stays that of train.epochs: the run that is resumed has the bits of one that did not stop. Of ranks,
     * all have the same value. 0: none. */
    int64_t until_epoch;
} cleat_train_options;

/* Breakdown of the start-up time in seconds. The parts add up to cleat_train_report.seconds_first_step. */
typedef struct cleat_startup_stats {
    double data;   /* reading the dataset */
    double device; /* finding and opening the device */
    /* Lengths, micro-batches, the memory plan (with measured device speeds if needed), and allocation. */
    double plan;
    double setup; /* loader, parameters or the checkpoint to resume, log */
    /* Waiting for programs that are still being compiled; compilation runs in the background. */
    double kernels;
    double step;      /* remainder of the first step */
    int64_t programs; /* number of programs of all graphs */
    /* Programs built from source by the end of the step (possibly served by the driver's cache). */
    int64_t built;
    int64_t loaded; /* programs loaded from the binary cache of cleat */
} cleat_startup_stats;

/* Device memory in bytes. */
typedef struct cleat_memory_stats {
    int64_t planned;   /* the plan, before any allocation */
    int64_t allocated; /* at the end; equals `planned` */
    int64_t peak;      /* high-water mark of this process; larger if a first attempt did not fit */
    int64_t category_bytes[CLEAT_CATEGORIES];
} cleat_memory_stats;

typedef struct cleat_train_report {
    char folder[CLEAT_PATH]; /* run folder */
    int64_t epochs, steps;   /* completed in the whole run */
    /* Steps without an update (f16), because their gradient overflowed at the current loss scale. */
    int64_t skipped_steps;
    cleat_dtype storage; /* activation type: the resolved train.precision */
    int64_t best_step;
    double best_metric;        /* NaN: no evaluation, or none with a finite result */
    double seconds;            /* wall time of this process since the call */
    double seconds_first_step; /* from the call until the device completed the first optimizer step */
    cleat_startup_stats start; /* parts of seconds_first_step */
    cleat_memory_stats memory;
    cleat_metrics last, best; /* of the last evaluation, and of the best one in this process */
    bool stopped_early;
    /* From measured steps; 0 if there were too few. */
    double step_seconds;  /* mean over the steps of an epoch */
    double epoch_seconds; /* all steps of an epoch */
    double run_seconds;   /* the whole run from its start, including evaluations and checkpoints */
    /* Number of such runs that fit run.time_budget with 5 % in reserve; 0 without a budget. */
    int64_t runs_in_budget;
    int64_t epochs_planned;  /* train.epochs, or fewer if run.budget = fit shortened the schedule */
    int64_t traces;          /* cycles of run.trace whose files were written */
    cleat_baseline baseline; /* what a prediction without a model reaches; known with `best` */
} cleat_train_report;

/* Trains as the profile defines. `report` is filled as far as the run got, also on CLEAT_ERR_INTERRUPTED,
 * CLEAT_ERR_TIME_UP and CLEAT_ERR_NAN. In these cases the run folder contains a checkpoint to resume from; on
 * CLEAT_ERR_NAN it is the last one before the bad step, if one was written. The folder contains resolved.ini,
 * metrics.jsonl, system.jsonl (unless run.monitor is none), ckpt-*, last, best, with run.tensorboard an event
 * file of each process, and .train.lock, which is locked during a run: CLEAT_ERR_ARGUMENT for a second run.
 * Most families also write examples.json: predictions of the best evaluation beside the truth. With
 * run.trace, it also contains for each recorded cycle, numbered by its first step, profile-S000008.txt, .csv,
 * .json (table and summary) and .trace.json.gz (for ui.perfetto.dev).
 *
 * With run.time_budget, the run stops before a step whose end, including the checkpoint after it, could
 * exceed the budget or the session. If the budget is already used up, CLEAT_ERR_TIME_UP is returned at once. */
CLEAT_API cleat_status cleat_train(const cleat_profile *profile, const cleat_train_options *options,
                                   cleat_train_report *report, cleat_error *error);

/* The name of the run folder for a run that starts now and has none: "runs/MODEL-DATE-TIME". It is not created. */
enum { CLEAT_RUN_NAME = 128 };
CLEAT_API cleat_status cleat_run_name(const cleat_profile *profile, char name[CLEAT_RUN_NAME], cleat_error *error);

/* Sets the settings that the weights of model.init determine: the shape of the network and its tokenizer.
 * Call it after loading a profile that is to be trained or planned; without model.init it does nothing.
 * CLEAT_ERR_PROFILE: the profile itself gives the network another shape; the message names both places.
 * Errors in the files of the weights name the file. */
CLEAT_API cleat_status cleat_profile_apply_init(cleat_profile *profile, cleat_error *error);
/* The same for a plan: a folder may have config.json without the weights. */
CLEAT_API cleat_status cleat_profile_apply_config(cleat_profile *profile, cleat_error *error);
/* The same for a run that is resumed, or a checkpoint that is evaluated: the checkpoint's profile contains
 * the settings that the weights determined, so model.init need not exist. The checkpoint is named as for
 * cleat_evaluate. Without a checkpoint it is cleat_profile_apply_init. */
CLEAT_API cleat_status cleat_profile_apply_run(cleat_profile *profile, const char *checkpoint, cleat_error *error);

/* Reads the profile with which a checkpoint was trained, as that run received it, applies assignments [count]
 * ("section.key=value") in order, and checks it. `checkpoint` as for cleat_evaluate. run.device, run.out and
 * loader.num_workers are auto, because another machine may be in use; data.path is absolute. For a checkpoint
 * of an earlier version, the resolved.ini in its run folder is read. CLEAT_ERR_NOT_FOUND: no checkpoint, or
 * it has no profile. The caller destroys the profile. */
CLEAT_API cleat_status cleat_profile_of_checkpoint(const char *checkpoint, const char *const *assignments, size_t count,
                                                   cleat_profile **profile, cleat_error *error);

/* Computes the loss terms and metrics of a checkpoint on a split of profile->data->path. `checkpoint` is a
 * checkpoint folder, a run folder (its best checkpoint is used), or RUN/best or RUN/last; NULL: the weights of the
 * profile's model.init, CLEAT_ERR_FORMAT if they lack tensors of the network. `split` is "train", "val", "test", or
 * "all" for every sample, see cleat_dataset_make_whole. If the splits of the profile do not
 * apply to the data (cleat_dataset_is_whole, for example a series shorter than train_rows), "val" and "test"
 * evaluate the whole data and "train" is CLEAT_ERR_NOT_FOUND. CLEAT_ERR_NAN: an output or the loss is not
 * finite; *metrics are written nevertheless, and the message counts the samples and names the first. */
CLEAT_API cleat_status cleat_evaluate(const cleat_profile *profile, const char *checkpoint, const char *split,
                                      cleat_metrics *metrics, cleat_error *error);

/* The same, and writes predictions beside the truth into the JSON file `path` (NULL: none), in the form of
 * a run's examples.json. */
CLEAT_API cleat_status cleat_evaluate_examples(const cleat_profile *profile, const char *checkpoint, const char *split,
                                               const char *path, cleat_metrics *metrics, cleat_error *error);

/* The same on several ranks, each of which evaluates a part of the samples, in proportion to the speed of its
 * device, or to distribute.shares if it has one entry per rank; run.device as for cleat_train. All ranks call
 * it with the same arguments and receive the same results; rank 0 writes `path`. Counts are those of one
 * process, and so are losses except for the order of sums. `ranks` NULL: alone. */
CLEAT_API cleat_status cleat_evaluate_ranks(const cleat_profile *profile, const char *checkpoint, const char *split,
                                            const char *path, struct cleat_ranks *ranks, cleat_metrics *metrics,
                                            cleat_error *error);

/* Applies a checkpoint to all samples of `data` (no targets needed; of a series, all windows) and writes the
 * predictions into folder `out`. *count (may be NULL) receives their number. CLEAT_ERR_NAN: some predictions are not
 * finite; all of them are written and counted nevertheless, and the message names the first. CLEAT_ERR_ARGUMENT,
 * CLEAT_ERR_FORMAT, with *count written: samples are longer than data.max_length and their ends are not
 * predicted, or files cannot be read; the rest is written, and the message names the first five. */
CLEAT_API cleat_status cleat_predict(const cleat_profile *profile, const char *checkpoint, const char *data,
                                     const char *out, size_t *count, cleat_error *error);
/* The same on several ranks, as cleat_evaluate_ranks. Files of a single sample are written by the rank that
 * predicts it, so all ranks need the same folder `out`; rank 0 writes all other files. */
CLEAT_API cleat_status cleat_predict_ranks(const cleat_profile *profile, const char *checkpoint, const char *data,
                                           const char *out, struct cleat_ranks *ranks, size_t *count,
                                           cleat_error *error);

enum { CLEAT_MAX_MEMBERS = 64 };

/* A trained model of several whose predictions are combined: a checkpoint, as above, and its profile. */
typedef struct cleat_member {
    const cleat_profile *profile;
    const char *checkpoint;
} cleat_member;

typedef struct cleat_predict_request {
    const cleat_member *members; /* [n_members], at most CLEAT_MAX_MEMBERS */
    size_t n_members;
    const char *data, *out; /* as for cleat_predict */
    /* "submission": the file of a competition (rna_transformer: FOLDER/submission.csv, five structures), with one
     * member of five passes with dropout, seeds 1 to 5; NULL: the files of the family. */
    const char *format;
    /* Images: the mean over each image and its mirror image, and, if the training had them, over vertical flips
     * (data.flip_vertical) and quarter turns (data.turn). */
    bool flips;
    /* A series: forecasts from every row that has enough rows before it; else only the next steps after the last row of
     * each series. */
    bool all;
    /* Folder for examples.json with the first 100 predictions, for cleat_report_options.drawings, and for images with
     * the outlines of masks; NULL: none. CLEAT_ERR_NOT_SUPPORTED: the family has no examples. */
    const char *drawings;
    struct cleat_ranks *ranks; /* as for cleat_predict_ranks; NULL: alone */
} cleat_predict_request;

/* Combines the predictions of all members, of which one is on the device at a time: the mean of probabilities (classes;
 * tags of each token; pixels), of numbers, or of forecasts; of RNA structures, which lie in different frames, the one
 * with the least sum of RMSD to the others. Equal predictions keep their bits. Each
 * member reads the data with its own preprocessing. Errors as of cleat_predict, and CLEAT_ERR_ARGUMENT: models of
 * different families, or with other labels, sizes, or for series and tags another preprocessing; the message names the
 * difference. */
CLEAT_API cleat_status cleat_predict_members(const cleat_predict_request *request, size_t *count, cleat_error *error);

/* cleat_evaluate_ranks for the combined predictions of members [n]. The data are those of the first. The loss and its
 * terms are means over the members, the metrics those of the combination; RNA: `tm_best` is the best TM-score of the
 * first five members, averaged over the chains, as the competition computes it. *table (may be NULL) receives what was
 * found for each class, if the status is CLEAT_OK or CLEAT_ERR_NAN; the caller frees it with cleat_class_table_free. */
CLEAT_API cleat_status cleat_evaluate_members(const cleat_member *members, size_t n, const char *split,
                                              const char *path, struct cleat_ranks *ranks, cleat_metrics *metrics,
                                              cleat_class_table *table, cleat_error *error);

/* Evaluates each fold of a cross-validation, metrics [n], on its validation samples, data.fold of data.folds of its
 * profile, and writes the predictions of all these samples into folder `out`: each is predicted by the model that was
 * not trained on it. */
CLEAT_API cleat_status cleat_evaluate_folds(const cleat_member *folds, size_t n, const char *out,
                                            cleat_metrics *metrics, cleat_error *error);

/* Scales a learning rate chosen for base_batch samples per optimizer step to `batch` samples:
 *   none:   learning_rate
 *   linear: learning_rate * batch / base_batch (Goyal et al., "Accurate, Large Minibatch SGD", 2017)
 *   sqrt:   learning_rate * sqrt(batch / base_batch) (Krizhevsky, "One weird trick", 2014) */
CLEAT_API double cleat_scaled_learning_rate(cleat_lr_scaling scaling, double learning_rate, int64_t base_batch,
                                            int64_t batch);

/* Learning rate of optimizer step `step` (from 0) of a run of `profile` with `steps_per_epoch` steps per
 * epoch: scaled to the effective batch size, then warm-up and schedule. It does not depend on the device.
 * Errors: a warm-up that would decrease; a minimum above the peak. */
CLEAT_API cleat_status cleat_learning_rate(const cleat_profile *profile, int64_t steps_per_epoch, int64_t step,
                                           double *rate, cleat_error *error);

/* Length of the warm-up of such a run in optimizer steps. A warm-up that is at least as long as the run is
 * shortened to a tenth of the run. Errors as above. */
CLEAT_API cleat_status cleat_warmup_steps(const cleat_profile *profile, int64_t steps_per_epoch, int64_t *steps,
                                          cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif
