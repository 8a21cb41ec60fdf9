/* Images with masks while they are found and read. */
#ifndef CLEAT_SRC_MASKS_H
#define CLEAT_SRC_MASKS_H

#include "data/image/cache.h"
#include "data/image/common.h"

typedef struct cleat_mask_sample {
    char *name;            /* of the files, without ending; owned */
    char *image, *mask;    /* paths, owned; mask NULL: none */
    int64_t height, width; /* as the files' heads say */
    int64_t channels;
    cleat_split split;
} cleat_mask_sample;

typedef struct cleat_mask_set {
    cleat_mask_sample *samples; /* [count], by name */
    size_t count, capacity;
} cleat_mask_set;

/* Finds the pairs of `path` (in prediction: images), their sizes and splits. (mask_files.c) */
cleat_status cleat_mask_set_find(const char *path, const cleat_image_options *options, cleat_mask_set *set,
                                 cleat_error *error);
void cleat_mask_set_free(cleat_mask_set *set);

/* Reads a mask as bytes 0 and 1 of one channel; colours, and a mask that is neither black nor white anywhere, are errors. */
cleat_status cleat_mask_read(const char *path, cleat_image *mask, cleat_error *error);

#endif
