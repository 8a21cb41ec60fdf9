/* What datasets of pictures have in common: the head of their structs, options, what the training part teaches, splits. */
#ifndef CLEAT_SRC_PICTURES_H
#define CLEAT_SRC_PICTURES_H

#include "data/dataset.h"
#include "data/picture.h"

enum { CLEAT_PICTURES_FIELDS = 3, CLEAT_PICTURE_PLANES = 16 };

/* The first member of each such dataset. */
typedef struct cleat_pictures {
    cleat_dataset base;       /* first: a cleat_dataset * is one of these */
    cleat_dataset_class type; /* base.type points here: shapes of fields depend on the options */
    cleat_field fields[CLEAT_PICTURES_FIELDS];
    cleat_picture_info info;
} cleat_pictures;

/* The classes' names, by which cleat_pictures_describe knows them. */
#define CLEAT_IMAGES_NAME "images"
#define CLEAT_MASKS_NAME "masks"
#define CLEAT_MAPS_NAME "maps"

/* base.type becomes a copy of `type` with the pictures' own fields, [type->n_fields] of which are set. The struct must stay
 * where it is. */
void cleat_pictures_become_dataset(cleat_pictures *pictures, const cleat_dataset_class *type);

cleat_status cleat_picture_check_options(const cleat_picture_options *options, cleat_error *error);
/* The split that a hash of the sample's name falls on. */
cleat_split cleat_pictures_hashed_split(const char *name, double val_fraction, double test_fraction);

/* --- channels' means and deviations --------------------------------------------------------------------------- */

/* Sums over pixels as whole numbers: exact, and the same in any order. */
typedef struct cleat_picture_sums {
    uint64_t pixels, values[CLEAT_PICTURE_PLANES], squares[CLEAT_PICTURE_PLANES];
} cleat_picture_sums;
void cleat_picture_sums_add(cleat_picture_sums *sums, const cleat_picture *picture);
void cleat_picture_sums_merge(cleat_picture_sums *sums, const cleat_picture_sums *others);

/* What a training part teaches; values are 0 .. 1. */
typedef struct cleat_picture_learnt {
    int64_t channels;
    double mean[CLEAT_PICTURE_PLANES], deviation[CLEAT_PICTURE_PLANES]; /* [channels] */
    char **classes;                                                     /* [n_classes]; none for masks */
    int64_t *samples; /* [n_classes] training pictures; NULL where a file does not tell them */
    size_t n_classes;
    double positive; /* of masks: the share of 1 among their pixels; else 0 */
} cleat_picture_learnt;
/* Channels, means and (biased) deviations from the sums; a channel that is constant has deviation 1, with a warning that
 * names `path`. */
void cleat_picture_learnt_set(cleat_picture_learnt *learnt, const char *path, int64_t channels,
                              const cleat_picture_sums *sums);
/* Reads and writes FOLDER/pictures.json. Numbers come back with the same bits. */
cleat_status cleat_picture_learnt_read(const char *folder, cleat_picture_learnt *learnt, cleat_error *error);
cleat_status cleat_picture_learnt_write(const char *folder, const cleat_picture_learnt *learnt, cleat_error *error);
void cleat_picture_learnt_free(cleat_picture_learnt *learnt);

/* values [pixels, channels] in 0 .. 1 become (value - mean) / deviation. */
void cleat_picture_standardise(const cleat_picture_learnt *learnt, int64_t pixels, float *values);

#endif
