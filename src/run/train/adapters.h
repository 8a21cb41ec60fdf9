/* The adapters (LoRA) of a checkpoint: merged into the weights, or in the files of Hugging Face PEFT. */
#ifndef CLEAT_SRC_ADAPTERS_H
#define CLEAT_SRC_ADAPTERS_H

#include "core/safetensors.h"
#include "models/model.h"
#include "train/frozen_weights.h"
#include "weights/architecture.h"

/* The tensors of a checkpoint without adapters, which are read one at a time. */
typedef struct cleat_merged_tensors {
    const cleat_model *model;
    const cleat_frozen_weights *frozen;
    cleat_st_tensor *items; /* [count] names and shapes */
    size_t count;
} cleat_merged_tensors;

/* Lists the tensors of `frozen` and its checkpoint, which must outlive *merged; the caller clears it. A
 * checkpoint without adapters has its own tensors. CLEAT_ERR_FORMAT: adapters that do not fit their
 * weight. */
cleat_status cleat_adapters_merge(const cleat_model *model, const cleat_frozen_weights *frozen,
                                  cleat_merged_tensors *merged, cleat_error *error);
/* Reads the values of one of them, plus (alpha / rank) B A if it has adapters, to values [elements]. */
cleat_status cleat_merged_tensors_read(const cleat_merged_tensors *merged, const cleat_st_tensor *tensor, float *values,
                                       cleat_error *error);
void cleat_merged_tensors_clear(cleat_merged_tensors *merged);

/* Writes adapter_model.safetensors and adapter_config.json into `folder`, which exists, as PeftModel.save_pretrained
 * does: the adapters and the head, by the names of `architecture`. `base`: the folder of the network without them;
 * NULL: not one of transformers. *count (may be NULL) receives the number of tensors. CLEAT_ERR_NOT_SUPPORTED: the
 * checkpoint has no adapters, or the architecture has no layers for them. */
cleat_status cleat_adapters_write(const cleat_model *model, const cleat_architecture *architecture,
                                  const cleat_safetensors *values, const char *base, const char *folder, size_t *count,
                                  cleat_error *error);

#endif
