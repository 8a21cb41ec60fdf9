/* Text under normalisation: UTF-8 with the range of the source text for each byte. */
#ifndef CLEAT_SRC_ALIGNED_H
#define CLEAT_SRC_ALIGNED_H

#include "cleat/core.h"

typedef struct cleat_aligned_text {
    char *bytes; /* [size] */
    /* [size] Byte range in the source of the character to which each byte belongs. */
    uint32_t *begin, *end;
    size_t size, capacity;
    size_t most;   /* size above which it fails; 0: no limit */
    bool failed;   /* out of memory, or above the limit: later calls do nothing; the caller checks once at the end */
    bool too_long; /* above the limit */
} cleat_aligned_text;

/* Size limit of texts derived from one of `size` bytes. A tokenizer.json may repeat steps, each of which may
 * double a text; Unicode's longest decomposition has eleven times the bytes of its character. */
size_t cleat_aligned_text_most(size_t size);

/* Ensures room for `more` bytes. */
bool cleat_aligned_text_reserve(cleat_aligned_text *text, size_t more);
void cleat_aligned_text_add(cleat_aligned_text *text, const char *bytes, size_t size, uint32_t begin, uint32_t end);
void cleat_aligned_text_add_char(cleat_aligned_text *text, int32_t character, uint32_t begin, uint32_t end);
/* Appends bytes from .. from + size - 1 of another text, with their ranges. */
void cleat_aligned_text_copy(cleat_aligned_text *text, const cleat_aligned_text *other, size_t from, size_t size);
void cleat_aligned_text_free(cleat_aligned_text *text);

/* Parts of a text. */
typedef struct cleat_text_span {
    size_t start, size;
} cleat_text_span;

typedef struct cleat_text_spans {
    cleat_text_span *items; /* [count] */
    size_t count, capacity;
    bool failed;
} cleat_text_spans;

/* Appends a span, unless its size is 0. */
void cleat_spans_add(cleat_text_spans *spans, size_t start, size_t size);
void cleat_spans_free(cleat_text_spans *spans);

#endif
