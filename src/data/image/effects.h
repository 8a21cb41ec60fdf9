/* Image augmentation on samples: rotation by angles, elastic deformation, intensity, RandAugment. */
#ifndef CLEAT_SRC_EFFECTS_H
#define CLEAT_SRC_EFFECTS_H

#include "cleat/images.h"
#include "core/philox.h"

/* Whether any of these augmentations is enabled. */
bool cleat_effects_enabled(const cleat_augment *augment);

/* Changes values [size, size, C] in 0 .. 1 in place, with random numbers from `random`, in this order:
 *   rotate      about the centre, by an angle uniform in [-rotate, rotate] degrees, counterclockwise if positive
 *   elastic     pixel p takes the value at p + d(p) (Simard, Steinkraus & Platt, ICDAR 2003): each component of d is
 *               noise, uniform and independent at every pixel, convolved with a Gaussian of deviation
 *               elastic_sigma and scaled so that its root mean square is `elastic` pixels
 *   RandAugment (Cubuk et al., NeurIPS 2020): randaugment_count of the operations below, each drawn uniformly
 *   blur        Gaussian, deviation uniform in [0, blur] pixels
 *   gamma       v^g, g between 1 / (1 + gamma) and 1 + gamma, uniform in its logarithm
 *   noise       Gaussian, deviation uniform in [0, noise]
 * Resampling is bilinear; the image is reflected at its borders; values stay in 0 .. 1. Fails only without memory.
 *
 * Operations of RandAugment, with m = magnitude / 30 and torchvision's ranges: identity; shear x, y by 0.3 m; translate
 * x, y by 0.45 m of the side; rotate 30 m degrees; brightness, contrast, saturation 1 + 0.9 m, each with a random sign
 * of m; posterize to 8 - round(4 m) bits; solarize from 1 - m; autocontrast; equalize. Sharpness is left out. */
cleat_status cleat_effects_apply(const cleat_augment *augment, cleat_random *random, int64_t size, int64_t channels,
                                 float *values, cleat_error *error);

/* Where the pixels of a sample come from, relative to its centre: y' = yy y + yx x + ty, x' = xy y + xx x + tx of its
 * place, moved by its displacement. */
typedef struct cleat_warp {
    double yy, yx, ty, xy, xx, tx;
    float *displacements; /* [size, size, 2], owned; NULL: none */
} cleat_warp;
/* Draws rotation and deformation, as cleat_effects_apply does first. The caller frees made->displacements, also
 * after an error. */
cleat_status cleat_warp_draw(const cleat_augment *augment, cleat_random *random, int64_t size, cleat_warp *made,
                             cleat_error *error);
/* The source of pixel (i, j), from the upper left corner, where pixel k covers [k, k + 1). */
void cleat_warp_place(const cleat_warp *warp, int64_t size, int64_t i, int64_t j, double *y, double *x);

/* Mixing of two samples. */
typedef struct cleat_mix {
    float weight;                     /* of the first image and its class; the second has 1 - weight */
    int64_t top, left, bottom, right; /* CutMix: the rectangle that comes from the second image */
    bool cut;
} cleat_mix;
/* Draws mixup (Zhang et al., ICLR 2018: weight from Beta(mixup, mixup)) or CutMix (Yun et al., ICCV 2019: a
 * rectangle of area 1 - weight from Beta(cutmix, cutmix), its centre uniform, cut at the borders, which corrects the
 * weight). With both, each sample uses one of them at random. */
cleat_mix cleat_mix_draw(const cleat_augment *augment, cleat_random *random, int64_t size);
/* Mixes `other` into values, both [size, size, C]. */
void cleat_mix_apply(const cleat_mix *mix, int64_t size, int64_t channels, const float *other, float *values);

#endif
