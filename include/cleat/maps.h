/* Maps over time: steps of several channels, and the mask of a later day. */
#ifndef CLEAT_MAPS_H
#define CLEAT_MAPS_H

#include "cleat/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cleat_transform { CLEAT_TRANSFORM_NONE, CLEAT_TRANSFORM_LOG1P } cleat_transform;

/* Options of maps over time: frames of several channels, and the mask to predict. */
typedef struct cleat_maps_options {
    /* ESRI grids: name of each channel before _YYYYMMDD.asc, separated by blanks; NULL or "": all names. */
    const char *inputs;
    /* ESRI grids: channel whose value above 0 is the target; NULL or "": the first input. */
    const char *target;
    int64_t lookback; /* T: maximum number of frames */
    int64_t horizon;  /* days from the last frame to the target's day; ESRI grids only */
    /* p: patch size; height and width are padded to a multiple of it. */
    int64_t patch;
    /* applied to inputs before standardising: log1p = sign(v) log(1 + |v|) */
    cleat_transform transform;
    bool flip, flip_vertical; /* training: random mirroring of frames and target */
    bool skip_missing;        /* missing days are left out (T is shorter); false: an error */
    /* Fractions of validation and test. ESRI grids: the last days; NPY: by a hash of the name, unless
     * val.txt or test.txt lists the names. */
    double val_fraction, test_fraction;
    /* ESRI grids: numbers of days that replace the fractions; both 0: the fractions */
    int64_t val_days, test_days;
    const char *fitted;
    bool predict; /* includes days with unknown target; all are CLEAT_SPLIT_TEST */
} cleat_maps_options;

/* lookback 6, horizon 1, patch 4, log1p, no flips, val 0.2, test 0. */
CLEAT_API cleat_maps_options cleat_maps_defaults(void);

/* N = (H/p)(W/p) patches in reading order. Fields:
 *   frames   f32 [N, L, p p C]  each patch's pixels (row, column, channel) of each frame, standardised;
 *                               0 where unknown
 *   lengths  i32 [N]            frames of this sample, the same for every patch; 0 in an empty slot
 *   mask     i32 [H, W]         0, 1, or -1 unknown
 * cleat_dataset_length is the sample's frames, at most T. `path` is a folder of
 *   ESRI ASCII grids NAME_YYYYMMDD.asc: a sample is a day whose target is horizon days later; its id is
 *     the target's day, 2019-09-08, and its split that in which this day lies. A cell that is NODATA in
 *     a frame is 0 after standardising, in the target unknown. Headers (size, corner, cell size) must
 *     agree.
 *   NPY stacks: NAME.npy [T, C, H, W] with NAME_mask.npy [H, W] (f4, f8, u1, i1, i2, i4, b1; C order;
 *     NaN is unknown, in a mask -1 too, and anything above 0 is 1); the last T frames are seen. Stacks
 *     of one size; a mask for each, but for prediction. The id is NAME
 * Memory: 4 bytes a cell and channel of all frames, 1 a cell of all targets; stacks of more than 1 GiB in
 * all are read again for each sample. A sample without a known pixel in its target is left out.
 * CLEAT_ERR_FORMAT with the file (of grids file:line:column), cause and mend for malformed input.
 * `options` NULL: the defaults. */
CLEAT_API cleat_status cleat_maps_open(const char *path, const cleat_maps_options *options, cleat_dataset **dataset,
                                       cleat_error *error);

/* Writes the persistence forecast of a sample: the target on the day of its last frame. mask [height,
 * width] of the padded frames: 0, 1, or -1 unknown. CLEAT_ERR_NOT_SUPPORTED for NPY stacks, whose frames
 * have no target, and for a dataset of another kind. */
CLEAT_API cleat_status cleat_maps_persistence(const cleat_dataset *dataset, size_t sample, int32_t *mask,
                                              cleat_error *error);

/* Writes [rows, columns] f32 as NPY (version 1.0, '<f4', C order), atomically. */
CLEAT_API cleat_status cleat_npy_write(const char *path, const float *values, int64_t rows, int64_t columns,
                                       cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif
