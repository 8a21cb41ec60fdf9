/* Writing GGUF files from folders of Hugging Face. */
#ifndef CLEAT_SRC_GGUF_WRITE_H
#define CLEAT_SRC_GGUF_WRITE_H

#include "core/gguf.h"
#include "core/string.h"

struct cJSON;

/* Converts a folder with config.json, model.safetensors and tokenizer.json (of byte-level BPE, or BPE with bytes as
 * SentencePiece makes it) into a file for llama.cpp. Matrices are stored as `type` (F32, F16, BF16 or Q8_0; rows that
 * are not whole blocks: F16), all other tensors in f32. At most one tensor is in memory. *count receives the number
 * of tensors. CLEAT_ERR_NOT_SUPPORTED: an architecture, tensor or tokenizer that such files cannot express. */
cleat_status cleat_gguf_write(const char *folder, cleat_gguf_type type, const char *path, size_t *count,
                              cleat_error *error);
/* The same for the adapters of a PEFT folder (adapter_model.safetensors, adapter_config.json) beside the config.json of
 * its base: a file for llama-cli --lora. Tensors are f32. */
cleat_status cleat_gguf_write_adapters(const char *folder, const char *path, size_t *count, cleat_error *error);

/* The metadata of a file that is being written. */
typedef struct cleat_gguf_head {
    cleat_string bytes;
    uint64_t members;
} cleat_gguf_head;
void cleat_gguf_add_text(cleat_gguf_head *head, const char *key, const char *text);
/* A number of kind U32, F32 or BOOL. */
void cleat_gguf_add_number(cleat_gguf_head *head, const char *key, cleat_gguf_kind kind, double value);
/* Begins an array, whose items follow by cleat_gguf_add_item (numbers) and cleat_gguf_add_words (texts). */
void cleat_gguf_add_array(cleat_gguf_head *head, const char *key, cleat_gguf_kind kind, size_t count);
void cleat_gguf_add_item(cleat_gguf_head *head, cleat_gguf_kind kind, double value);
void cleat_gguf_add_words(cleat_gguf_head *head, const char *text);
/* Adds tokenizer.ggml.*: the tokenizer of the folder, for an embedding of `rows` rows; `config` is its config.json. */
cleat_status cleat_gguf_add_tokenizer(cleat_gguf_head *head, const char *folder, const struct cJSON *config,
                                      size_t rows, cleat_error *error);

#endif
