/* Maps over time between files and dataset: what a reader finds, what is fitted from it. */
#ifndef CLEAT_SRC_MAPS_H
#define CLEAT_SRC_MAPS_H

#include "cleat/maps.h"
#include "data/common/image_dataset.h"
#include "data/common/name_list.h"
#include "data/maps/npy.h"

/* --- what is fitted (fit.c) ------------------------------------------------------------------------------ */

typedef struct cleat_maps_preprocessor {
    cleat_name_list names; /* of the channels: ESRI grids; stacks have none */
    char *target;          /* ESRI grids: the name of the target's; owned */
    size_t channels;
    cleat_transform transform;
    double *mean, *std; /* [channels] of the transformed values; owned */
    double positive;    /* share of 1 among the targets' known pixels */
} cleat_maps_preprocessor;

/* Reads and writes FOLDER/maps.json. Numbers come back with the same bits. */
cleat_status cleat_maps_preprocessor_read(const char *folder, cleat_maps_preprocessor *fitted, cleat_error *error);
cleat_status cleat_maps_preprocessor_write(const char *folder, const cleat_maps_preprocessor *fitted,
                                           cleat_error *error);
void cleat_maps_preprocessor_free(cleat_maps_preprocessor *fitted);

/* --- the dataset (maps.c) ------------------------------------------------------------------------------------- */

typedef struct cleat_maps_sample {
    char *id; /* owned */
    cleat_split split;
    int64_t first, steps;  /* among all steps; ascending from sample to sample */
    int64_t target, today; /* among all targets: of the sample, of its last step's day; -1: not known */
    char *path;            /* NPY: its stack, and where its steps begin there; owned */
    cleat_npy stack;
    int64_t skipped;
} cleat_maps_sample;

typedef struct cleat_maps {
    cleat_image_dataset common; /* first: a cleat_dataset * is one of these; common.base.count samples */
    cleat_maps_sample *samples;
    size_t capacity;
    int64_t channels, height, width; /* of a step in its file */
    int64_t patch;
    float
        *steps; /* [n_steps, C, H, W]: as in the files (NaN unknown), at last transformed and standardised; NULL: stacks
                      * are read when they are wanted */
    int8_t *targets; /* [n_targets, H, W]: 0, 1, -1 unknown */
    int64_t n_steps, n_targets;
    int64_t kept_bytes; /* stacks that have more steps than fit into so many are read when they are wanted */
    bool flip, flip_vertical;
    cleat_maps_preprocessor fitted;
} cleat_maps;

/* cleat_maps_open with another limit than its 1 GiB. */
cleat_status cleat_maps_open_within(const char *path, const cleat_maps_options *options, int64_t kept_bytes,
                                    cleat_dataset **dataset, cleat_error *error);

/* Takes over `id` and `path` of the sample, also on failure. */
cleat_status cleat_maps_add_sample(cleat_maps *maps, const cleat_maps_sample *sample, cleat_error *error);
/* Room for `steps` and `targets` of the size that is set. */
cleat_status cleat_maps_make_room(cleat_maps *maps, const char *path, bool steps, cleat_error *error);
/* 0, 1 or -1 of values [count]. */
void cleat_maps_set_target(const float *values, int64_t count, int8_t *target);

/* Elements of a step [C, H, W], and of a target [H, W]. */
int64_t cleat_maps_step_elements(const cleat_maps *maps);
int64_t cleat_maps_target_elements(const cleat_maps *maps);
/* The steps [steps, C, H, W] of a sample, as in the files where they are not in memory: then they are read into `room`. */
cleat_status cleat_maps_sample_steps(const cleat_maps *maps, const cleat_maps_sample *sample, float *room,
                                     const float **steps, cleat_error *error);

/* values [count] are transformed in place. */
void cleat_maps_transform(cleat_transform transform, float *values, int64_t count);
/* values [steps, C, H, W], transformed, become (value - mean) / std, 0 where NaN. `path` is for the message. */
cleat_status cleat_maps_standardise(const cleat_maps *maps, const char *path, float *values, int64_t steps,
                                    cleat_error *error);
/* Means, deviations and the positive share of the training samples. Frames in memory are transformed already. */
cleat_status cleat_maps_fit_preprocessor(cleat_maps *maps, const char *path, cleat_error *error);

/* --- readers -------------------------------------------------------------------------------------------------- */

/* Fill all of *maps but `common`'s fields and info. With options->fitted, maps->fitted is what was fitted. */
cleat_status cleat_maps_read_esri(const char *folder, const cleat_maps_options *options, cleat_maps *maps,
                                  cleat_error *error); /* esri.c */
cleat_status cleat_maps_read_npy(const char *folder, const cleat_maps_options *options, cleat_maps *maps,
                                 cleat_error *error); /* stacks.c */

#endif
