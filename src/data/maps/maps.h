/* Internal definitions for maps over time: the interface between readers, preprocessing and dataset. */
#ifndef CLEAT_SRC_MAPS_H
#define CLEAT_SRC_MAPS_H

#include "cleat/maps.h"
#include "core/name_list.h"
#include "data/common/image_dataset.h"
#include "data/maps/npy.h"

extern const char *const cleat_transform_names[]; /* by cleat_transform; ends in NULL */

typedef struct cleat_maps_preprocessor {
    cleat_name_list names; /* of the channels, for ESRI grids; stacks have none */
    char *target;          /* name of the target, for ESRI grids; owned */
    size_t channels;
    cleat_transform transform;
    double *mean, *std; /* [channels], of the transformed values; owned */
    double positive;    /* fraction of 1 among the known pixels of the targets */
} cleat_maps_preprocessor;

/* Read and write FOLDER/maps.json. Numbers are preserved bit by bit. */
cleat_status cleat_maps_preprocessor_read(const char *folder, cleat_maps_preprocessor *fitted, cleat_error *error);
cleat_status cleat_maps_preprocessor_write(const char *folder, const cleat_maps_preprocessor *fitted,
                                           cleat_error *error);
void cleat_maps_preprocessor_free(cleat_maps_preprocessor *fitted);

typedef struct cleat_maps_sample {
    char *id; /* owned */
    cleat_split split;
    int64_t first, steps; /* range among all steps; ascending over the samples */
    /* index among all targets: of the sample, and of the day of its last step; -1: unknown */
    int64_t target, today;
    char *path; /* NPY: path of its stack, and number of steps there before `first`; owned */
    cleat_npy stack;
    int64_t skipped;
} cleat_maps_sample;

typedef struct cleat_maps {
    /* first, so that a cleat_dataset * can be cast to this type; common.base.count samples */
    cleat_image_dataset common;
    cleat_maps_sample *samples;
    size_t capacity;
    int64_t channels, height, width; /* of a step in its file */
    int64_t patch;
    /* [n_steps, C, H, W]: first as in the files (NaN unknown), finally transformed and standardized;
     * NULL: stacks are read for each sample */
    float *steps;
    int8_t *targets; /* [n_targets, H, W]: 0, 1, -1 unknown */
    int64_t n_steps, n_targets;
    /* stacks are kept in memory if all steps fit into this many bytes; otherwise they are read for each
     * sample */
    int64_t kept_bytes;
    bool flip, flip_vertical;
    cleat_maps_preprocessor fitted;
} cleat_maps;

/* cleat_maps_open with a limit other than its 1 GiB. */
cleat_status cleat_maps_open_within(const char *path, const cleat_maps_options *options, int64_t kept_bytes,
                                    cleat_dataset **dataset, cleat_error *error);

/* One channel of a sample's last frame, for display: `values` [height, width] of the frame in its file, in
 * the units of the transformed values; an unknown pixel has the channel's mean. *channel receives the index:
 * the target's channel if it is an input, else 0. *name (borrowed) is its name; NULL for stacks. `dataset`
 * must contain maps. */
cleat_status cleat_maps_last_frame(const cleat_dataset *dataset, size_t sample, float *values, int64_t *channel,
                                   const char **name, cleat_error *error);

/* Takes ownership of the sample's `id` and `path`, also on failure. */
cleat_status cleat_maps_add_sample(cleat_maps *maps, const cleat_maps_sample *sample, cleat_error *error);
/* Allocates the targets, and the steps if `steps`, for the sizes that are set. */
cleat_status cleat_maps_make_room(cleat_maps *maps, const char *path, bool steps, cleat_error *error);
/* Converts values [count] to 0, 1 or -1. */
void cleat_maps_set_target(const float *values, int64_t count, int8_t *target);

/* Number of elements of a step [C, H, W], and of a target [H, W]. */
int64_t cleat_maps_step_elements(const cleat_maps *maps);
int64_t cleat_maps_target_elements(const cleat_maps *maps);
/* The steps [steps, C, H, W] of a sample. If they are not in memory, they are read into `room` unchanged. */
cleat_status cleat_maps_sample_steps(const cleat_maps *maps, const cleat_maps_sample *sample, float *room,
                                     const float **steps, cleat_error *error);

/* Transforms values [count] in place. */
void cleat_maps_transform(cleat_transform transform, float *values, int64_t count);
/* Replaces transformed values [steps, C, H, W] by (value - mean) / std, and NaN by 0. `path` is used in
 * messages. */
cleat_status cleat_maps_standardise(const cleat_maps *maps, const char *path, float *values, int64_t steps,
                                    cleat_error *error);
/* Fits means, standard deviations and the fraction of positives to the training samples. Steps in memory must
 * be transformed already. */
cleat_status cleat_maps_fit_preprocessor(cleat_maps *maps, const char *path, cleat_error *error);

/* Whether the option is more than blanks. */
bool cleat_maps_is_given(const char *option);
/* Set all of *maps except the fields and info of `common`. With options->fitted, maps->fitted is already
 * set. */
cleat_status cleat_maps_read_esri(const char *folder, const cleat_maps_options *options, cleat_maps *maps,
                                  cleat_error *error); /* esri.c */
cleat_status cleat_maps_read_npy(const char *folder, const cleat_maps_options *options, cleat_maps *maps,
                                 cleat_error *error); /* stacks.c */

#endif
