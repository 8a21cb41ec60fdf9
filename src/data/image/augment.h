/* Image augmentation: random resized crops, flips, quarter turns and colour jitter in training. */
#ifndef CLEAT_SRC_AUGMENT_H
#define CLEAT_SRC_AUGMENT_H

#include "cleat/images.h"
#include "data/image/common.h"
#include "data/image/effects.h"

/* A rectangle of the source image in pixels, possibly beyond its borders, which is rotated and mirrored, then
 * scaled to the sample's size; and the changes of the colours. */
typedef struct cleat_augment_params {
    double top, left, height, width;
    bool flip_x, flip_y, transpose;
    float brightness, contrast, saturation; /* factors; 1: no change */
    const cleat_augment *effects;           /* borrowed; NULL: none (effects.h) */
    cleat_random random;                    /* for the effects */
} cleat_augment_params;

/* The parameters without randomness: the whole image, or, with `square`, its centred square scaled to cover
 * (evaluation of images that are not square). */
cleat_augment_params cleat_augment_identity(const cleat_image *image, bool square);
/* Whether any augmentation is enabled. */
bool cleat_augment_enabled(const cleat_augment *augment);
/* Random parameters for a sample of `size` x `size`: a crop of [augment->crop_min, 1] of the image's area
 * (crop_min 1: the crop of cleat_augment_identity), shifted, mirrored and rotated, and the factors of the
 * colours. The aspect ratio of the crop, 3/4 to 4/3, is in pixels with `square`, else relative to that of the
 * image. The same (rng_key, sample) gives the same result. */
cleat_augment_params cleat_augment_random(const cleat_image *image, bool square, int64_t size,
                                          const cleat_augment *augment, const cleat_rng_key *rng_key, size_t sample);
/* Whether the sample equals the image pixel by pixel. */
bool cleat_augment_is_identity(const cleat_image *image, const cleat_augment_params *params, int64_t size);

/* Resamples the crop to values [size, size, C] in 0 .. 1, applies the changes of the colours, with clamping,
 * and standardises the values with *fitted (NULL: does not). Enlarging is bilinear; reducing averages over
 * the area of each pixel (antialiased). Outside the image its pixels are reflected at the border. Fails only
 * if memory is exhausted. */
cleat_status cleat_augment_apply(const cleat_image *image, const cleat_augment_params *params,
                                 const cleat_image_preprocessor *fitted, int64_t size, float *values,
                                 cleat_error *error);
/* Nearest-neighbour version for a one-channel image of the same size as the image, with the same crop, rotation
 * and deformation; pixels outside the image or the crop become -1. labels [size, size]. Fails only if memory is
 * exhausted. */
cleat_status cleat_augment_apply_labels(const cleat_image *mask, const cleat_augment_params *params, int64_t size,
                                        int32_t *labels, cleat_error *error);

/* Brightness is a factor; contrast scales differences from the sample's mean grey; saturation scales
 * differences from each pixel's grey; values [pixels, C] are clamped to 0 .. 1. Also standardizes, unless `fitted` is
 * NULL. */
void cleat_augment_change_colours(const cleat_augment_params *params, const cleat_image_preprocessor *fitted,
                                  int64_t pixels, int64_t channels, float *values);

#endif
