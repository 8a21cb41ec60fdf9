/* Reference trajectory (golden file): ten AdamW steps of a model on one batch, computed by another framework.
 *
 * The metadata of a file holds `profile` (INI text: the model, and the AdamW settings in [train]) and, for
 * sizes that a profile does not contain, `sizes` (JSON, in the format of cleat_model_set_sizes). The arrays
 * are:
 *   FIELD           one per field of the model's data, by name: "tokens", "lengths", "label", ... [B, shape...],
 *                   F32, I64 or I32; images have channels last
 *   scale           optional: the graph input of that name, if the loss weights differ from the model's
 *   output, loss    output before the first step, unless training has none; loss before each of the ten steps and
 *                   after the last
 *   param/, grad/, after/NAME   per parameter: initial value, gradient at that value, value after ten steps
 * Files of the old format, with `config` instead of `profile`, are converted by tests/golden/convert.py. */
#ifndef CLEAT_SRC_GOLDEN_H
#define CLEAT_SRC_GOLDEN_H

#include "cleat/profile.h"
#include "core/safetensors.h"
#include "core/string.h"
#include "models/model.h"

enum { CLEAT_GOLDEN_ARRAYS = 16 };

/* An array of the batch; `data` is owned by the content. */
typedef struct cleat_golden_array {
    char name[CLEAT_NAME];
    bool integers; /* data is int32_t; otherwise float */
    int rank;
    int64_t shape[CLEAT_MAX_RANK];
    void *data;
} cleat_golden_array;

/* Model description and batch of a file. Owns the arrays' data. */
typedef struct cleat_golden_content {
    cleat_string profile, sizes; /* sizes: empty if the file has none */
    cleat_golden_array arrays[CLEAT_GOLDEN_ARRAYS];
    size_t count;
} cleat_golden_content;

typedef struct cleat_golden {
    cleat_profile *profile;
    cleat_model *model;
    cleat_dataset *dataset;            /* B samples of length L */
    const cleat_golden_array *lengths; /* i32 [B]; NULL: full-length samples, or one length per patch */
    const cleat_golden_array *weights; /* f32, for the graph input `scale`; NULL: computed by the model */
    cleat_golden_content content;
} cleat_golden;

/* Reads the content, applies `assignments` [count] ("section.key=value") to its profile, and creates the
 * model and the dataset. */
cleat_status cleat_golden_open(const cleat_safetensors *file, const char *const *assignments, size_t count,
                               cleat_golden *golden, cleat_error *error);
void cleat_golden_close(cleat_golden *golden);

#endif
