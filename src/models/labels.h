/* Names of a model's outputs, and their location in the fitted preprocessing of a checkpoint. */
#ifndef CLEAT_SRC_MODELS_LABELS_H
#define CLEAT_SRC_MODELS_LABELS_H

#include "cleat/dataset.h"
#include "core/name_list.h"

/* The location of a family's names. */
typedef struct cleat_label_source {
    const char *file; /* of a checkpoint */
    const char *list; /* the file is a JSON object, and they are this member; NULL: the lines of the file */
    const char *(*name)(const cleat_dataset *dataset, size_t index); /* of a dataset; NULL past the last */
} cleat_label_source;

/* *labels, in the order of the outputs, which the caller frees, is empty if `source` is NULL or the folder lacks its
 * file. */
cleat_status cleat_labels_read(const cleat_label_source *source, const char *folder, cleat_name_list *labels,
                               cleat_error *error);

#endif
