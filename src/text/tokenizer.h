/* Internal definition of a tokenizer. */
#ifndef CLEAT_SRC_TOKENIZER_H
#define CLEAT_SRC_TOKENIZER_H

#include "cleat/text.h"
#include "text/vocabulary.h"
#include "text/words.h"

struct cleat_tokenizer {
    cleat_vocabulary vocabulary;
    cleat_word_rules rules;
    int32_t specials[CLEAT_SPECIALS]; /* ids; -1 for [MASK] if the vocabulary does not contain it */
};

/* Creates a tokenizer of these pieces; on success it takes ownership of the vocabulary. `place` is the prefix
 * of the error message if a special token is missing. */
cleat_status cleat_tokenizer_create(cleat_vocabulary *vocabulary, bool lowercase, const char *place,
                                    cleat_tokenizer **tokenizer, cleat_error *error);

#endif
