/* Settings of causal language models, and the network that they describe. */
#ifndef CLEAT_SRC_CAUSAL_LM_H
#define CLEAT_SRC_CAUSAL_LM_H

#include "cleat/causal_texts.h"
#include "models/model.h"
#include "nn/llama.h"

typedef enum cleat_causal_network {
    CLEAT_CAUSAL_LLAMA,
    CLEAT_CAUSAL_MISTRAL,
    CLEAT_CAUSAL_QWEN2,
    CLEAT_CAUSAL_QWEN3,
    CLEAT_CAUSAL_GEMMA3,
    CLEAT_CAUSAL_GPT2,
    CLEAT_CAUSAL_NETWORKS
} cleat_causal_network;

typedef enum cleat_rope_scaling { CLEAT_ROPE_NONE, CLEAT_ROPE_LINEAR, CLEAT_ROPE_LLAMA3 } cleat_rope_scaling;

typedef struct cleat_causal_settings {
    cleat_data_settings common;
    int network; /* a cleat_causal_network */
    int64_t d_model, heads, kv_heads, head_size, layers, d_ff, max_positions, embedding_rows, window, global_every;
    double norm_eps, rope_base, local_rope_base, query_scalar;
    int rope_scaling; /* a cleat_rope_scaling */
    double rope_factor, rope_low, rope_high;
    int64_t rope_old_length;
    int tied;
    cleat_causal_options data;
} cleat_causal_settings;

extern const cleat_model_class cleat_causal_lm;

/* By cleat_causal_network and cleat_rope_scaling; end with NULL. */
extern const char *const cleat_causal_network_names[], *const cleat_rope_scaling_names[];

/* Opens prompts of up to max_positions tokens for generation. fitted: folder of a checkpoint, or NULL; tokenizer: that
 * of another dataset of the model, which must outlive this one, or NULL. */
cleat_status cleat_causal_open_prompts(cleat_model *model, const char *path, const char *fitted,
                                       const cleat_tokenizer *tokenizer, cleat_dataset **dataset, cleat_error *error);
/* model.max_positions: the most tokens of a text. */
int64_t cleat_causal_positions(const cleat_model *model);

/* The network of a model, CLEAT_AUTO resolved. */
cleat_llama cleat_causal_shape(const cleat_model *model);

#endif
