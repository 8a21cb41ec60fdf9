/* Definitions shared by image datasets: options, and the preprocessing state fitted to the training split. */
#ifndef CLEAT_SRC_IMAGE_COMMON_H
#define CLEAT_SRC_IMAGE_COMMON_H

#include "cleat/images.h"
#include "core/name_list.h"
#include "data/common/image_dataset.h"
#include "data/image/file.h"

enum { CLEAT_IMAGE_MAX_CHANNELS = 16 };

/* The fault of options->mean and options->std; NULL: none. */
const char *cleat_image_normalisation_fault(const char *mean, const char *std);
cleat_status cleat_image_check_options(const cleat_image_options *options, cleat_error *error);

/* For prediction: whether `why` concerns one unreadable file, without which the others can be predicted;
 * logs it. */
bool cleat_image_skips(const cleat_error *why);

/* Logs the number of images with transparency, which is dropped, if any. */
void cleat_image_log_alpha(const char *path, size_t transparent, size_t count);

/* Integer sums over pixels; exact, and independent of the order of summation. */
typedef struct cleat_channel_sums {
    uint64_t pixels, values[CLEAT_IMAGE_MAX_CHANNELS], squares[CLEAT_IMAGE_MAX_CHANNELS];
    int peak; /* the largest value of images of 16 bits; 0: none */
} cleat_channel_sums;

/* State fitted to the training split; pixel values are 0 .. 1. */
typedef struct cleat_image_preprocessor {
    int64_t channels;
    double mean[CLEAT_IMAGE_MAX_CHANNELS], std[CLEAT_IMAGE_MAX_CHANNELS]; /* [channels] */
    cleat_name_list classes;                                              /* none for masks */
    int64_t *samples; /* [classes.count] number of training images; NULL if the file does not contain it */
    double positive;  /* of masks: fraction of pixels that are 1; else 0 */
} cleat_image_preprocessor;
/* Sets channels, means and (biased) standard deviations from the sums. A constant channel gets std 1, with a
 * warning that names `path`. */
void cleat_image_preprocessor_fit(cleat_image_preprocessor *fitted, const char *path, int64_t channels,
                                  const cleat_channel_sums *sums);
/* Whether the options give means and standard deviations. */
bool cleat_image_normalisation_given(const cleat_image_options *options);
/* Sets these. CLEAT_ERR_ARGUMENT: neither one number nor one for each channel. */
cleat_status cleat_image_preprocessor_give(cleat_image_preprocessor *fitted, const cleat_image_options *options,
                                           cleat_error *error);
/* Read and write FOLDER/pictures.json. Numbers are preserved bit by bit. */
cleat_status cleat_image_preprocessor_read(const char *folder, cleat_image_preprocessor *fitted, cleat_error *error);
cleat_status cleat_image_preprocessor_write(const char *folder, const cleat_image_preprocessor *fitted,
                                            cleat_error *error);
void cleat_image_preprocessor_free(cleat_image_preprocessor *fitted);

/* The image of a sample of images or masks as a model receives it in evaluation, S x S, in 8 bits per
 * channel. The caller frees *image (cleat_image_free). Errors: those of cleat_dataset_fill. */
cleat_status cleat_image_of_sample(const cleat_dataset *dataset, size_t sample, cleat_image *image, cleat_error *error);

/* Replaces values [pixels, channels] in 0 .. 1 by (value - mean) / std. */
void cleat_image_standardise(const cleat_image_preprocessor *fitted, int64_t pixels, float *values);

#endif
