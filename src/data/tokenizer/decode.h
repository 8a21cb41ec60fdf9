/* Decoders of tokenizer.json: steps that change the texts of tokens, which are then joined. */
#ifndef CLEAT_SRC_DECODE_H
#define CLEAT_SRC_DECODE_H

#include "cleat/tokenizer.h"
#include "core/string.h"
#include "tokenizer/pattern.h"

typedef enum cleat_decoder_kind {
    CLEAT_DECODE_BYTE_LEVEL, /* all tokens become one */
    CLEAT_DECODE_METASPACE,
    CLEAT_DECODE_BYTE_FALLBACK,
    CLEAT_DECODE_FUSE, /* all tokens become one */
    CLEAT_DECODE_STRIP,
    CLEAT_DECODE_REPLACE,
    CLEAT_DECODE_WORDPIECE,
    CLEAT_DECODE_BLANKS /* no decoder: blanks between the tokens */
} cleat_decoder_kind;

typedef struct cleat_decoder {
    cleat_decoder_kind kind;
    cleat_pattern pattern; /* REPLACE */
    char *content;         /* REPLACE; STRIP, METASPACE: a character; WORDPIECE: the prefix of pieces inside a word */
    bool first, cleanup;   /* METASPACE: the first token loses its marks; WORDPIECE: no blanks before punctuation */
    size_t start, stop;    /* STRIP: the number of characters, at most */
} cleat_decoder;

void cleat_decoder_free(cleat_decoder *decoder);

/* Texts of tokens, one after the other; zero-initialised. */
typedef struct cleat_token_texts {
    cleat_string bytes;
    size_t *ends; /* [count] end of each text */
    size_t count, capacity;
} cleat_token_texts;

/* Appends a token; out of memory sets bytes.failed. */
void cleat_token_texts_add(cleat_token_texts *texts, const char *bytes, size_t size);
void cleat_token_texts_free(cleat_token_texts *texts);

/* Applies a step to *texts; `spare` holds intermediate texts. CLEAT_ERR_FORMAT: no step of `work` is left. */
cleat_status cleat_decode_step(const cleat_decoder *decoder, cleat_token_texts *texts, cleat_token_texts *spare,
                               cleat_pattern_work *work, cleat_error *error);

/* The byte of a token such as "<0x0A>"; -1: another token. */
int cleat_fallback_byte(const char *text, size_t size);

#endif
