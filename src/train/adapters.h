/* The adapters (LoRA) of a checkpoint: merged into the weights, or in the files of Hugging Face PEFT. */
#ifndef CLEAT_SRC_ADAPTERS_H
#define CLEAT_SRC_ADAPTERS_H

#include "core/safetensors.h"
#include "models/model.h"
#include "train/frozen_weights.h"
#include "weights/architecture.h"

/* The tensors of a checkpoint without adapters: merged weights are copies, the others are borrowed. */
typedef struct cleat_merged_tensors {
    cleat_st_tensor *items; /* [count] */
    size_t count;
    float **copies; /* [copy_count] */
    size_t copy_count;
} cleat_merged_tensors;

/* Adds (alpha / rank) B A to each weight that has adapters. A checkpoint without adapters gives its own tensors.
 * `frozen` has the exact values of some. Both must outlive *merged, which the caller clears. CLEAT_ERR_FORMAT: adapters that do not fit their weight. */
cleat_status cleat_adapters_merge(const cleat_model *model, const cleat_safetensors *values,
                                  const cleat_frozen_weights *frozen, cleat_merged_tensors *merged, cleat_error *error);
void cleat_merged_tensors_clear(cleat_merged_tensors *merged);

/* Writes adapter_model.safetensors and adapter_config.json into `folder`, which exists, as PeftModel.save_pretrained
 * does: the adapters and the head, by the names of `architecture`. *count (may be
 * NULL) receives the number of tensors. CLEAT_ERR_NOT_SUPPORTED: the checkpoint has no adapters, or the architecture
 * has no layers for them. */
cleat_status cleat_adapters_write(const cleat_model *model, const cleat_architecture *architecture,
                                  const cleat_safetensors *values, const char *folder, size_t *count,
                                  cleat_error *error);

#endif
