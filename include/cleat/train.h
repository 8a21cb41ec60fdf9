/* Training, evaluation, prediction, and the proof that a device computes correctly. */
#ifndef CLEAT_TRAIN_H
#define CLEAT_TRAIN_H

#include "cleat/device.h"
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

typedef struct cleat_train_report {
    char folder[CLEAT_PATH]; /* of the run */
    int64_t epochs, steps;   /* done, of the whole run */
    int64_t best_step;
    double best_metric;
    double seconds;            /* of this process, from the call on */
    double seconds_first_step; /* from the call until the first optimizer step was done on the device */
    int64_t device_bytes;      /* allocated = planned */
    cleat_figures last, best;  /* the last evaluation, and the best one of this process */
    bool stopped_early;
} cleat_train_report;

/* Trains as the profile says. `report` is filled as far as the run came, also on CLEAT_ERR_INTERRUPTED,
 * CLEAT_ERR_TIME_UP and CLEAT_ERR_NAN; the run's folder then holds a checkpoint to resume from (the one
 * before the bad step, on CLEAT_ERR_NAN). Folder: resolved.ini, metrics.jsonl, ckpt-*, last, best. */
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

#ifdef __cplusplus
}
#endif
#endif
