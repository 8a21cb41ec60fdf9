/* A set of labelled images while it is read: the interface between the IDX, CIFAR and folder readers and the
 * dataset. */
#ifndef CLEAT_SRC_IMAGES_H
#define CLEAT_SRC_IMAGES_H

#include "data/common/faults.h"
#include "data/common/targets.h"
#include "data/image/cache.h"
#include "data/image/common.h"

typedef struct cleat_image_row {
    char *id;              /* of a file: path relative to the set's root, or its name in a table */
    char *file;            /* path relative to the set's root, if it differs from the id; else NULL */
    char *group;           /* of a table: the value of data.fold_column, if it is set; else NULL */
    const uint8_t *pixels; /* [H, W, C] of the set, in one of its blocks; NULL: a file */
    int32_t label;         /* index of a name, or CLEAT_NO_CLASS; finally the class */
    uint8_t split;         /* cleat_split */
    uint8_t channels;      /* 1 or 3; of a file as in its header */
    bool alpha;            /* its file has transparency */
    bool unreadable;       /* prediction: its file cannot be read */
} cleat_image_row;

typedef struct cleat_image_set {
    const cleat_image_options *options; /* borrowed; NULL once the dataset is open */
    char *root;                         /* folder of the files, or a name of the set for messages */
    cleat_image_row *rows;              /* [n_rows] */
    size_t n_rows, rows_capacity;
    cleat_name_list names; /* label names of the data; "0", "1", ... if the data only have numbers */
    bool ordered;          /* names are in the order of the data's label numbers */
    bool numbered;         /* the data have label numbers only */
    /* the test split is the one commonly used for validation if there is no other */
    bool official_test;
    cleat_targets targets;    /* of the rows, which then have no label, if their options have a problem */
    bool parts[CLEAT_SPLITS]; /* splits that the data define; train if they define none */
    uint8_t **blocks;         /* [n_blocks] pixels in memory, owned */
    size_t n_blocks, blocks_capacity;
    int64_t height, width, channels; /* of images in memory, which all have the same size; else 0 */
} cleat_image_set;

void cleat_image_set_free(cleat_image_set *set);
/* Appends an image; `id` is copied. */
cleat_status cleat_image_set_add(cleat_image_set *set, const char *id, const uint8_t *pixels, int32_t label,
                                 cleat_split split, cleat_error *error);
/* Takes ownership of the block, also on failure. */
cleat_status cleat_image_set_add_block(cleat_image_set *set, uint8_t *block, cleat_error *error);
/* Index of a name, which is added if it is new. A name that differs from a known one only in case, blanks,
 * '_' and '-' is an error that names `place`. */
cleat_status cleat_image_set_name(cleat_image_set *set, const char *name, const char *place, int32_t *label,
                                  cleat_error *error);
/* Adds the names "0" .. "255", up to the largest label. */
cleat_status cleat_image_set_number(cleat_image_set *set, cleat_error *error);

/* Assigns the splits of all rows and replaces names by classes: those of `fitted` if it has any; otherwise
 * `fitted` receives them. */
cleat_status cleat_image_set_assign_classes(cleat_image_set *set, cleat_image_preprocessor *fitted, cleat_error *error);

/* The readers. If the folder has another layout, *found is false and the set is unchanged. */
cleat_status cleat_idx_open(const char *folder, cleat_image_set *set, bool *found, cleat_error *error);
cleat_status cleat_cifar_open(const char *folder, cleat_image_set *set, bool *found, cleat_error *error);
bool cleat_image_is_table(const char *path);
cleat_status cleat_image_table_open(const char *path, cleat_image_set *set, bool *found, cleat_error *error);
/* Class folders; for prediction any folder of images, or one image. */
cleat_status cleat_image_folders_open(const char *path, cleat_image_set *set, cleat_error *error);

/* Reads the headers of the files and reports the faults. */
cleat_status cleat_image_set_probe(cleat_image_set *set, cleat_faults *faults, cleat_error *error);
cleat_split cleat_image_part_called(const char *name); /* the split of a folder, or CLEAT_SPLITS */

/* For a dataset of cleat_images_open whose images are files; otherwise all zeros. */
cleat_image_cache_stats cleat_images_dataset_cache_statistics(const cleat_dataset *dataset);

#endif
