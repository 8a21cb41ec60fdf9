/* Profiles: what to train and how, as an INI file.
 *
 * One schema table (src/profile/schema.c) gives each key its type, range, default and help; validation, the
 * help text and the resolved dump are made from it. Reading and `--set section.key=value` obey the same rules
 * and give the same errors: the place, the line's text, what is allowed, the nearest known name.
 *
 * Sections and keys: cleat_profile_help. Lines starting with # or ; are comments, as is what follows " ;" on
 * a line. A line may have 196 characters; one that ends in a backslash goes on in the next. Relative paths
 * are relative to the current directory of the process, not to the profile. */
#ifndef CLEAT_PROFILE_H
#define CLEAT_PROFILE_H

#include "cleat/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Values that stand for a word. `auto`: the run decides, and says what it became. `none`: off. */
enum { CLEAT_AUTO = -1, CLEAT_NONE = 0 };

enum { CLEAT_PROFILE_TEXT = 1024, CLEAT_PROFILE_LIST = 16 };

typedef enum cleat_model_type {
    CLEAT_MODEL_RNA_TRANSFORMER,
    CLEAT_MODEL_TEXT_CLASSIFIER,
    CLEAT_MODEL_TEXT_TAGGER,
    CLEAT_MODEL_SERIES_LSTM,
    CLEAT_MODEL_SERIES_TRANSFORMER,
    CLEAT_MODEL_SERIES_DENSE,
    CLEAT_MODEL_IMAGE_RESNET,
    CLEAT_MODEL_MASK_SEGFORMER,
    CLEAT_MODEL_EMBERFORMER,
} cleat_model_type;
typedef enum cleat_resnet_depth { CLEAT_RESNET_18, CLEAT_RESNET_34 } cleat_resnet_depth;
typedef enum cleat_resnet_stem { CLEAT_STEM_LARGE, CLEAT_STEM_SMALL } cleat_resnet_stem;
typedef enum cleat_backbone { CLEAT_BACKBONE_B0, CLEAT_BACKBONE_B1, CLEAT_BACKBONE_B2 } cleat_backbone;
typedef enum cleat_pooling { CLEAT_POOLING_MEAN, CLEAT_POOLING_FIRST } cleat_pooling;
typedef enum cleat_weighting { CLEAT_WEIGHTING_NONE, CLEAT_WEIGHTING_BALANCED } cleat_weighting;
typedef enum cleat_rna_head { CLEAT_RNA_HEAD_RIGID_FRAMES, CLEAT_RNA_HEAD_ABSOLUTE } cleat_rna_head;
typedef enum cleat_position_kind { CLEAT_POSITIONS_START, CLEAT_POSITIONS_BOTH_ENDS } cleat_position_kind;
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
typedef enum cleat_precision {
    CLEAT_PRECISION_AUTO,
    CLEAT_PRECISION_F32,
    CLEAT_PRECISION_F16,
    CLEAT_PRECISION_BF16,
} cleat_precision;
typedef enum cleat_checkpointing {
    CLEAT_CHECKPOINTING_AUTO,
    CLEAT_CHECKPOINTING_FALSE,
    CLEAT_CHECKPOINTING_TRUE,
} cleat_checkpointing;
typedef enum cleat_budget_policy {
    CLEAT_BUDGET_FIT,  /* a schedule too long for run.time_budget is shortened once, at the run's beginning */
    CLEAT_BUDGET_STOP, /* the run stops in time and goes on with another budget */
} cleat_budget_policy;

/* Whether a device first proves that it computes rightly (cleat_self_check). */
typedef enum cleat_self_check_policy {
    CLEAT_SELF_CHECK_ONCE, /* for each device, driver, set of kernels, model type and precision */
    CLEAT_SELF_CHECK_ALWAYS,
    CLEAT_SELF_CHECK_NEVER,
} cleat_self_check_policy;

typedef struct cleat_int_list {
    int64_t count; /* CLEAT_AUTO: the run decides */
    int64_t values[CLEAT_PROFILE_LIST];
} cleat_int_list;

/* Fields that the model's type gives no meaning hold their defaults. */
typedef struct cleat_profile {
    struct {
        int type; /* cleat_model_type */
        int64_t d_model, heads, layers, d_ff;
        int64_t hidden; /* width of an LSTM's or a dense network's layers */
        double dropout;
        int head;      /* cleat_rna_head */
        int positions; /* cleat_position_kind */
        int pooling;   /* cleat_pooling */
        /* images */
        int depth;           /* cleat_resnet_depth */
        int stem;            /* cleat_resnet_stem */
        int64_t width;       /* channels of a residual network's first stage */
        int backbone;        /* cleat_backbone */
        int64_t stem_stride; /* of a SegFormer's first patch embedding */
        int64_t features;    /* channels that the temporal part hands to the spatial part */
        double threshold;    /* a pixel is in the mask from this probability on */
    } model;
    struct {
        char path[CLEAT_PROFILE_TEXT];
        int64_t max_length;
        double val_fraction;    /* of the samples, where the data name no split */
        cleat_int_list buckets; /* padded lengths, ascending */
        int64_t limit;          /* train on the first so many samples; CLEAT_NONE: all */
        int64_t generated;      /* molecules made here that are added to the training samples; CLEAT_NONE: no */
        double mutation, crop;  /* part of the training samples changed so */
        int64_t min_length;     /* max_length may be lowered to it where memory is short; CLEAT_NONE: it may not */
        double test_fraction;
        /* texts */
        char train_file[256], val_file[256], test_file[256];
        char text_column[128], label_column[128], id_column[128];
        char labels[CLEAT_PROFILE_TEXT], vocabulary[CLEAT_PROFILE_TEXT];
        int64_t vocabulary_size;
        bool lowercase;
        double word_dropout; /* part of the training tokens that become unknown */
        int empty_texts;     /* 0 error, 1 skip, 2 keep */
        int invalid_utf8;    /* 0 error, 1 replace */
        int bad_tags;        /* 0 error, 1 repair */
        bool cache;
        /* series */
        char time_column[128], features[CLEAT_PROFILE_TEXT], targets[CLEAT_PROFILE_TEXT];
        cleat_int_list frames; /* minutes; count CLEAT_NONE: only the file's own */
        int64_t lookback, horizon;
        int64_t stride, eval_stride;             /* steps between windows: training; validation and test */
        int anchor;                              /* cleat_series_anchor */
        int64_t season;                          /* steps, or CLEAT_NONE */
        int64_t train_rows, val_rows, test_rows; /* or CLEAT_NONE */
        int gaps;                                /* cleat_series_gaps */
        int missing;                             /* cleat_series_missing */
        /* images */
        int64_t image_size, channels; /* channels: 1, 3 or CLEAT_AUTO */
        double crop_scale;            /* training: least part of the area that is seen */
        int64_t shift;                /* training: moved by so many pixels */
        bool flip, flip_vertical, turn;
        double brightness, contrast, saturation;
        int64_t cache_mb; /* MiB of decoded images kept */
        /* maps over time */
        char inputs[CLEAT_PROFILE_TEXT], target[128];
        int64_t history, ahead; /* frames seen at most; days to the target */
        int64_t patch;
        int transform;               /* cleat_transform */
        int missing_days;            /* 0 error, 1 skip */
        int64_t val_days, test_days; /* or CLEAT_NONE */
    } data;
    struct {
        /* weights of the terms */
        double pair_distance, lddt, frame, handedness, bond_length, bond_angle, clash, base_pair, coordinate;
        double label_smoothing;
        int class_weights;      /* cleat_weighting */
        double positive_weight; /* of a mask's pixels; CLEAT_AUTO: by their share of the training part */
        double focal_gamma, dice;
    } loss;
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
        double average_decay; /* of the parameters' average over epochs; CLEAT_NONE: off */
    } train;
    struct {
        int64_t num_workers; /* or CLEAT_AUTO */
        bool pin_memory;
        int64_t prefetch_factor; /* batches ready, a worker */
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
        int64_t early_stopping_patience; /* evaluations without a better metric; CLEAT_NONE: never */
        char metric[64];                 /* chooses `best` and ends the run early */
        int64_t time_budget;             /* seconds, of all processes of the run together; CLEAT_NONE: none */
        int budget;                      /* cleat_budget_policy */
        int64_t log_every_steps;
        bool check_finite; /* every step under the watch */
        int self_check;    /* cleat_self_check_policy */
    } run;
    char **origins; /* where each value was given; internal */
} cleat_profile;

/* A profile of defaults. The caller destroys it. */
CLEAT_API cleat_status cleat_profile_create(cleat_profile **profile, cleat_error *error);
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
/* Values that contradict one another, are missing, or that this version cannot do. */
CLEAT_API cleat_status cleat_profile_check(const cleat_profile *profile, cleat_error *error);
/* What besides that matters only where something is trained or planned to be: a loss scale where train.precision has none.
 * cleat_train and cleat_fit_describe begin with it; evaluation and prediction take such a profile. */
CLEAT_API cleat_status cleat_profile_check_training(const cleat_profile *profile, cleat_error *error);

/* The value of "section.key" as text, as the dump prints it. CLEAT_ERR_NOT_FOUND where there is no such key. */
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
 * devices, folders, workers, logging, or when to checkpoint and stop; nor of how a window is cut into micro-batches or
 * what is recomputed, which change rounding only. */
CLEAT_API void cleat_profile_hash(const cleat_profile *profile, char text[33]);
/* Writes those settings of `now` that differ from `then` to `text`, as "train.epochs = 40 (was 30), ...";
 * returns how many. */
CLEAT_API size_t cleat_profile_differences(const cleat_profile *then, const cleat_profile *now, char *text,
                                           size_t size);

/* Writes the name of the i-th setting that decides what the model's parameters are, or were trained for, as "section.key", to `name`; false
 * behind the last one. */
CLEAT_API bool cleat_profile_shaping_key(const cleat_profile *profile, size_t i, char *name, size_t size);

/* Samples an optimizer step: effective_batch_size, or where that is auto batch_size x
 * gradient_accumulation_steps, or 8 where batch_size is auto too. It does not depend on the card. */
CLEAT_API int64_t cleat_profile_effective_batch(const cleat_profile *profile);
/* The loss scale that a run in f16 starts with: train.loss_scale, or 65536 where that is auto. */
CLEAT_API int64_t cleat_profile_loss_scale(const cleat_profile *profile);
/* Copies `profile` to `shorter` with data.max_length = length, and without the buckets that are longer. The copy
 * borrows what the profile owns: it must not be destroyed, nor outlive it. */
CLEAT_API void cleat_profile_shorten(const cleat_profile *profile, int64_t length, cleat_profile *shorter);
/* Whether a larger value of run.metric is a better one. */
CLEAT_API bool cleat_profile_metric_ascends(const cleat_profile *profile);

#ifdef __cplusplus
}
#endif
#endif
