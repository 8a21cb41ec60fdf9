/* The state of a translation, shared by translate.c and export.c. */
#ifndef CLEAT_SRC_ONNX_TRANSLATOR_H
#define CLEAT_SRC_ONNX_TRANSLATOR_H

#include "onnx/translate.h"

/* Sizes of the batches of the builds; primes, so that no other size is a multiple of them by chance. */
enum { CLEAT_ONNX_BATCH = 7, CLEAT_ONNX_OTHER_BATCH = 11 };

/* The same graph at several sizes: tensors with the same index correspond. */
typedef struct cleat_onnx_builds {
    const cleat_graph *graph;  /* the one that is translated: CLEAT_ONNX_BATCH samples of lengths[0] */
    const cleat_graph *batch;  /* CLEAT_ONNX_OTHER_BATCH samples of lengths[0] */
    const cleat_graph *length; /* CLEAT_ONNX_BATCH samples of lengths[1]; NULL: the length is fixed */
    int64_t lengths[2];
} cleat_onnx_builds;

/* Names of a tensor's value: as it is, and as an image with channels first; NULL: not made. */
typedef struct cleat_onnx_tensor {
    const char *plain, *image;
} cleat_onnx_tensor;

struct cleat_onnx_translator {
    cleat_onnx_builder builder;
    cleat_onnx_builds builds;
    cleat_onnx_tensor *tensors; /* [tensors of the graph] */
    const float *(*values)(void *user, const cleat_tensor *tensor, cleat_error *error);
    void *user;
    int64_t parameters; /* elements of the initializers from the store */
};

/* Returns false if the dimension depends on batch or length in any other way than as a multiple. */
bool cleat_onnx_find_dim(const cleat_onnx_builds *builds, const cleat_tensor *tensor, int axis, cleat_onnx_dim *dim);
/* Emits all nodes of the graph. The inputs must be set. */
void cleat_onnx_translate(cleat_onnx_translator *t);

#endif
