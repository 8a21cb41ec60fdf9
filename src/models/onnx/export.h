/* Writing a model's prediction graph as an ONNX file. Pure host work: no device is needed. */
#ifndef CLEAT_SRC_ONNX_EXPORT_H
#define CLEAT_SRC_ONNX_EXPORT_H

#include "cleat/models.h"
#include "cleat/onnx.h"

typedef struct cleat_onnx_entry {
    const char *key, *value;
} cleat_onnx_entry;

typedef struct cleat_onnx_spec {
    const cleat_model *model; /* with the sizes of its parameters */
    /* The sequence length if it must be fixed, and the longest length tried: the longest that the profile
     * allows, or the model's fixed length. */
    int64_t length;
    /* Returns the values of a parameter or buffer, which must stay valid until the export returns; NULL: *error is
     * set. */
    const float *(*values)(void *user, const cleat_tensor *tensor, cleat_error *error);
    /* Called before the file is written, after `values` for all that the graph reads; NULL: nothing to check. */
    cleat_status (*check)(void *user, cleat_error *error);
    void *user;
    const cleat_onnx_entry *metadata; /* [n_metadata] */
    size_t n_metadata;
    bool external; /* values of parameters go to PATH.data */
} cleat_onnx_spec;

/* Writes PATH atomically. CLEAT_ERR_NOT_SUPPORTED: an operation of the graph has no translation; the message names
 * it. `report` may be NULL. */
cleat_status cleat_onnx_export(const cleat_onnx_spec *spec, const char *path, cleat_onnx_report *report,
                               cleat_error *error);

#endif
