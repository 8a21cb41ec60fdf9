/* Training, evaluation, prediction, and the proof that a device computes correctly. */
#ifndef CLEAT_TRAIN_H
#define CLEAT_TRAIN_H

#include "cleat/device.h"
#include "cleat/graph.h"
#include "cleat/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CLEAT_FIGURES = 48, CLEAT_PATH = 1280 };

/* Named numbers: loss terms and metrics. */
typedef struct cleat_figure {
    char name[48];
    double value;
} cleat_figure;

typedef struct cleat_figures {
    size_t count;
    cleat_figure items[CLEAT_FIGURES];
} cleat_figures;

/* The value of a figure; NaN where there is none of that name. */
CLEAT_API double cleat_figures_get(const cleat_figures *figures, const char *name);

typedef struct cleat_train_options {
    const char *out; /* the run's folder; NULL: profile->run.out, and where that is empty runs/MODEL-DATE-TIME */
    bool resume;     /* go on from the folder's last checkpoint */
    const volatile int
        *stop; /* becomes non-zero: finish the step, checkpoint, return CLEAT_ERR_INTERRUPTED; may be NULL */
    void (*print)(void *user, const char *text); /* progress, brings its own line ends; may be NULL */
    void *user;
    bool terminal; /* draw a bar */
    int width;     /* columns of the terminal */
} cleat_train_options;

/* Device memory, bytes. */
typedef struct cleat_memory_figures {
    int64_t planned;   /* before anything was allocated */
    int64_t allocated; /* at the end; it equals `planned` */
    int64_t peak;      /* most there ever was in this process: more where a first try was too large */
    int64_t category_bytes[CLEAT_CATEGORIES];
} cleat_memory_figures;

typedef struct cleat_train_report {
    char folder[CLEAT_PATH]; /* of the run */
    int64_t epochs, steps;   /* done, of the whole run */
    int64_t best_step;
    double best_metric;
    double seconds;            /* of this process, from the call on */
    double seconds_first_step; /* from the call until the first optimizer step was done on the device */
    cleat_memory_figures memory;
    cleat_figures last, best; /* the last evaluation, and the best one of this process */
    bool stopped_early;
    /* From measured steps; 0 where there were too few. */
    double step_seconds;    /* mean of an epoch's steps */
    double epoch_seconds;   /* an epoch's steps */
    double run_seconds;     /* the whole run from its beginning, with evaluations and checkpoints */
    int64_t runs_in_budget; /* such runs that fit into run.time_budget, 5 % kept in reserve; 0 without one */
    int64_t epochs_planned; /* train.epochs, or fewer where run.budget = fit shortened the schedule */
} cleat_train_report;

/* Trains as the profile says. `report` is filled as far as the run came, also on CLEAT_ERR_INTERRUPTED,
 * CLEAT_ERR_TIME_UP and CLEAT_ERR_NAN; the run's folder then holds a checkpoint to resume from (the one
 * before the bad step, on CLEAT_ERR_NAN). Folder: resolved.ini, metrics.jsonl, ckpt-*, last, best.
 *
 * With run.time_budget the run stops before the next step could end, its checkpoint included, beyond the budget;
 * CLEAT_ERR_TIME_UP at once where the budget is used up already. */
CLEAT_API cleat_status cleat_train(const cleat_profile *profile, const cleat_train_options *options,
                                   cleat_train_report *report, cleat_error *error);

/* Loss terms and metrics of a checkpoint (a checkpoint folder, or a run folder: its best) over the samples of
 * a split of profile->data.path ("train", "val", "test"; "all" for every sample). */
CLEAT_API cleat_status cleat_evaluate(const cleat_profile *profile, const char *checkpoint, const char *split,
                                      cleat_figures *figures, cleat_error *error);

/* Runs a checkpoint over all samples of `data` (no references needed) and writes the predictions into `out`. */
CLEAT_API cleat_status cleat_predict(const cleat_profile *profile, const char *checkpoint, const char *data,
                                     const char *out, size_t *count, cleat_error *error);

/* One comparison of a reference trajectory. */
typedef struct cleat_verification {
    char name[80];    /* "output", "loss", "grad/emb.weight", ... */
    double deviation; /* largest relative deviation */
    double tolerance;
    bool ok;
} cleat_verification;

typedef struct cleat_verify_report {
    size_t count, failed;
    cleat_verification *items; /* [count]; free with cleat_verify_free */
} cleat_verify_report;

/* Repeats a reference trajectory (safetensors: input, target, lengths, param/..., grad/..., after/..., loss)
 * on a device and compares: output and loss curve within 1e-5, each gradient within 1e-4 (norm of the
 * difference over the larger of its own norm and a millionth of the whole gradient's), final parameters
 * within 1e-4 of the whole. CLEAT_OK says it was run: see report->failed. */
CLEAT_API cleat_status cleat_verify(const char *device, const char *file, cleat_verify_report *report,
                                    cleat_error *error);
CLEAT_API void cleat_verify_free(cleat_verify_report *report);

typedef struct cleat_bench_result {
    char workload[32], device[128];
    double ms_median, ms_min, ms_max; /* of a training step */
    double samples_per_second;
    int64_t parameters, device_bytes;
    int64_t steps;
    double loss;        /* of the last step */
    double peak_rss_mb; /* of this process, so far */
} cleat_bench_result;

/* The i-th name that cleat_bench knows; NULL behind the last. */
CLEAT_API const char *cleat_bench_workload(size_t i);
/* Times training steps (forward, loss, backward, AdamW) of a workload for about `seconds`, after two warm-up
 * steps. */
CLEAT_API cleat_status cleat_bench(const char *device, const char *workload, double seconds, cleat_bench_result *result,
                                   cleat_error *error);

enum { CLEAT_BATCH_POINTS = 32 };

/* One micro-batch that was tried. */
typedef struct cleat_batch_point {
    int64_t batch;
    int64_t planned_bytes, limit_bytes; /* of the plan; that may be used: run.max_memory_usage of what is free */
    bool planned_fits;
    bool recomputed; /* activations are recomputed in backward, see train.gradient_checkpointing */
    bool ran;
    double ms_median, ms_min, ms_max; /* of a training step */
    double samples_per_second;
    int64_t allocated_bytes; /* most there were on the device */
    char error[256];         /* why it did not run; "" where it did */
} cleat_batch_point;

typedef struct cleat_batch_search {
    size_t count;
    cleat_batch_point points[CLEAT_BATCH_POINTS]; /* ascending by batch */
    int64_t length;                               /* all samples have it: the longest of the data ... */
    bool data_known;                              /* ... or where data.path is not there, the longest of the profile */
    int64_t window;                               /* samples an optimizer step */
    int64_t largest;                              /* micro-batch that ran; 0 where none did, as in the following */
    int64_t best;                                 /* with the most samples a second */
    int64_t cliff;       /* the smallest above `best` that is more than 15 % slower, even its fastest step; 0: none */
    int64_t recommended; /* the smallest within 3 % of the best */
    char why[256];       /* it is recommended */
} cleat_batch_search;

typedef struct cleat_batch_search_options {
    double seconds;                                            /* of timed steps a point, at least 3 steps; 0: 2 s */
    void (*point)(void *user, const cleat_batch_point *point); /* after each try, in their order; may be NULL */
    void *user;
} cleat_batch_search_options;

/* Finds the largest micro-batch by training steps (forward, loss, backward, AdamW) at the longest length, and how fast
 * each is. Doubles up to the effective batch; where one does not fit or fails, looks between it and the one before.
 * Only micro-batches are tried that full windows are cut into. Each runs in a process of its own, so that one that is
 * killed, crashes or hangs is a point with an error. `options` NULL: the defaults. The calling process must not have
 * used OpenCL and must have one thread only (fork). `result` is filled as far as the search came, whatever the status.
 * CLEAT_ERR_FIT or CLEAT_ERR_DEVICE_MEMORY: not even a single sample trains. */
CLEAT_API cleat_status cleat_find_batch(const cleat_profile *profile, const cleat_batch_search_options *options,
                                        cleat_batch_search *result, cleat_error *error);

/* learning_rate was chosen for base_batch samples an optimizer step; this is what it becomes for `batch` samples.
 *   none:   learning_rate
 *   linear: learning_rate * batch / base_batch        (Goyal et al., "Accurate, Large Minibatch SGD", 2017)
 *   sqrt:   learning_rate * sqrt(batch / base_batch)  (Krizhevsky, "One weird trick", 2014) */
CLEAT_API double cleat_scaled_learning_rate(cleat_lr_scaling scaling, double learning_rate, int64_t base_batch,
                                            int64_t batch);

/* The learning rate of optimizer step `step` (the first is 0) of a run of `profile` whose epochs have
 * `steps_per_epoch` steps: scaled to the effective batch, then warm-up and schedule. No card enters. Errors: a
 * warm-up as long as the run or longer, or one that would fall; a floor above the peak. */
CLEAT_API cleat_status cleat_learning_rate(const cleat_profile *profile, int64_t steps_per_epoch, int64_t step,
                                           double *rate, cleat_error *error);

/* How fast a device is in cleat's own kernels: a linear layer, an addition larger than caches, launches. Takes less
 * than a second the first time; the result is kept in the cache folder ($CLEAT_CACHE_DIR) for the next. Works in little
 * memory (at most half of what is free, up to 64 MiB) and releases it. */
CLEAT_API cleat_status cleat_rates_measure(cleat_device *device, cleat_rates *rates, cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif
