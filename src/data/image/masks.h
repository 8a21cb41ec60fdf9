/* Pairs of images and masks: finding the files, and reading masks. */
#ifndef CLEAT_SRC_MASKS_H
#define CLEAT_SRC_MASKS_H

#include "data/image/cache.h"
#include "data/image/common.h"

typedef struct cleat_mask_sample {
    char *name;            /* of the files without extension; owned */
    char *image, *mask;    /* paths, owned; mask NULL: none */
    int64_t height, width; /* from the file headers */
    int64_t channels;
    cleat_split split;
    bool unreadable; /* prediction: its image cannot be read */
} cleat_mask_sample;

typedef struct cleat_mask_set {
    cleat_mask_sample *samples; /* [count], sorted by name */
    size_t count, capacity;
} cleat_mask_set;

/* Finds the pairs in `path` (for prediction: images), their sizes and splits (mask_files.c). The caller frees
 * *set. */
cleat_status cleat_mask_set_find(const char *path, const cleat_image_options *options, cleat_mask_set *set,
                                 cleat_error *error);
void cleat_mask_set_free(cleat_mask_set *set);

/* Reads a mask as one channel of bytes 0 and 1. A mask with colours is an error, and so is one that is not
 * entirely black but has no pixel bright enough to count as 1. */
cleat_status cleat_mask_read(const char *path, cleat_image *mask, cleat_error *error);

#endif
