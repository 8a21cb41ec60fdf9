/* Vocabulary files of the text tests. */
#ifndef CLEAT_TESTS_TEXT_VOCAB_H
#define CLEAT_TESTS_TEXT_VOCAB_H

#include "cleat/text.h"

/* A path of this process, for the one file a test needs at a time. */
const char *vocab_path(void);
/* Writes bytes there and returns the path. */
const char *vocab_write(const char *data, size_t size);
/* A tokenizer of [PAD] [UNK] [CLS] [SEP] [MASK] and these pieces, separated by spaces, from id 5. */
cleat_tokenizer *vocab_tokenizer(const char *pieces, bool lowercase);
/* The tokens of a text as pieces separated by spaces; valid until the next call. */
const char *vocab_encode(const cleat_tokenizer *tokenizer, const char *text, size_t size);
/* A CMocka group teardown. */
int vocab_remove(void **state);

#endif
