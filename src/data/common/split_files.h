/* Which part each sample of a folder belongs to, where files may name the samples of validation and test. */
#ifndef CLEAT_SRC_SPLIT_FILES_H
#define CLEAT_SRC_SPLIT_FILES_H

#include "cleat/dataset.h"

/* splits [count] of the samples called names [count], which differ: those that FOLDER/val.txt and FOLDER/test.txt list, a name
 * a line, are of these parts; where a part has no file, a hash of the names puts its fraction of the others there. A name
 * that is no sample's, or is in both files, is an error. */
cleat_status cleat_split_files_read(const char *folder, const char *const *names, size_t count, double val_fraction,
                                    double test_fraction, cleat_split *splits, cleat_error *error);

/* The split that a hash of the sample's name falls on. */
cleat_split cleat_hashed_name_split(const char *name, double val_fraction, double test_fraction);

#endif
