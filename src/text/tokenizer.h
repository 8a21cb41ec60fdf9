/* The inside of a tokenizer. */
#ifndef CLEAT_SRC_TOKENIZER_H
#define CLEAT_SRC_TOKENIZER_H

#include "cleat/text.h"
#include "text/vocabulary.h"
#include "text/words.h"

struct cleat_tokenizer {
    cleat_vocabulary vocabulary;
    cleat_word_rules rules;
    int32_t specials[CLEAT_SPECIALS]; /* ids; -1 for [MASK] where there is none */
};

/* A tokenizer of these pieces, which it takes over on success. `place` begins the error's text where a special token is
 * missing. */
cleat_status cleat_tokenizer_create(cleat_vocabulary *vocabulary, bool lowercase, const char *place,
                                    cleat_tokenizer **tokenizer, cleat_error *error);

#endif
