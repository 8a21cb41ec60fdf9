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
    bool alpha; /* the image has transparency */
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

enum { CLEAT_MASK_CLASSES = 255, CLEAT_MASK_UNLABELLED = 255 };

/* Masks whose values are classes (mask_classes.c). */
typedef struct cleat_mask_classes {
    int64_t count; /* C; 0: masks of two classes, black and white */
    bool reduce;   /* value 0 of a file is unlabelled, value k is class k - 1 */
} cleat_mask_classes;
/* The classes of the options; C is the number of names in options->classes if only these are given.
 * CLEAT_ERR_ARGUMENT: the numbers of classes and names differ, or are out of range. */
cleat_status cleat_mask_classes_of(const cleat_image_options *options, cleat_mask_classes *classes, cleat_error *error);
/* Sets the names of the fitted classes and their counts to 0: from options->classes, else the lines of labels.txt in
 * `path`, else options->names, else "class_0" and so on. */
cleat_status cleat_mask_classes_name(const char *path, const cleat_image_options *options,
                                     const cleat_mask_classes *classes, cleat_image_preprocessor *fitted,
                                     cleat_error *error);
/* Reads a mask as one channel of classes, CLEAT_MASK_UNLABELLED for a pixel without a class. A value that is
 * not a class is an error with its row and column. */
cleat_status cleat_mask_read_classes(const char *path, const cleat_mask_classes *classes, cleat_image *mask,
                                     cleat_error *error);
/* The image of a sample of such a dataset, of 1 or 3 channels, from its file; the caller frees it. */
cleat_status cleat_masks_image(const cleat_dataset *dataset, size_t sample, cleat_image *image, cleat_error *error);

/* Converts a mask of [H, W, 3] to [H, W]; a pixel that is not grey is an error. */
cleat_status cleat_mask_to_grey(const char *path, cleat_image *mask, cleat_error *error);

/* Reads a mask as one channel of bytes 0 and 1. A mask with colours is an error, and so is one that is not
 * entirely black but has no pixel bright enough to count as 1. */
cleat_status cleat_mask_read(const char *path, cleat_image *mask, cleat_error *error);

#endif
