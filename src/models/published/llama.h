/* Published causal language models: names of their tensors and settings in files of transformers. */
#ifndef CLEAT_SRC_PUBLISHED_LLAMA_H
#define CLEAT_SRC_PUBLISHED_LLAMA_H

#include "weights/architecture.h"

/* The members that most of them have; ACTIVATION: the key and JSON value of the gate's. */
#define CLEAT_CAUSAL_ROWS(EPS, TIED, ACTIVATION, FUNCTION)                                                             \
    {.key = "model_type", .setting = "model.network", .kind = CLEAT_JSON_TEXT},                                        \
        {.key = "vocab_size", .setting = "model.embedding_rows"}, {.key = "hidden_size", .setting = "model.d_model"},  \
        {.key = "num_attention_heads", .setting = "model.heads"},                                                      \
        {.key = "num_hidden_layers", .setting = "model.layers"},                                                       \
        {.key = "intermediate_size", .setting = "model.d_ff"},                                                         \
        {.key = "max_position_embeddings", .setting = "model.max_positions", .fallback = "2048"},                      \
        {.key = "rms_norm_eps", .setting = "model.norm_eps", .fallback = EPS, .kind = CLEAT_JSON_NUMBER},              \
        {.key = ACTIVATION, .fallback = FUNCTION, .only = FUNCTION}, {                                                 \
        .key = "tie_word_embeddings", .setting = "model.tied", .fallback = TIED, .kind = CLEAT_JSON_BOOL               \
    }

extern const cleat_architecture *const cleat_published_causal[]; /* ends with NULL */
/* The architecture of a cleat_causal_network. */
const cleat_architecture *cleat_published_causal_of(int network);
extern const cleat_architecture cleat_published_gemma3, cleat_published_gpt2;

/* Sets model.kv_heads, model.head_size, data.vocabulary, and from the object `rope` the scaling of rotary positions,
 * and their base, which older files have in config.json itself. */
cleat_status cleat_causal_configure(const cleat_weights *weights, const char *rope, const cleat_setting_sink *sink,
                                    cleat_error *error);
/* Sets a number from a member of an object ("" for config.json itself). */
cleat_status cleat_causal_set_number(const cleat_weights *weights, const char *object, const char *key,
                                     const char *setting, const cleat_setting_sink *sink, bool is_required,
                                     cleat_error *error);
/* Adds the class of the network and the members that cleat_causal_configure reads, but for gpt2. */
bool cleat_causal_describe(const cleat_model *model, struct cJSON *config);
/* Replaces a member of the object; returns false if there is no memory. */
bool cleat_causal_put(struct cJSON *config, const char *key, double value);

#endif
