/* Views: which part of a picture a sample shows, and how. Drawn at random in training. */
#ifndef CLEAT_SRC_VIEW_H
#define CLEAT_SRC_VIEW_H

#include "cleat/data.h"
#include "data/picture.h"

/* A rectangle of the source in pixels (it may reach over the borders), turned and mirrored, then scaled to the sample's
 * size; and the colours' changes. */
typedef struct cleat_view {
    double top, left, height, width;
    bool flip_x, flip_y, transpose;
    float brightness, contrast, saturation; /* factors; 1: as it is */
} cleat_view;

/* What is seen without chance: the whole picture, or its centred square scaled to cover where `square` (evaluation of
 * pictures that are not square). */
cleat_view cleat_view_whole(const cleat_picture *picture, bool square);
/* True where anything is drawn. */
bool cleat_view_varies(const cleat_augment *augment);
/* A random view for a sample of `size`: a crop of [augment->crop_min, 1] of the whole picture's area (crop_min 1: what
 * cleat_view_whole shows), moved, mirrored, turned, and the colours' factors. `square`: as above; the crop's ratio of
 * sides, 3/4 to 4/3, is that of its pixels, else it is to the picture's own. The same (draw, sample) gives the same view. */
cleat_view cleat_view_draw(const cleat_picture *picture, bool square, int64_t size, const cleat_augment *augment,
                           const cleat_rng_key *rng_key, size_t sample);
/* True where the sample is the picture as it is, every pixel a pixel. */
bool cleat_view_is_plain(const cleat_picture *picture, const cleat_view *view, int64_t size);

/* values [size, size, C] in 0 .. 1, colours changed and clamped. Bilinear where the view is enlarged; where it is made
 * smaller the mean of what falls into a pixel (antialiased). What lies outside repeats the border (reflected).
 * Fails only without memory. */
cleat_status cleat_view_sample(const cleat_picture *picture, const cleat_view *view, int64_t size, float *values,
                               cleat_error *error);
/* The nearest pixel of a one-channel picture of the same size as the other, in the same view; `outside` where it lies
 * outside. labels [size, size] */
void cleat_view_labels(const cleat_picture *mask, const cleat_view *view, int64_t size, int32_t outside,
                       int32_t *labels);

#endif
