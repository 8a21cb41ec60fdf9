/* The tokenizer's files in exports of text families, and the setting that the tokenizer overrides. */
#ifndef CLEAT_SRC_TEXT_TOKENIZER_H
#define CLEAT_SRC_TEXT_TOKENIZER_H

#include "models/model.h"

/* The encoding of the network's texts. */
typedef struct cleat_export_texts {
    int64_t max_length; /* tokens; a longer text was cut */
    bool token_types;   /* the network distinguishes the texts of a pair */
    bool lowercase;     /* a vocab.txt alone: texts were converted to lower case */
    bool words;         /* a tagger: each word was encoded as inside a sentence, also the first */
} cleat_export_texts;

/* Completes the tokenizer's files in `folder` so that AutoTokenizer encodes texts as in training: creates a
 * tokenizer.json for a vocab.txt alone; for words sets add_prefix_space of a byte-level tokenizer. In
 * tokenizer_config.json it sets a tokenizer_class that uses tokenizer.json unchanged, the special tokens, a
 * model_max_length of at most the network's, and model_input_names if missing. A folder without these files
 * is left as it is. CLEAT_ERR_FORMAT: a file is not JSON, or not a tokenizer. */
cleat_status cleat_export_tokenizer(const char *folder, const cleat_export_texts *texts, cleat_error *error);

/* Copies the tokenizer's files of the checkpoint and completes them by these members of cleat_export_texts. */
cleat_status cleat_text_export(const cleat_model_export *spec, bool lowercase, int64_t max_length, bool words,
                               cleat_error *error);

/* cleat_model_class.overrides: a published tokenizer determines whether it converts to lower case. */
bool cleat_text_overrides(const cleat_dataset *dataset, cleat_data_override *setting);

#endif
