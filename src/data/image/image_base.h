/* What the datasets of images with classes and of images with masks share. */
#ifndef CLEAT_SRC_IMAGE_BASE_H
#define CLEAT_SRC_IMAGE_BASE_H

#include "data/image/augment.h"
#include "data/image/cache.h"

typedef struct cleat_image_base {
    cleat_image_dataset common; /* first, so that a cleat_dataset * can be cast to this type */
    cleat_image_preprocessor fitted;
    cleat_image_cache *cache; /* of files */
    cleat_augment augment;
    bool augments; /* some augmentation is enabled */
    bool predicts;
} cleat_image_base;

/* The image is the first field of both kinds. */
enum { CLEAT_IMAGE, CLEAT_IMAGE_TARGET, CLEAT_IMAGE_FIELDS };

void cleat_image_base_init(cleat_image_base *base, const cleat_image_options *options, const cleat_dataset_class *type);
/* Reads the fitted state. CLEAT_ERR_ARGUMENT: the options require other channels. */
cleat_status cleat_image_base_read_fitted(cleat_image_base *base, const cleat_image_options *options,
                                          cleat_error *error);
/* Adds a training image, read from its file or not, to the sums; called on several threads. */
typedef cleat_status (*cleat_image_add)(void *user, size_t sample, cleat_channel_sums *sums, cleat_error *error);
/* Fits means and standard deviations to *used training images, evenly spaced and at most as many as `most`. */
cleat_status cleat_image_base_fit(cleat_image_base *base, const char *path, size_t most, cleat_image_add add,
                                  void *user, size_t *used, cleat_error *error);
void cleat_channel_sums_add(cleat_channel_sums *sums, const cleat_image *image);
/* Sets the field of the image, and `info` except for the numbers of samples, from the options and the fitted state. */
void cleat_image_base_describe(cleat_image_base *base, const cleat_image_options *options, int64_t classes);
/* Moves rows [S, width] to the upper left corner of rows [L, ...] of `wide` bytes, in place, and fills each
 * byte to the right of them with `pad`, 0 or -1. The rows below are already filled. */
void cleat_image_base_pad(int64_t rows, size_t width, size_t wide, int pad, void *values);

/* Functions of both classes. */
int64_t cleat_image_base_length(const cleat_dataset *dataset, size_t sample);
cleat_status cleat_image_base_save(const cleat_dataset *dataset, const char *folder, cleat_error *error);
cleat_status cleat_image_base_check_saved(const cleat_dataset *dataset, const char *folder, cleat_error *error);

#endif
