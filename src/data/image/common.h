/* What datasets of images have in common: options, and what is fitted to the training part. */
#ifndef CLEAT_SRC_IMAGE_COMMON_H
#define CLEAT_SRC_IMAGE_COMMON_H

#include "cleat/images.h"
#include "data/common/image_dataset.h"
#include "data/image/file.h"

enum { CLEAT_IMAGE_MAX_CHANNELS = 16 };

cleat_status cleat_image_check_options(const cleat_image_options *options, cleat_error *error);

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
