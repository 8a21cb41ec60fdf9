/* What an exported tokenizer says of the network that it was exported with. */
#ifndef CLEAT_SRC_EXPORT_TOKENIZER_H
#define CLEAT_SRC_EXPORT_TOKENIZER_H

#include "cleat/core.h"

/* How the network was given its texts. */
typedef struct cleat_export_texts {
    int64_t max_length; /* tokens; a longer text was cut */
    bool token_types;   /* it tells the texts of a pair apart */
    bool lowercase;     /* a vocab.txt alone: texts were converted to lower case */
    bool words;         /* a tagger: each word was encoded as inside a sentence, also the first */
} cleat_export_texts;

/* Completes the tokenizer's files in `folder` so that AutoTokenizer encodes texts as the network was given them: makes
 * tokenizer.json for a vocab.txt alone; for words sets add_prefix_space of a byte-level tokenizer;
 * tokenizer_config.json says that tokenizer.json counts as it is (tokenizer_class), names the special tokens, at most
 * the model_max_length of the network, and model_input_names where it says nothing. A folder without these files is left as it is.
 * CLEAT_ERR_FORMAT: a file is not JSON, or no tokenizer. */
cleat_status cleat_export_tokenizer(const char *folder, const cleat_export_texts *texts, cleat_error *error);

#endif
