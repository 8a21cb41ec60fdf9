/* Reference trajectories (golden files): ten AdamW steps of a model on one batch, as another framework
 * computed them.
 *
 * A file has the metadata `profile` (INI text: the model, and AdamW's settings in [train]) and, for what a
 * profile does not say, `sizes` (JSON, as cleat_model_set_sizes takes it), and these arrays:
 *   FIELD           each field of the model's data by name ("tokens", "lengths", "label", ...): [B, shape...]
 *                   of F32, I64 or I32; images with channels last
 *   scale           optional: the graph's input of that name, where samples weigh otherwise than in the model
 *   output, loss    before the first step; before each of ten steps and after the last
 *   param/, grad/, after/NAME   of each parameter: before, its gradient then, and after ten steps
 * Files with `config` instead of `profile` are read by legacy_golden.c. */
#ifndef CLEAT_SRC_GOLDEN_H
#define CLEAT_SRC_GOLDEN_H

#include "cleat/profile.h"
#include "core/safetensors.h"
#include "core/text.h"
#include "models/model.h"

enum { CLEAT_GOLDEN_ARRAYS = 16 };

/* An array of the batch. */
typedef struct cleat_golden_array {
    char name[CLEAT_NAME];
    const char *source; /* the file's array that it comes from */
    bool integers;      /* int32_t; else float */
    int rank;
    int64_t shape[CLEAT_MAX_RANK];
    void *data;
} cleat_golden_array;

/* What a file says of its model and its batch. */
typedef struct cleat_golden_content {
    cleat_text profile, sizes; /* sizes: empty where there are none */
    cleat_golden_array arrays[CLEAT_GOLDEN_ARRAYS];
    size_t count;
} cleat_golden_content;

/* An empty array, to be filled, of the content. */
cleat_status cleat_golden_add(cleat_golden_content *content, const char *name, const char *source, bool integers,
                              int rank, const int64_t *shape, cleat_golden_array **array, cleat_error *error);
/* The file's array `source` under the name of a field; integers become 32 bits. */
cleat_status cleat_golden_copy(cleat_golden_content *content, const char *name, const cleat_st_tensor *source,
                               cleat_golden_array **array, cleat_error *error);
/* The content of a file without `profile`. CLEAT_ERR_NOT_SUPPORTED: no model family. On failure `content`
 * is to be freed, too. */
cleat_status cleat_legacy_golden(const cleat_safetensors *file, cleat_golden_content *content, cleat_error *error);

typedef struct cleat_golden {
    cleat_profile *profile;
    cleat_model *model;
    cleat_dataset *dataset;            /* B samples of length L */
    const cleat_golden_array *lengths; /* i32 [B]; NULL: samples are full, or each has several */
    const cleat_golden_array *weights; /* f32, as the graph's input `scale`; NULL: the model's own */
    cleat_golden_content content;
} cleat_golden;

/* Reads the content, applies `assignments` [count] ("section.key=value") to its profile, and makes model
 * and dataset. */
cleat_status cleat_golden_open(const cleat_safetensors *file, const char *const *assignments, size_t count,
                               cleat_golden *golden, cleat_error *error);
void cleat_golden_close(cleat_golden *golden);

#endif
