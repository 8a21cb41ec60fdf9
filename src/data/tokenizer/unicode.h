/* Characters: UTF-8, and the character classes of BERT's basic tokenizer. */
#ifndef CLEAT_SRC_UNICODE_H
#define CLEAT_SRC_UNICODE_H

#include "cleat/core.h"

typedef enum cleat_char_class {
    CLEAT_CHAR_WORD, /* any character of no other class */
    CLEAT_CHAR_SPACE,
    CLEAT_CHAR_PUNCTUATION,
    CLEAT_CHAR_REMOVED,
    CLEAT_CHAR_IDEOGRAPH,
    CLEAT_CHAR_MARK, /* may compose with the preceding character, or be reordered after it */
} cleat_char_class;

/* The version of the Unicode tables; another version may split texts into other words. */
const char *cleat_unicode_version(void);

/* Decodes the character at text [size > 0]. Returns its length of 1 to 4 bytes, or 0 if it is not valid
 * UTF-8. */
size_t cleat_utf8_decode(const char *text, size_t size, int32_t *character);
/* The same, but a byte that is not part of valid UTF-8 is U+FFFD of length 1. */
int32_t cleat_utf8_next(const char *text, size_t size, size_t *length);
/* Offset of the last character that begins before `end` > 0. */
size_t cleat_utf8_previous(const char *text, size_t end);
/* Encodes a character and returns its length in bytes. */
size_t cleat_utf8_encode(int32_t character, char text[4]);

/* The class of a character below 0x80. */
cleat_char_class cleat_ascii_class(unsigned char character);
cleat_char_class cleat_char_classify(int32_t character);
int32_t cleat_char_lower(int32_t character);
bool cleat_char_is_accent(int32_t character); /* category Mn */
bool cleat_char_is_punctuation(int32_t character);
/* Canonical combining class; 0 for a starter. */
int cleat_char_combining(int32_t character);

/* Writes the canonical decomposition, not yet in canonical order; returns its length. */
enum { CLEAT_MAX_DECOMPOSITION = 8 };
size_t cleat_char_decompose(int32_t character, int32_t parts[CLEAT_MAX_DECOMPOSITION]);
/* Composes, in place, characters that are decomposed and in canonical order; returns the new length. */
size_t cleat_chars_compose(int32_t *characters, size_t count);

#endif
