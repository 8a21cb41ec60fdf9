/* Profiles: what to train and how, as an INI file.
 *
 * Tables give each key its type, range, default and help: that of the run (src/profile/schema.c) and those
 * of the model families (src/models); validation, the help text and the resolved dump are made from them.
 * model.type says which family's keys a profile has; it may stand behind them. Reading and `--set
 * section.key=value` obey the same rules and give the same errors: the place, the line's text, what is
 * allowed, the nearest known name.
 *
 * Sections and keys: cleat_profile_help. Lines starting with # or ; are comments, as is what follows " ;" on
 * a line. A line may have 196 characters; one that ends in a backslash goes on in the next. Relative paths
 * are relative to the current directory of the process, not to the profile. */
#ifndef CLEAT_PROFILE_H
#define CLEAT_PROFILE_H

#include "cleat/models.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cleat_lr_scaling {
    CLEAT_LR_SCALING_NONE,
    CLEAT_LR_SCALING_LINEAR,
    CLEAT_LR_SCALING_SQRT,
} cleat_lr_scaling;
typedef enum cleat_schedule_type {
    CLEAT_SCHEDULE_CONSTANT,
    CLEAT_SCHEDULE_COSINE,
    CLEAT_SCHEDULE_STEP,
} cleat_schedule_type;
typedef enum cleat_checkpointing {
    CLEAT_CHECKPOINTING_AUTO,
    CLEAT_CHECKPOINTING_FALSE,
    CLEAT_CHECKPOINTING_TRUE,
} cleat_checkpointing;
typedef enum cleat_budget_policy {
    CLEAT_BUDGET_FIT,  /* a schedule too long for run.time_budget is shortened once, at the run's beginning */
    CLEAT_BUDGET_STOP, /* the run stops in time and goes on with another budget */
} cleat_budget_policy;

/* When a device is tested for correct results before a run (cleat_self_check). */
typedef enum cleat_self_check_policy {
    CLEAT_SELF_CHECK_ONCE, /* for each device, driver, set of kernels, model type and precision */
    CLEAT_SELF_CHECK_ALWAYS,
    CLEAT_SELF_CHECK_NEVER,
} cleat_self_check_policy;

/* The settings of a run. `data` points to the settings of the model's family, which begin with those every
 * family has; the others are the family's own business (src/models). */
typedef struct cleat_profile {
    int type; /* model.type: the family's index; changed by reading and cleat_profile_set only */
    const cleat_model_class *family;
    cleat_data_settings *data; /* the profile's */
    struct {
        int64_t epochs;
        int64_t batch_size;                  /* samples a micro-batch, or CLEAT_AUTO */
        int64_t effective_batch_size;        /* samples an optimizer step, or CLEAT_AUTO */
        int64_t gradient_accumulation_steps; /* micro-batches an optimizer step, or CLEAT_AUTO */
        cleat_int_list bucket_batch_sizes;   /* samples a micro-batch, one for each of data.buckets */
        double learning_rate;
        int64_t base_batch_size; /* CLEAT_NONE: not given */
        int lr_scaling;          /* cleat_lr_scaling */
        int64_t warmup_epochs, warmup_steps;
        double warmup_start_lr;
        int schedule; /* cleat_schedule_type */
        int64_t step_epochs;
        double step_gamma, min_learning_rate;
        int precision;                      /* cleat_precision */
        int64_t loss_scale;                 /* f16: a power of two that a run starts with, or CLEAT_AUTO */
        int64_t loss_scale_growth_interval; /* f16: steps after which it is doubled */
        int gradient_checkpointing;         /* cleat_checkpointing */
        double max_grad_norm;               /* CLEAT_NONE: no clipping */
        double weight_decay, beta1, beta2, eps;
        double average_decay; /* decay of the parameter average over epochs; CLEAT_NONE: off */
    } train;
    struct {
        int64_t num_workers; /* or CLEAT_AUTO */
        bool pin_memory;
        int64_t prefetch_factor; /* batches prefetched per worker */
        bool persistent_workers;
    } loader;
    struct {
        char device[CLEAT_PROFILE_TEXT]; /* as cleat_device_open takes it */
        int64_t seed;
        char out[CLEAT_PROFILE_TEXT]; /* the run's folder */
        double max_memory_usage;      /* fraction of the device's free memory */
        int64_t checkpoint_every_epochs, checkpoint_every_minutes;
        int64_t keep_checkpoints;
        int64_t evaluate_every_epochs;
        /* evaluations without improvement before the run ends; CLEAT_NONE: never */
        int64_t early_stopping_patience;
        char metric[64];     /* chooses `best` and ends the run early */
        int64_t time_budget; /* seconds, of all processes of the run together; CLEAT_NONE: none */
        int budget;          /* cleat_budget_policy */
        int64_t log_every_steps;
        bool check_finite; /* finite check in every step */
        int self_check;    /* cleat_self_check_policy */
    } run;
    struct cleat_profile_keys *keys; /* the tables of settings, and where each value was given; internal */
} cleat_profile;

/* A profile of defaults. The caller destroys it. */
CLEAT_API cleat_status cleat_profile_create(cleat_profile **profile, cleat_error *error);
/* A copy that shares nothing with `profile`. The caller destroys it. */
CLEAT_API cleat_status cleat_profile_clone(const cleat_profile *profile, cleat_profile **copy, cleat_error *error);
CLEAT_API void cleat_profile_destroy(cleat_profile *profile);

/* Reads `path`, applies the assignments ("section.key=value") [count] in order, and checks the whole. All
 * that a program needs. */
CLEAT_API cleat_status cleat_profile_load(const char *path, const char *const *assignments, size_t count,
                                          cleat_profile **profile, cleat_error *error);

/* The steps of cleat_profile_load. Reading and setting judge each value by itself. A failed cleat_profile_set
 * leaves the profile as it was; after a failed reading it is good for destroying only. `name` stands for the
 * file in messages. */
CLEAT_API cleat_status cleat_profile_read(cleat_profile *profile, const char *path, cleat_error *error);
CLEAT_API cleat_status cleat_profile_read_text(cleat_profile *profile, const char *name, const char *text, size_t size,
                                               cleat_error *error);
CLEAT_API cleat_status cleat_profile_set(cleat_profile *profile, const char *assignment, cleat_error *error);
/* Checks for values that contradict one another, are missing, or are not supported by this version. */
CLEAT_API cleat_status cleat_profile_check(const cleat_profile *profile, cleat_error *error);
/* Checks that apply to training and planning only, in addition to cleat_profile_check: a loss scale where
 * train.precision has none. cleat_train and cleat_fit_describe call it first; evaluation and prediction
 * accept such a profile. */
CLEAT_API cleat_status cleat_profile_check_training(const cleat_profile *profile, cleat_error *error);

/* Writes the value of "section.key" to `text` [size], as the dump prints it. CLEAT_ERR_NOT_FOUND: no such
 * key. */
CLEAT_API cleat_status cleat_profile_get(const cleat_profile *profile, const char *name, char *text, size_t size,
                                         cleat_error *error);
/* The profile as an INI text with comments, every key with its value: loading it gives the same profile. A
 * run first writes what `auto` became into the fields. The caller frees *text with free(). */
CLEAT_API cleat_status cleat_profile_dump(const cleat_profile *profile, char **text, cleat_error *error);
/* The dump, written to a file (a temporary name, synced, renamed). */
CLEAT_API cleat_status cleat_profile_write(const cleat_profile *profile, const char *path, cleat_error *error);
/* Every section and key with type, range, default and meaning, for --help. The caller frees *text with
 * free(). */
CLEAT_API cleat_status cleat_profile_help(char **text, cleat_error *error);

/* A hash (32 hexadecimal digits and a zero) of the settings that decide which bits a run computes: not of
 * devices, folders, workers, logging, or when to checkpoint and stop; nor of how a window is cut into
 * micro-batches or what is recomputed, which change rounding only. */
CLEAT_API void cleat_profile_hash(const cleat_profile *profile, char text[33]);
/* Writes those settings of `now` that differ from `then` to `text`, as "train.epochs = 40 (was 30), ...";
 * returns how many. */
CLEAT_API size_t cleat_profile_differences(const cleat_profile *then, const cleat_profile *now, char *text,
                                           size_t size);

/* Writes the name of the i-th setting that decides what the model's parameters are, or were trained for,
 * as "section.key", to `name`; false behind the last one. */
CLEAT_API bool cleat_profile_shaping_key(const cleat_profile *profile, size_t i, char *name, size_t size);

/* Samples an optimizer step: effective_batch_size, or where that is auto batch_size x
 * gradient_accumulation_steps, or 8 where batch_size is auto too. It does not depend on the card. */
CLEAT_API int64_t cleat_profile_effective_batch(const cleat_profile *profile);
/* The loss scale that a run in f16 starts with: train.loss_scale, or 65536 where that is auto. */
CLEAT_API int64_t cleat_profile_loss_scale(const cleat_profile *profile);
/* Sets the longest length and removes longer buckets. */
CLEAT_API void cleat_profile_shorten(cleat_profile *profile, int64_t length);
/* True if larger values of run.metric are better. */
CLEAT_API bool cleat_profile_metric_ascends(const cleat_profile *profile);

/* Creates the model of the family with its settings. The caller destroys it; the profile need not outlive
 * it. */
CLEAT_API cleat_status cleat_profile_create_model(const cleat_profile *profile, cleat_model **model,
                                                  cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif
