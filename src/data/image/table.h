/* Tables of images: a row names a file, and its other columns have the targets, which the caller reads. */
#ifndef CLEAT_SRC_IMAGE_TABLE_H
#define CLEAT_SRC_IMAGE_TABLE_H

#include "cleat/images.h"
#include "data/common/csv.h"
#include "data/common/targets.h"

enum { CLEAT_IMAGE_TABLE_PATH = 4096 };

typedef struct cleat_image_tables {
    char folder[CLEAT_IMAGE_TABLE_PATH], paths[CLEAT_SPLITS][CLEAT_IMAGE_TABLE_PATH]; /* "": none */
    bool guessed;                                                                     /* by their names in a folder */
} cleat_image_tables;

bool cleat_image_is_table(const char *path);
/* `path` is the training table, or a folder of tables called train, val (valid, validation, dev) and test. *found:
 * there is a train table, and there are no folders of classes. */
cleat_status cleat_image_tables_find(const char *path, cleat_image_tables *tables, bool *found, cleat_error *error);

typedef struct cleat_image_table_reader {
    /* Finds the columns of the targets in the header, the current record. *skip = true ignores the table. */
    cleat_status (*begin)(void *user, const cleat_csv *csv, cleat_split split, bool *skip, cleat_error *error);
    /* Takes the current record. id: the image's name in it; file: its path below `root`, NULL: missing (prediction). */
    cleat_status (*row)(void *user, const cleat_csv *csv, const char *id, const char *file, cleat_split split,
                        cleat_error *error);
    void *user;
    const cleat_targets *targets; /* none of their columns is taken for that of the names */
} cleat_image_table_reader;

/* Calls the reader for each table and row, in order. `root` receives options->image_folder, or the tables' folder. A
 * missing image, one named twice and local errors of `row` are added to `faults`; other errors are returned. */
cleat_status cleat_image_tables_read(const cleat_image_tables *tables, const cleat_image_options *options,
                                     const cleat_image_table_reader *reader, char root[CLEAT_IMAGE_TABLE_PATH],
                                     cleat_faults *faults, cleat_error *error);

#endif
