/* Augmentation: which part of an image a sample shows, and how. Drawn at random in training. */
#ifndef CLEAT_SRC_AUGMENT_H
#define CLEAT_SRC_AUGMENT_H

#include "cleat/images.h"
#include "data/image/file.h"

/* A rectangle of the source in pixels (it may reach over the borders), turned and mirrored, then scaled to the sample's
 * size; and the colours' changes. */
typedef struct cleat_augment_params {
    double top, left, height, width;
    bool flip_x, flip_y, transpose;
    float brightness, contrast, saturation; /* factors; 1: as it is */
} cleat_augment_params;

/* What is seen without chance: the whole image, or its centred square scaled to cover where `square` (evaluation of
 * images that are not square). */
cleat_augment_params cleat_augment_identity(const cleat_image *image, bool square);
/* True where anything is drawn. */
bool cleat_augment_enabled(const cleat_augment *augment);
/* A random crop for a sample of `size`: a crop of [augment->crop_min, 1] of the whole image's area (crop_min 1: what
 * cleat_augment_identity shows), moved, mirrored, turned, and the colours' factors. `square`: as above; the crop's ratio of
 * sides, 3/4 to 4/3, is that of its pixels, else it is to the image's own. The same (draw, sample) gives the same crop. */
cleat_augment_params cleat_augment_random(const cleat_image *image, bool square, int64_t size,
                                          const cleat_augment *augment, const cleat_rng_key *rng_key, size_t sample);
/* True where the sample is the image as it is, every pixel a pixel. */
bool cleat_augment_is_identity(const cleat_image *image, const cleat_augment_params *params, int64_t size);

/* values [size, size, C] in 0 .. 1, colours changed and clamped. Bilinear where the crop is enlarged; where it is made
 * smaller the mean of what falls into a pixel (antialiased). What lies outside repeats the border (reflected).
 * Fails only without memory. */
cleat_status cleat_augment_apply(const cleat_image *image, const cleat_augment_params *params, int64_t size,
                                 float *values, cleat_error *error);
/* The nearest pixel of a one-channel image of the same size as the other, in the same crop; `outside` where it lies
 * outside. labels [size, size] */
void cleat_augment_apply_labels(const cleat_image *mask, const cleat_augment_params *params, int64_t size,
                                int32_t outside, int32_t *labels);

#endif
