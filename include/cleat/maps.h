/* Maps over time: frames of several channels, and the target mask of a later day. */
#ifndef CLEAT_MAPS_H
#define CLEAT_MAPS_H

#include "cleat/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cleat_transform { CLEAT_TRANSFORM_NONE, CLEAT_TRANSFORM_LOG1P } cleat_transform;

/* Options of maps over time. */
typedef struct cleat_maps_options {
    /* ESRI grids: channel names, as they precede _YYYYMMDD.asc, separated by blanks; NULL or "": all
     * names. */
    const char *inputs;
    /* ESRI grids: channel whose values above 0 are the target; NULL or "": the first input. */
    const char *target;
    int64_t lookback; /* T: maximum number of frames */
    int64_t horizon;  /* days from the last frame to the day of the target; ESRI grids only */
    /* p: patch size in pixels; height and width are padded to a multiple of it. */
    int64_t patch;
    /* Applied to inputs before standardising: log1p = sign(v) log(1 + |v|). */
    cleat_transform transform;
    bool flip, flip_vertical; /* training: random mirroring of frames and target */
    bool skip_missing;        /* true: missing days are omitted (T is shorter); false: they are an error */
    /* Fractions of validation and test data. ESRI grids: the last days. NPY: by a hash of the name, unless
     * val.txt or test.txt lists the names. */
    double val_fraction, test_fraction;
    /* ESRI grids: numbers of days that replace the fractions; both 0: the fractions apply. */
    int64_t val_days, test_days;
    /* Folder of an earlier cleat_dataset_save, from which channel names, means and standard deviations are
     * read. NULL: fitted to the training part. */
    const char *fitted;
    /* for prediction: includes samples with an unknown target; all belong to CLEAT_SPLIT_TEST */
    bool predict;
} cleat_maps_options;

/* lookback 6, horizon 1, patch 4, log1p, no flips, val 0.2, test 0. */
CLEAT_API cleat_maps_options cleat_maps_defaults(void);

/* Opens a dataset of maps over time. Letters: N = (H/p)(W/p) patches in row-major order, L padded number of
 * frames, C channels. The fields are, in this order:
 *   frames   f32 [N, L, p p C]  pixels (row, column, channel) of each patch in each frame, standardised;
 *                               0 if unknown
 *   lengths  i32 [N]            number of frames of this sample, equal for all patches; 0 in an empty slot
 *   mask     i32 [H, W]         0, 1, or -1 unknown
 * cleat_dataset_length is the number of frames of the sample, at most T. `path` is a folder of one kind:
 *   ESRI ASCII grids NAME_YYYYMMDD.asc: a sample is a day whose target is `horizon` days later. Its id is
 *     the day of the target (2019-09-08), and its split is the one that contains this day. A NODATA cell
 *     is 0 after standardising in a frame, and unknown in the target. Headers (size, corner, cell size)
 *     must agree.
 *   NPY stacks: NAME.npy [T, C, H, W] with NAME_mask.npy [H, W] (f4, f8, u1, i1, i2, i4, b1; C order; NaN
 *     is unknown; in a mask, -1 is unknown too, and values above 0 are 1). The last T frames are used.
 *     All stacks have the same size, and each has a mask except for prediction. The id is NAME.
 * Memory: 4 bytes per cell and channel of all frames, 1 byte per cell of all targets; stacks of more than 1
 * GiB in total are read again for each sample. A sample without a known pixel in its target is omitted.
 * `options` NULL: the defaults. CLEAT_ERR_FORMAT, with the file (for grids file:line:column), cause and
 * remedy: malformed input. */
CLEAT_API cleat_status cleat_maps_open(const char *path, const cleat_maps_options *options, cleat_dataset **dataset,
                                       cleat_error *error);

/* Writes the persistence forecast of a sample to `mask` [height, width] of the padded frames: the target on
 * the day of its last frame, 0, 1, or -1 unknown. CLEAT_ERR_NOT_SUPPORTED: NPY stacks, whose frames have no
 * target, or a dataset of another kind. */
CLEAT_API cleat_status cleat_maps_persistence(const cleat_dataset *dataset, size_t sample, int32_t *mask,
                                              cleat_error *error);

/* Writes `values` [rows, columns] as an NPY file (version 1.0, '<f4', C order), atomically. */
CLEAT_API cleat_status cleat_npy_write(const char *path, const float *values, int64_t rows, int64_t columns,
                                       cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif
