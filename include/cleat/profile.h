/* Profiles: INI files that define what to train and how.
 *
 * Tables give each key its type, range, default and help text: one table for the settings of a run
 * (src/run/profile/schema.c) and one for each model family (src/models). Validation, the help text and the
 * resolved dump are generated from them. model.type selects the family whose keys a profile may contain; it
 * may follow those keys. Reading a file and `--set section.key=value` apply the same rules and give the same
 * errors, with the place, the text of the line, the allowed values and the nearest known name.
 *
 * Sections and keys: cleat_profile_help. Lines that start with # or ; are comments, and so is the text after
 * " ;" in a line. A line has at most 196 characters; a backslash at its end continues it on the next line.
 * Relative paths are relative to the current directory of the process, not to the profile. */
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
    CLEAT_SCHEDULE_LINEAR,
} cleat_schedule_type;
typedef enum cleat_checkpointing {
    CLEAT_CHECKPOINTING_AUTO,
    CLEAT_CHECKPOINTING_FALSE,
    CLEAT_CHECKPOINTING_TRUE,
    CLEAT_CHECKPOINTING_SELECTIVE, /* only outputs of layer normalization, and of GELU in f32 */
} cleat_checkpointing;
typedef enum cleat_budget_policy {
    CLEAT_BUDGET_FIT,  /* shortens a schedule too long for run.time_budget once, at the start of the run */
    CLEAT_BUDGET_STOP, /* the run stops within the budget and can be resumed with another one */
} cleat_budget_policy;

/* Limits in seconds, written as 30h/12h; CLEAT_NONE: no limit. */
typedef struct cleat_time_budget {
    int64_t total;   /* summed over all processes of the run */
    int64_t session; /* of each process */
} cleat_time_budget;

/* When a training, an evaluation or a prediction checks on its first batches that the device computes correct
 * results. */
typedef enum cleat_self_check_policy {
    CLEAT_SELF_CHECK_ONCE, /* once for each device, driver and program */
    CLEAT_SELF_CHECK_ALWAYS,
    CLEAT_SELF_CHECK_NEVER,
} cleat_self_check_policy;

/* The settings of a run. `data` points to the settings of the model family: the members that all families
 * share, followed by those of the family (src/models). */
typedef struct cleat_profile {
    int type; /* model.type: index of the family; changed only by reading and by cleat_profile_set */
    const cleat_model_class *family;
    cleat_data_settings *data;     /* owned by the profile */
    char init[CLEAT_PROFILE_TEXT]; /* model.init: weights from which a new run starts; "": random ones */
    struct {
        int64_t epochs;
        int64_t batch_size;                  /* samples per micro-batch, or CLEAT_AUTO */
        int64_t effective_batch_size;        /* samples per optimizer step, or CLEAT_AUTO */
        int64_t gradient_accumulation_steps; /* micro-batches per optimizer step, or CLEAT_AUTO */
        cleat_int_list bucket_batch_sizes;   /* samples per micro-batch, one value for each of data.buckets */
        double learning_rate;
        int64_t base_batch_size; /* CLEAT_NONE: not given */
        int lr_scaling;          /* cleat_lr_scaling */
        int64_t warmup_epochs, warmup_steps;
        double warmup_ratio; /* at most one of the three is not 0 */
        double warmup_start_lr;
        int schedule; /* cleat_schedule_type */
        int64_t step_epochs;
        double step_gamma, min_learning_rate;
        int precision;                      /* cleat_precision */
        int64_t loss_scale;                 /* f16: initial loss scale, a power of two, or CLEAT_AUTO */
        int64_t loss_scale_growth_interval; /* f16: steps after which the loss scale is doubled */
        int gradient_checkpointing;         /* cleat_checkpointing */
        double max_grad_norm;               /* CLEAT_NONE: no clipping */
        double weight_decay, beta1, beta2, eps;
        int optimizer;   /* cleat_optimizer_kind */
        double momentum; /* SGD */
        double lion_beta2;
        bool nesterov;
        double average_decay;       /* decay of the parameter average over epochs; CLEAT_NONE: off */
        cleat_param_options params; /* of fine-tuning; its learning_rate is not set */
    } train;
    struct {
        int64_t num_workers; /* or CLEAT_AUTO */
        bool pin_memory;
        int64_t prefetch_factor; /* batches prefetched per worker */
        bool persistent_workers;
    } loader;
    struct {
        char device[CLEAT_PROFILE_TEXT]; /* device name in the form of cleat_device_open */
        int64_t seed;
        char out[CLEAT_PROFILE_TEXT]; /* run folder */
        double max_memory_usage;      /* fraction of the device's free memory */
        int64_t checkpoint_every_epochs, checkpoint_every_minutes;
        int64_t keep_checkpoints;
        int64_t evaluate_every_epochs;
        /* evaluations without improvement before the run ends; CLEAT_NONE: never */
        int64_t early_stopping_patience;
        char metric[64]; /* selects the best checkpoint; used for early stopping */
        cleat_time_budget time_budget;
        int budget; /* cleat_budget_policy */
        int64_t log_every_steps;
        double monitor;    /* seconds between two records of system.jsonl; CLEAT_NONE: no monitor */
        bool check_finite; /* finite check in every step */
        int self_check;    /* cleat_self_check_policy */
        bool tensorboard;  /* write an event file for TensorBoard during training */
        /* steps whose kernels are timed: "wait=5,warmup=2,active=3,repeat=1", or "none" */
        char trace[128];
        bool resume_other_data; /* a run may resume although its data have changed */
    } run;
    struct {
        cleat_int_list shares;     /* relative shares of a global batch, one per rank; none: measured */
        int64_t check_every_steps; /* steps between two comparisons of the replicas; CLEAT_NONE: never */
        double timeout;            /* seconds to wait for another rank in a step */
    } distribute;
    /* tables of settings, and the place where each value was set; internal */
    struct cleat_profile_keys *keys;
} cleat_profile;

/* Creates a profile of default values. The caller destroys it. */
CLEAT_API cleat_status cleat_profile_create(cleat_profile **profile, cleat_error *error);
/* Creates a deep copy of `profile`. The caller destroys it. */
CLEAT_API cleat_status cleat_profile_clone(const cleat_profile *profile, cleat_profile **copy, cleat_error *error);
CLEAT_API void cleat_profile_destroy(cleat_profile *profile);

/* Reads `path`, applies assignments [count] ("section.key=value") in order, and checks the whole profile.
 * Most programs need only this function. With model.init the check is left to cleat_profile_apply_init
 * (cleat/train.h), since the weights determine settings. The caller destroys the profile. */
CLEAT_API cleat_status cleat_profile_load(const char *path, const char *const *assignments, size_t count,
                                          cleat_profile **profile, cleat_error *error);

/* Finds the profile that a user named: `name` itself if that file exists, else NAME.ini, else NAME or
 * NAME.ini in the profile folders, where a leading "profiles/" of the name is ignored. The profile folders
 * are ./profiles, ../share/cleat/profiles and ../../share/cleat/profiles of the folder of this library or
 * program, the one of the installation, and, in the build folder of the source tree, that of the source tree.
 * Writes its path to `path` [size]. CLEAT_ERR_NOT_FOUND: the message lists the folders searched and the
 * nearest names. CLEAT_ERR_ARGUMENT: the path is longer than `size`. */
CLEAT_API cleat_status cleat_profile_find(const char *name, char *path, size_t size, cleat_error *error);

/* A profile in one of the profile folders. */
typedef struct cleat_profile_entry {
    char name[64];                 /* file name without ".ini" */
    char path[CLEAT_PROFILE_TEXT]; /* file */
    char about[256];               /* first line of the file if it is a comment, else "" */
} cleat_profile_entry;

/* Lists the profiles of the profile folders, in the order of the folders and by name in each; if several have
 * the same name, only the first. The caller frees *entries [*count] with free(). */
CLEAT_API cleat_status cleat_profile_list(cleat_profile_entry **entries, size_t *count, cleat_error *error);

/* The separate steps of cleat_profile_load. Reading and setting check each value by itself. A failed
 * cleat_profile_set leaves the profile unchanged; after failed reading, the profile may only be destroyed.
 * Messages refer to the text as file `name`. */
CLEAT_API cleat_status cleat_profile_read(cleat_profile *profile, const char *path, cleat_error *error);
CLEAT_API cleat_status cleat_profile_read_text(cleat_profile *profile, const char *name, const char *text, size_t size,
                                               cleat_error *error);
CLEAT_API cleat_status cleat_profile_set(cleat_profile *profile, const char *assignment, cleat_error *error);
/* Checks for values that are contradictory, missing, or not supported by this version. */
CLEAT_API cleat_status cleat_profile_check(const cleat_profile *profile, cleat_error *error);
/* Additional checks for training and planning only: rejects a loss scale if train.precision does not use one.
 * cleat_train and cleat_fit_describe call it first; evaluation and prediction accept such a profile. */
CLEAT_API cleat_status cleat_profile_check_training(const cleat_profile *profile, cleat_error *error);

/* Writes the value of the setting `name` ("section.key") to `text` [size], in the form of the dump.
 * CLEAT_ERR_NOT_FOUND: unknown key. */
CLEAT_API cleat_status cleat_profile_get(const cleat_profile *profile, const char *name, char *text, size_t size,
                                         cleat_error *error);
/* Returns the profile as INI text with comments, and with the value of every key; loading the text gives the
 * same profile. Before its dump, a run replaces `auto` values by the resolved ones. The caller frees *text
 * with free(). */
CLEAT_API cleat_status cleat_profile_dump(const cleat_profile *profile, char **text, cleat_error *error);
/* Sets `name` ("section.key") to `value` in the file `path`, atomically. One line differs: that of the key, or a new
 * one if the file lacks the key (two if it lacks the section); comments and everything else stay byte for byte.
 * CLEAT_ERR_PROFILE: the file or the value is invalid; the file is then unchanged. */
CLEAT_API cleat_status cleat_profile_edit(const char *path, const char *name, const char *value, cleat_error *error);
/* Returns the help text: every section and key with type, range, default and meaning. The caller frees *text
 * with free(). */
CLEAT_API cleat_status cleat_profile_help(char **text, cleat_error *error);

/* Hash, as 32 hexadecimal digits and a zero, of the settings that determine which bits a run computes. It
 * excludes devices, folders, workers, logging, and when to write checkpoints and to stop. It also excludes
 * recomputation and the division of a global batch into micro-batches, which change only rounding. */
CLEAT_API void cleat_profile_hash(const cleat_profile *profile, char text[33]);
/* Writes the settings of the hash whose values in `now` differ from those in `then` to `text` [size], as
 * "train.epochs = 40 (was 30), ...". Returns their number. */
CLEAT_API size_t cleat_profile_differences(const cleat_profile *then, const cleat_profile *now, char *text,
                                           size_t size);

/* Writes the name ("section.key") of the i-th setting that determines the model's parameters, or what they
 * were trained for, to `name` [size]; false past the last one. */
CLEAT_API bool cleat_profile_shaping_key(const cleat_profile *profile, size_t i, char *name, size_t size);
/* Writes the name ("section.key") of the i-th setting of the profile's family to `name` [size]; false past the last
 * one. */
CLEAT_API bool cleat_profile_key(const cleat_profile *profile, size_t i, char *name, size_t size);

/* Writes where the setting `name` ("section.key") got its value to `text` [size]: "FILE:LINE", "--set" for an
 * assignment, or "default". CLEAT_ERR_NOT_FOUND: the profile's family has no such key. */
CLEAT_API cleat_status cleat_profile_origin(const cleat_profile *profile, const char *name, char *text, size_t size,
                                            cleat_error *error);
/* Returns the sentence that describes the setting `name`, which lives as long as the profile; NULL: the profile's
 * family has no such key. */
CLEAT_API const char *cleat_profile_key_help(const cleat_profile *profile, const char *name);

/* Samples per optimizer step: effective_batch_size; if that is auto, batch_size x
 * gradient_accumulation_steps; 8 if batch_size is also auto. It does not depend on the device. */
CLEAT_API int64_t cleat_profile_effective_batch(const cleat_profile *profile);
/* Initial loss scale of a run in f16: train.loss_scale, or 65536 if that is auto. */
CLEAT_API int64_t cleat_profile_loss_scale(const cleat_profile *profile);
/* Sets the maximum length and removes longer buckets. */
CLEAT_API void cleat_profile_shorten(cleat_profile *profile, int64_t length);
/* True if larger values of run.metric are better. */
CLEAT_API bool cleat_profile_metric_ascends(const cleat_profile *profile);

/* Creates the model of the profile's family with its settings. The caller destroys it. The profile need not
 * outlive it. */
CLEAT_API cleat_status cleat_profile_create_model(const cleat_profile *profile, cleat_model **model,
                                                  cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif
