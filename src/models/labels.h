/* Names of a model's outputs, and where they are in the fitted preprocessing of a checkpoint. */
#ifndef CLEAT_SRC_MODELS_LABELS_H
#define CLEAT_SRC_MODELS_LABELS_H

#include "cleat/dataset.h"

typedef struct cleat_labels {
    char **names; /* [count] in the order of the outputs, owned */
    size_t count, capacity;
} cleat_labels;
void cleat_labels_clear(cleat_labels *labels);

/* How a family finds them. */
typedef struct cleat_label_source {
    const char *file; /* of the checkpoint's folder */
    /* Appends those of the file's `text`, which it may change. `path` is for messages. */
    cleat_status (*read)(char *text, const char *path, cleat_labels *labels, cleat_error *error);
    const char *(*name)(const cleat_dataset *dataset, size_t index); /* of a dataset; NULL: there are no more */
} cleat_label_source;
/* Sources' `read`: the lines of a file, and the member `classes` of a JSON object. */
cleat_status cleat_labels_read_lines(char *text, const char *path, cleat_labels *labels, cleat_error *error);
cleat_status cleat_labels_read_classes(char *text, const char *path, cleat_labels *labels, cleat_error *error);

/* *labels, which the caller clears, is empty if `source` is NULL or the folder does not have its file. */
cleat_status cleat_labels_read(const cleat_label_source *source, const char *folder, cleat_labels *labels,
                               cleat_error *error);

#endif
