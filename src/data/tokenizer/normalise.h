/* Normalisers of tokenizer.json: steps that change the text before it is split into words. */
#ifndef CLEAT_SRC_NORMALISE_H
#define CLEAT_SRC_NORMALISE_H

#include "tokenizer/charsmap.h"
#include "tokenizer/pattern.h"

typedef enum cleat_normaliser_kind {
    CLEAT_NORMALISE_BERT,
    CLEAT_NORMALISE_STRIP,
    CLEAT_NORMALISE_STRIP_ACCENTS,
    CLEAT_NORMALISE_NFC,
    CLEAT_NORMALISE_NFD,
    CLEAT_NORMALISE_NFKC,
    CLEAT_NORMALISE_NFKD,
    CLEAT_NORMALISE_LOWERCASE,
    CLEAT_NORMALISE_NMT,
    CLEAT_NORMALISE_PRECOMPILED,
    CLEAT_NORMALISE_REPLACE,
    CLEAT_NORMALISE_PREPEND,
    CLEAT_NORMALISE_BYTES
} cleat_normaliser_kind;

typedef struct cleat_normaliser {
    cleat_normaliser_kind kind;
    bool clean, ideographs, accents, lowercase; /* BERT: its options; accents: strip them */
    bool left, right;                           /* STRIP */
    cleat_pattern pattern;                      /* REPLACE */
    char *content;                              /* REPLACE, PREPEND */
    cleat_charsmap map;                         /* PRECOMPILED */
} cleat_normaliser;

/* Applies a step to *text; `spare` holds intermediate texts, `work` is as for cleat_pattern_find. Out of memory sets
 * text->failed. CLEAT_ERR_FORMAT: no step is left. */
cleat_status cleat_normalise(const cleat_normaliser *normaliser, cleat_aligned_text *text, cleat_aligned_text *spare,
                             cleat_pattern_work *work, cleat_error *error);
void cleat_normaliser_free(cleat_normaliser *normaliser);

/* The character that stands for a byte in GPT-2's byte-level vocabulary. */
int32_t cleat_byte_char(unsigned char byte);
/* The byte that a character stands for; -1: none. */
int cleat_char_byte(int32_t character);
/* Appends the characters that stand for the bytes of text from .. from + size - 1, one for each byte. */
void cleat_add_byte_chars(const cleat_aligned_text *text, size_t from, size_t size, cleat_aligned_text *to);

/* By normal_forms.c: the normal forms of Unicode. */
void cleat_normal_form(const cleat_aligned_text *from, bool compatible, bool compose, cleat_aligned_text *to);

#endif
