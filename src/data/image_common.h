/* What datasets of images have in common: the head of their structs, options, what the training part teaches, splits. */
#ifndef CLEAT_SRC_IMAGE_COMMON_H
#define CLEAT_SRC_IMAGE_COMMON_H

#include "data/dataset.h"
#include "data/image_file.h"

enum { CLEAT_IMAGE_MAX_FIELDS = 3, CLEAT_IMAGE_MAX_CHANNELS = 16 };

/* The first member of each such dataset. */
typedef struct cleat_image_dataset {
    cleat_dataset base;       /* first: a cleat_dataset * is one of these */
    cleat_dataset_class type; /* base.type points here: shapes of fields depend on the options */
    cleat_field fields[CLEAT_IMAGE_MAX_FIELDS];
    cleat_image_info info;
} cleat_image_dataset;

/* The classes' names, by which cleat_image_describe knows them. */
#define CLEAT_IMAGES_NAME "images"
#define CLEAT_MASKS_NAME "masks"
#define CLEAT_MAPS_NAME "maps"

/* base.type becomes a copy of `type` with the images' own fields, [type->n_fields] of which are set. The struct must stay
 * where it is. */
void cleat_image_dataset_init(cleat_image_dataset *common, const cleat_dataset_class *type);

cleat_status cleat_image_check_options(const cleat_image_options *options, cleat_error *error);
/* The split that a hash of the sample's name falls on. */
cleat_split cleat_hashed_name_split(const char *name, double val_fraction, double test_fraction);

/* --- channels' means and deviations --------------------------------------------------------------------------- */

/* Sums over pixels as whole numbers: exact, and the same in any order. */
typedef struct cleat_channel_sums {
    uint64_t pixels, values[CLEAT_IMAGE_MAX_CHANNELS], squares[CLEAT_IMAGE_MAX_CHANNELS];
} cleat_channel_sums;
void cleat_channel_sums_add(cleat_channel_sums *sums, const cleat_image *image);
void cleat_channel_sums_merge(cleat_channel_sums *sums, const cleat_channel_sums *others);

/* What a training part teaches; values are 0 .. 1. */
typedef struct cleat_image_preprocessor {
    int64_t channels;
    double mean[CLEAT_IMAGE_MAX_CHANNELS], std[CLEAT_IMAGE_MAX_CHANNELS]; /* [channels] */
    char **classes;                                                       /* [n_classes]; none for masks */
    int64_t *samples; /* [n_classes] training images; NULL where a file does not tell them */
    size_t n_classes;
    double positive; /* of masks: the share of 1 among their pixels; else 0 */
} cleat_image_preprocessor;
/* Channels, means and (biased) deviations from the sums; a channel that is constant has std 1, with a warning that
 * names `path`. */
void cleat_image_preprocessor_fit(cleat_image_preprocessor *fitted, const char *path, int64_t channels,
                                  const cleat_channel_sums *sums);
/* Reads and writes FOLDER/pictures.json. Numbers come back with the same bits. */
cleat_status cleat_image_preprocessor_read(const char *folder, cleat_image_preprocessor *fitted, cleat_error *error);
cleat_status cleat_image_preprocessor_write(const char *folder, const cleat_image_preprocessor *fitted,
                                            cleat_error *error);
void cleat_image_preprocessor_free(cleat_image_preprocessor *fitted);

/* values [pixels, channels] in 0 .. 1 become (value - mean) / std. */
void cleat_image_standardise(const cleat_image_preprocessor *fitted, int64_t pixels, float *values);

#endif
