/* Writing weights as other frameworks read them. */
#ifndef CLEAT_SRC_WEIGHTS_WRITE_H
#define CLEAT_SRC_WEIGHTS_WRITE_H

#include "weights/architecture.h"

/* A network to write. */
typedef struct cleat_weights_content {
    const cleat_architecture *architecture;
    const cleat_model *model;
    /* [tensor_count] of a checkpoint of cleat: parameters and buffers, all F32; their data are not read */
    const cleat_st_tensor *tensors;
    size_t tensor_count;
    /* Reads the values of one of them, to `values` [elements]; called with `values` below. */
    cleat_status (*read)(void *user, const cleat_st_tensor *tensor, float *values, cleat_error *error);
    void *values;
    /* The value of a setting of the profile, to `text` [size]; called with `user`. */
    cleat_status (*get)(void *user, const char *setting, char *text, size_t size, cleat_error *error);
    void *user;
    const char *const *labels; /* [label_count] names of the classes, in order; NULL: unknown */
    size_t label_count;
} cleat_weights_content;

/* Writes model.safetensors with the names and layouts of the architecture into `folder`, which exists; at
 * most two copies of the largest tensor are in memory. *count (may be NULL) receives the number of tensors.
 * CLEAT_ERR_NOT_SUPPORTED: a parameter that such networks do not have. */
cleat_status cleat_weights_write(const cleat_weights_content *content, const char *folder, size_t *count,
                                 cleat_error *error);
/* Writes config.json: the members that the architecture's table takes from the settings, the labels, and the
 * members that its `describe` adds. */
cleat_status cleat_weights_write_config(const cleat_weights_content *content, const char *folder, cleat_error *error);

#endif
