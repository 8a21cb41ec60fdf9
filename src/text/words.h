/* BERT's basic tokenizer: a text as normalised words, each character with the bytes of the text it comes from. */
#ifndef CLEAT_SRC_WORDS_H
#define CLEAT_SRC_WORDS_H

#include "cleat/core.h"

enum { CLEAT_WORD_CHARACTERS = 100, CLEAT_WORD_BYTES = 4 * CLEAT_WORD_CHARACTERS };

typedef enum cleat_special {
    CLEAT_SPECIAL_PAD,
    CLEAT_SPECIAL_UNK,
    CLEAT_SPECIAL_CLS,
    CLEAT_SPECIAL_SEP,
    CLEAT_SPECIAL_MASK,
    CLEAT_SPECIALS
} cleat_special;

/* "[PAD]", ... */
const char *cleat_special_name(cleat_special special);

typedef struct cleat_word {
    int special;         /* a cleat_special that was written in the text: bytes are not set; or -1 */
    uint32_t characters; /* more than CLEAT_WORD_CHARACTERS: bytes are only the first so many of them */
    uint32_t size;
    const char *bytes;             /* [size] */
    const uint32_t *begin, *end;   /* [size] bytes of the text that the character of each byte stands for */
    uint32_t text_begin, text_end; /* of the whole word */
} cleat_word;

typedef struct cleat_word_rules {
    bool lowercase;               /* and strip accents */
    bool special[CLEAT_SPECIALS]; /* those that stay whole */
} cleat_word_rules;

/* Calls `emit` for every word in turn; what it is given is valid during the call. CLEAT_ERR_ARGUMENT for a text of 4 GiB or
 * more, CLEAT_ERR_MEMORY (after some words) where a long run of accents does not fit. */
cleat_status cleat_words_split(const char *text, size_t size, const cleat_word_rules *rules,
                               void (*emit)(void *user, const cleat_word *word), void *user, cleat_error *error);

#endif
