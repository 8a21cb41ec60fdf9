/* Pre-tokenizers of tokenizer.json: they split a normalised text into words. */
#ifndef CLEAT_SRC_SPLIT_H
#define CLEAT_SRC_SPLIT_H

#include "tokenizer/aligned.h"
#include "tokenizer/pattern.h"

typedef enum cleat_splitter_kind {
    CLEAT_SPLIT_BERT,
    CLEAT_SPLIT_BYTE_LEVEL,
    CLEAT_SPLIT_METASPACE,
    CLEAT_SPLIT_WHITESPACE,
    CLEAT_SPLIT_WHITESPACE_SPLIT,
    CLEAT_SPLIT_PUNCTUATION,
    CLEAT_SPLIT_DIGITS,
    CLEAT_SPLIT_PATTERN
} cleat_splitter_kind;

/* Treatment of a match at which a text is split. */
typedef enum cleat_split_behaviour {
    CLEAT_MATCH_REMOVED,
    CLEAT_MATCH_ISOLATED,
    CLEAT_MATCH_MERGED_WITH_PREVIOUS,
    CLEAT_MATCH_MERGED_WITH_NEXT,
    CLEAT_MATCH_CONTIGUOUS /* neighbouring matches are one word */
} cleat_split_behaviour;

typedef enum cleat_prepend_scheme {
    CLEAT_PREPEND_ALWAYS,
    CLEAT_PREPEND_FIRST,
    CLEAT_PREPEND_NEVER
} cleat_prepend_scheme;

typedef struct cleat_splitter {
    cleat_splitter_kind kind;
    cleat_split_behaviour behaviour; /* PUNCTUATION, DIGITS, PATTERN */
    bool invert;                     /* PATTERN: the text between the matches is the match */
    bool prefix_space;               /* BYTE_LEVEL: words begin with a space */
    bool words;                      /* BYTE_LEVEL: split into words; METASPACE: split at spaces */
    cleat_prepend_scheme prepend;    /* METASPACE */
    char replacement[5];             /* METASPACE: stands for a space */
    cleat_pattern pattern;           /* PATTERN */
} cleat_splitter;

typedef struct cleat_split_state {
    cleat_aligned_text text, spare;
    cleat_text_spans words, spare_words; /* of `text` */
    cleat_pattern_work work;             /* of patterns */
    bool in_sentence;                    /* the text is a word of a sentence: byte-level words begin with a space */
} cleat_split_state;

/* Splits each word further. Out of memory sets `failed` of the texts or lists. CLEAT_ERR_FORMAT: patterns ran
 * out of steps. */
cleat_status cleat_split_words(const cleat_splitter *splitter, cleat_split_state *state, cleat_error *error);
void cleat_split_state_free(cleat_split_state *state);

#endif
