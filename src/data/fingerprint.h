/* Fingerprint of the data of a run, which detects that it is resumed with different data. */
#ifndef CLEAT_SRC_DATA_FINGERPRINT_H
#define CLEAT_SRC_DATA_FINGERPRINT_H

#include "cleat/dataset.h"

typedef struct cleat_data_fingerprint {
    int64_t counts[CLEAT_SPLITS]; /* samples of each split; all 0: unknown, of an earlier version */
    char names[33];               /* hash of the samples' ids and splits, in their order */
    char content[33];             /* hash of all lengths, and of the integer fields of some samples */
    char file[33];                /* hash of the bytes, if the data are one file; else empty */
} cleat_data_fingerprint;

/* Takes the fingerprint of an open dataset; `path` is that of its data. Floating-point fields are left out,
 * because another machine may round them differently. CLEAT_ERR_IO: the file cannot be read. */
cleat_status cleat_data_fingerprint_take(const cleat_dataset *dataset, const char *path,
                                         cleat_data_fingerprint *fingerprint, cleat_error *error);

/* Writes the difference between the data of a checkpoint and the current ones to `text`. Returns false and an
 * empty text if there is none, or if the earlier data are unknown. `only_names`: lengths are cut differently,
 * so the content is not compared. */
bool cleat_data_fingerprint_differs(const cleat_data_fingerprint *then, const cleat_data_fingerprint *now,
                                    bool only_names, char *text, size_t size);

#endif
