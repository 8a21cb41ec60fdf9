/* Names of a model's outputs, and their location in the fitted preprocessing of a checkpoint. */
#ifndef CLEAT_SRC_MODELS_LABELS_H
#define CLEAT_SRC_MODELS_LABELS_H

#include "cleat/dataset.h"

typedef struct cleat_labels {
    char **names; /* [count] in the order of the outputs, owned */
    size_t count, capacity;
} cleat_labels;
void cleat_labels_clear(cleat_labels *labels);

/* The location of a family's names. */
typedef struct cleat_label_source {
    const char *file; /* of a checkpoint */
    const char *list; /* the file is a JSON object, and they are this member; NULL: the lines of the file */
    const char *(*name)(const cleat_dataset *dataset, size_t index); /* of a dataset; NULL past the last */
} cleat_label_source;

/* *labels, which the caller clears, is empty if `source` is NULL or the folder does not have its file. */
cleat_status cleat_labels_read(const cleat_label_source *source, const char *folder, cleat_labels *labels,
                               cleat_error *error);

#endif
