/* Weights in the formats of other frameworks. Loading is a setting of a profile, model.init. */
#ifndef CLEAT_WEIGHTS_H
#define CLEAT_WEIGHTS_H

#include "cleat/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cleat_weights_format {
    CLEAT_WEIGHTS_HF,    /* config.json, model.safetensors and tokenizer files for from_pretrained of transformers */
    CLEAT_WEIGHTS_TIMM,  /* config.json and model.safetensors for timm; torchvision's ResNets have the same names */
    CLEAT_WEIGHTS_CLEAT, /* model.safetensors, profile.ini and the fitted preprocessing: a model.init without training
                            state */
    CLEAT_WEIGHTS_PEFT,  /* adapter_model.safetensors and adapter_config.json: the adapters of a LoRA training and the
                            head, for PeftModel.from_pretrained of peft; HF and TIMM merge adapters */
    CLEAT_WEIGHTS_GGUF_F32, /* model.gguf for llama.cpp: a causal language model and its tokenizer, with merged adapters;
                               F32 and the following: the type of its matrices */
    CLEAT_WEIGHTS_GGUF_F16,
    CLEAT_WEIGHTS_GGUF_BF16,
    CLEAT_WEIGHTS_GGUF_Q8_0,
    CLEAT_WEIGHTS_GGUF_LORA, /* adapter.gguf: the adapters of a LoRA training for llama-cli --lora */
} cleat_weights_format;

typedef struct cleat_weights_export_report {
    size_t tensors, files;
    int64_t bytes; /* of all files */
} cleat_weights_export_report;

/* Writes the weights of a checkpoint into the folder `out`, which is created and must be empty. `checkpoint`
 * as for cleat_evaluate; `profile` is the one of the training (cleat_profile_of_checkpoint). No device is
 * used; *report may be NULL. CLEAT_ERR_NOT_SUPPORTED: the network has no counterpart in the format. */
CLEAT_API cleat_status cleat_export_weights(const cleat_profile *profile, const char *checkpoint,
                                            cleat_weights_format format, const char *out,
                                            cleat_weights_export_report *report, cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif
