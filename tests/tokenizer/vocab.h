/* Helpers for the vocabulary files of the text tests. */
#ifndef CLEAT_TESTS_TEXT_VOCAB_H
#define CLEAT_TESTS_TEXT_VOCAB_H

#include "cleat/tokenizer.h"

/* The path of the single vocabulary file, unique to this process. */
const char *vocab_path(void);
/* Writes bytes to this file and returns its path. */
const char *vocab_write(const char *data, size_t size);
/* Creates a tokenizer of [PAD] [UNK] [CLS] [SEP] [MASK] and these pieces, separated by spaces, from id 5. */
cleat_tokenizer *vocab_tokenizer(const char *pieces, bool lowercase);
/* The tokens of a text as pieces separated by spaces; valid until the next call. */
const char *vocab_encode(const cleat_tokenizer *tokenizer, const char *text, size_t size);
/* CMocka group teardown: removes the file. */
int vocab_remove(void **state);

#endif
