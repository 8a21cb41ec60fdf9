/* Names of a model's classes, from the fitted preprocessing of a checkpoint. */
#ifndef CLEAT_SRC_TRAIN_EXPORT_LABELS_H
#define CLEAT_SRC_TRAIN_EXPORT_LABELS_H

#include "cleat/core.h"

typedef struct cleat_labels {
    char **names; /* [count] in the order of the outputs, owned */
    size_t count, capacity;
} cleat_labels;

/* Reads labels.txt (texts) or the classes of pictures.json (images) in `folder`; *labels is empty where it has neither.
 * The caller clears it. CLEAT_ERR_FORMAT: pictures.json is no JSON. */
cleat_status cleat_labels_read(const char *folder, cleat_labels *labels, cleat_error *error);
void cleat_labels_clear(cleat_labels *labels);

#endif
