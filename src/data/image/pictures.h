/* What the datasets of images with classes and of images with masks share. */
#ifndef CLEAT_SRC_PICTURES_H
#define CLEAT_SRC_PICTURES_H

#include "data/image/augment.h"
#include "data/image/cache.h"

typedef struct cleat_pictures {
    cleat_image_dataset common; /* first, so that a cleat_dataset * can be cast to this type */
    cleat_image_preprocessor fitted;
    cleat_image_cache *cache; /* of files */
    cleat_augment augment;
    bool augments; /* some augmentation is enabled */
    bool predicts;
} cleat_pictures;

/* The image is the first field of both kinds. */
enum { CLEAT_PICTURE, CLEAT_PICTURE_TARGET, CLEAT_PICTURE_FIELDS };

void cleat_pictures_init(cleat_pictures *pictures, const cleat_image_options *options, const cleat_dataset_class *type);
/* Reads the fitted state. CLEAT_ERR_ARGUMENT: the options require other channels. */
cleat_status cleat_pictures_read_fitted(cleat_pictures *pictures, const cleat_image_options *options,
                                        cleat_error *error);
/* Adds a training image, read from its file or not, to the sums; called on several threads. */
typedef cleat_status (*cleat_picture_add)(void *user, size_t sample, cleat_channel_sums *sums, cleat_error *error);
/* Fits means and standard deviations to *used training images, evenly spaced and at most as many as `most`. */
cleat_status cleat_pictures_fit(cleat_pictures *pictures, const char *path, size_t most, cleat_picture_add add,
                                void *user, size_t *used, cleat_error *error);
void cleat_channel_sums_add(cleat_channel_sums *sums, const cleat_image *image);
/* Sets the field of the image, and `info` except for the numbers of samples, from the options and the fitted state. */
void cleat_pictures_describe(cleat_pictures *pictures, const cleat_image_options *options, int64_t classes);

/* Functions of both classes. */
int64_t cleat_pictures_length(const cleat_dataset *dataset, size_t sample);
cleat_status cleat_pictures_save(const cleat_dataset *dataset, const char *folder, cleat_error *error);
cleat_status cleat_pictures_check_saved(const cleat_dataset *dataset, const char *folder, cleat_error *error);

#endif
