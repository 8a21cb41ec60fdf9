/* BERT's basic tokenizer: splits a text into normalised words; each character refers to the bytes of the text
 * from which it comes. There are two forms: the older one (BertTokenizer of Python, see cleat/tokenizer.h),
 * and that of tokenizer.json, BertNormalizer and BertPreTokenizer. */
#ifndef CLEAT_SRC_WORDS_H
#define CLEAT_SRC_WORDS_H

#include "core/vocabulary.h"

enum { CLEAT_WORD_CHARACTERS = CLEAT_WORD_BYTES / 4 };

typedef enum cleat_special_token {
    CLEAT_SPECIAL_PAD,
    CLEAT_SPECIAL_UNK,
    CLEAT_SPECIAL_CLS,
    CLEAT_SPECIAL_SEP,
    CLEAT_SPECIAL_MASK,
    CLEAT_SPECIALS
} cleat_special_token;

/* "[PAD]", ... */
const char *cleat_special_token_name(cleat_special_token special);

typedef struct cleat_word {
    /* A cleat_special_token that occurs literally in the text, `bytes` is then not set; or -1. */
    int special;
    /* Number of characters; if it exceeds CLEAT_WORD_CHARACTERS, `bytes` contains only the first
     * CLEAT_WORD_CHARACTERS. */
    uint32_t characters;
    uint32_t size;
    const char *bytes; /* [size] */
    /* [size] Byte range in the text of the character that each byte belongs to. */
    const uint32_t *begin, *end;
    uint32_t text_begin, text_end; /* byte range of the whole word */
} cleat_word;

typedef struct cleat_word_rules {
    bool lowercase;               /* lower-case, and strip accents */
    bool published;               /* the form of tokenizer.json: unassigned characters are kept, cased text as it is */
    bool special[CLEAT_SPECIALS]; /* special tokens that are not split */
} cleat_word_rules;

/* Calls `emit` for every word in order; its argument is valid only during the call. CLEAT_ERR_ARGUMENT: the
 * text has 4 GiB or more; CLEAT_ERR_MEMORY (possibly after some words): no memory for a long run of
 * accents. */
cleat_status cleat_words_split(const char *text, size_t size, const cleat_word_rules *rules,
                               void (*emit)(void *user, const cleat_word *word), void *user, cleat_error *error);

#endif
