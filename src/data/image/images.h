/* Images with classes while they are read: what IDX, CIFAR and folders hand to the dataset. */
#ifndef CLEAT_SRC_IMAGES_H
#define CLEAT_SRC_IMAGES_H

#include "data/image/cache.h"
#include "data/image/common.h"

typedef struct cleat_image_row {
    char *id;              /* of a file: its path below the set's root */
    const uint8_t *pixels; /* [H, W, C] of the set, in one of its blocks; NULL: a file */
    int32_t label;         /* a name of the set, or CLEAT_NO_CLASS; in the end a class */
    uint8_t split;         /* cleat_split */
    uint8_t channels;      /* 1, 3; of a file what its header says */
} cleat_image_row;

typedef struct cleat_image_set {
    const cleat_image_options *options; /* NULL in the end */
    char *root;                         /* folder of the files, or what to call the set in a message */
    cleat_image_row *rows;              /* [n_rows] */
    size_t n_rows, rows_capacity;
    char **names; /* [n_names] of labels as the data name them; of numbered ones "0", "1", ... */
    size_t n_names, names_capacity;
    bool ordered;             /* names stand in the order of the data's numbers */
    bool numbered;            /* there are numbers only */
    bool official_test;       /* the test part is the one that everybody validates on, where there is no other */
    bool parts[CLEAT_SPLITS]; /* those the data name; training is there where nothing is named */
    uint8_t **blocks;         /* [n_blocks] pixels in memory, owned */
    size_t n_blocks, blocks_capacity;
    int64_t height, width, channels; /* of images in memory, all alike; else 0 */
} cleat_image_set;

void cleat_image_set_free(cleat_image_set *set);
/* `id` is copied. */
cleat_status cleat_image_set_add(cleat_image_set *set, const char *id, const uint8_t *pixels, int32_t label,
                                 cleat_split split, cleat_error *error);
/* The block is the set's from then on, also on failure. */
cleat_status cleat_image_set_add_block(cleat_image_set *set, uint8_t *block, cleat_error *error);
/* Index of a name; a new one is added. A name that differs from a known one in capitals, blanks, '_' and '-' only is an
 * error that names `place`. */
cleat_status cleat_image_set_name(cleat_image_set *set, const char *name, const char *place, int32_t *label,
                                  cleat_error *error);
/* Names "0" .. "255", as far as labels go. */
cleat_status cleat_image_set_number(cleat_image_set *set, cleat_error *error);

/* Splits of all rows, and names turned into classes: `fitted` gives them where it has some, else it gets them. */
cleat_status cleat_image_set_assign_classes(cleat_image_set *set, cleat_image_preprocessor *fitted, cleat_error *error);

/* The readers. *found is false, and the set as it was, where the folder is of another layout. */
cleat_status cleat_idx_open(const char *folder, cleat_image_set *set, bool *found, cleat_error *error);
cleat_status cleat_cifar_open(const char *folder, cleat_image_set *set, bool *found, cleat_error *error);
/* Class folders, or for prediction any folder of images, or one image. */
cleat_status cleat_image_folders_open(const char *path, cleat_image_set *set, cleat_error *error);

/* Of a dataset of cleat_images_open whose images are files; 0 else. */
cleat_image_cache_stats cleat_images_dataset_cache_statistics(const cleat_dataset *dataset);

#endif
