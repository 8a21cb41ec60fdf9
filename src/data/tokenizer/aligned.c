/* Growable texts with the source of each byte, and growable lists of spans. */
#include "tokenizer/aligned.h"

#include "core/memory.h"
#include "tokenizer/unicode.h"

#include <string.h>

size_t cleat_aligned_text_most(size_t size) {
    return size > (SIZE_MAX - 4096) / 64 ? SIZE_MAX : 64 * size + 4096;
}

bool cleat_aligned_text_reserve(cleat_aligned_text *text, size_t more) {
    if (text->failed || text->size + more <= text->capacity) return !text->failed;
    if (text->most && text->size + more > text->most) {
        text->failed = text->too_long = true;
        return false;
    }
    size_t capacity = text->capacity * 2 + more + 240;
    uint32_t *begin = cleat_alloc(capacity, 2 * sizeof *begin + 1); /* one allocation for the three arrays */
    if (!begin) {
        text->failed = true;
        return false;
    }
    uint32_t *end = begin + capacity;
    char *bytes = (char *)(end + capacity);
    if (text->size) {
        memcpy(bytes, text->bytes, text->size);
        memcpy(begin, text->begin, text->size * sizeof *begin);
        memcpy(end, text->end, text->size * sizeof *end);
    }
    cleat_free(text->begin);
    text->bytes = bytes;
    text->begin = begin;
    text->end = end;
    text->capacity = capacity;
    return true;
}

void cleat_aligned_text_add(cleat_aligned_text *text, const char *bytes, size_t size, uint32_t begin, uint32_t end) {
    if (!cleat_aligned_text_reserve(text, size)) return;
    for (size_t i = 0; i < size; ++i, ++text->size) {
        text->bytes[text->size] = bytes[i];
        text->begin[text->size] = begin;
        text->end[text->size] = end;
    }
}

void cleat_aligned_text_add_char(cleat_aligned_text *text, int32_t character, uint32_t begin, uint32_t end) {
    char bytes[4];
    cleat_aligned_text_add(text, bytes, cleat_utf8_encode(character, bytes), begin, end);
}

void cleat_aligned_text_copy(cleat_aligned_text *text, const cleat_aligned_text *other, size_t from, size_t size) {
    if (!size || !cleat_aligned_text_reserve(text, size)) return;
    memcpy(text->bytes + text->size, other->bytes + from, size);
    memcpy(text->begin + text->size, other->begin + from, size * sizeof *text->begin);
    memcpy(text->end + text->size, other->end + from, size * sizeof *text->end);
    text->size += size;
}

void cleat_aligned_text_free(cleat_aligned_text *text) {
    cleat_free(text->begin); /* holds all three arrays */
    *text = (cleat_aligned_text){0};
}

void cleat_spans_add(cleat_text_spans *spans, size_t start, size_t size) {
    if (!size || spans->failed) return;
    if (cleat_grow(&spans->items, spans->count, &spans->capacity, NULL) != CLEAT_OK)
        spans->failed = true;
    else
        spans->items[spans->count++] = (cleat_text_span){start, size};
}

void cleat_spans_free(cleat_text_spans *spans) {
    cleat_free(spans->items);
    *spans = (cleat_text_spans){0};
}
