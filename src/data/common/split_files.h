/* Assigns the samples of a folder to splits; files may list those of validation and test. */
#ifndef CLEAT_SRC_SPLIT_FILES_H
#define CLEAT_SRC_SPLIT_FILES_H

#include "cleat/dataset.h"
#include "data/common/faults.h"

/* Sets splits [count] of the samples called names [count], which must be distinct. Samples listed in
 * FOLDER/val.txt and FOLDER/test.txt, one name per line, belong to these splits. A split without a file
 * receives its fraction of the remaining samples, selected by a hash of their names. A name that matches no
 * sample or is in both files is added to `faults`. */
cleat_status cleat_split_files_read(const char *folder, const char *const *names, size_t count, double val_fraction,
                                    double test_fraction, const cleat_fold *fold, cleat_split *splits,
                                    cleat_faults *faults, cleat_error *error);

/* Divides the samples of the training split by hashes of their names; the others keep their split. With a `fold`, it
 * replaces val_fraction, validation samples take part, and `classes` is as in cleat_hashed_fold. */
cleat_status cleat_split_names(const char *const *names, const int32_t *classes, size_t count, double val_fraction,
                               double test_fraction, const cleat_fold *fold, cleat_split *splits, cleat_error *error);

#endif
