/* The normal forms of Unicode: decomposition, canonical order, composition. */
#include "tokenizer/normalise.h"

#include "core/memory.h"
#include "tokenizer/unicode.h"

#include <stdlib.h>
#include <utf8proc.h>

enum { LONGEST = 32, FIRST_SECOND = 0x300 /* no smaller character composes with the one before */ };

typedef struct form_char {
    int32_t character;
    int combining;
    uint32_t begin, end;
    uint32_t order;
} form_char;

typedef struct form {
    form_char *chars; /* [count] */
    size_t count, capacity;
    bool failed;
} form;

static void add_char(form *f, int32_t character, uint32_t begin, uint32_t end) {
    if (f->failed || cleat_grow(&f->chars, f->count, &f->capacity, NULL) != CLEAT_OK) {
        f->failed = true;
        return;
    }
    f->chars[f->count] = (form_char){character, cleat_char_combining(character), begin, end, (uint32_t)f->count};
    ++f->count;
}

static void add_decomposed(form *f, int32_t character, bool compatible, uint32_t begin, uint32_t end) {
    int32_t parts[LONGEST];
    int boundary = UTF8PROC_BOUNDCLASS_START;
    utf8proc_ssize_t count = utf8proc_decompose_char(
        character, parts, LONGEST, compatible ? UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT : UTF8PROC_DECOMPOSE, &boundary);
    if (count < 1 || count > LONGEST) {
        add_char(f, character, begin, end);
        return;
    }
    for (utf8proc_ssize_t i = 0; i < count; ++i) add_char(f, parts[i], begin, end);
}

static int by_combining_class(const void *left, const void *right) {
    const form_char *a = left, *b = right;
    return a->combining != b->combining ? a->combining - b->combining : (a->order > b->order) - (a->order < b->order);
}

/* Sorts each run of non-starters by combining class; the sort is stable. */
static void sort_marks(form *f) {
    for (size_t first = 0, last; first < f->count; first = last + 1) {
        last = first;
        while (last < f->count && f->chars[last].combining) ++last;
        if (last - first > 1) qsort(f->chars + first, last - first, sizeof *f->chars, by_combining_class);
    }
}

/* The character that two compose to, or -1. */
static int32_t composed(int32_t first, int32_t second) {
    int32_t pair[2] = {first, second};
    if (second < FIRST_SECOND) return -1;
    return cleat_chars_compose(pair, 2) == 1 ? pair[0] : -1;
}

/* Composes characters in canonical order with the last starter, unless a character between them blocks it. */
static void compose(form *f) {
    size_t count = 0, starter = SIZE_MAX;
    for (size_t i = 0; i < f->count; ++i) {
        form_char here = f->chars[i];
        bool adjacent = starter != SIZE_MAX && count == starter + 1;
        bool open = starter != SIZE_MAX && (adjacent || f->chars[count - 1].combining < here.combining);
        int32_t joined = open ? composed(f->chars[starter].character, here.character) : -1;
        if (joined >= 0) {
            f->chars[starter].character = joined;
            if (f->chars[starter].end < here.end) f->chars[starter].end = here.end;
            continue;
        }
        if (!here.combining) starter = count;
        f->chars[count++] = here;
    }
    f->count = count;
}

/* Number of bytes from `at` on that no normal form changes: ASCII, except its last character if the next one is not
 * ASCII. */
static size_t plain_size(const cleat_aligned_text *text, size_t at) {
    size_t end = at;
    while (end < text->size && (unsigned char)text->bytes[end] < 0x80) ++end;
    return end < text->size && end > at ? end - at - 1 : end - at;
}

/* Decomposes characters from `at` on up to ASCII that follows ASCII; returns the offset where it ends. */
static size_t decompose_run(const cleat_aligned_text *text, size_t at, bool compatible, form *f) {
    bool ascii = false;
    for (size_t length; at < text->size; at += length) {
        const int32_t character = cleat_utf8_next(text->bytes + at, text->size - at, &length);
        if (f->count && ascii && character < 0x80) break;
        ascii = character < 0x80;
        add_decomposed(f, character, compatible, text->begin[at], text->end[at]);
    }
    return at;
}

void cleat_normal_form(const cleat_aligned_text *from, bool compatible, bool compose_too, cleat_aligned_text *to) {
    form f = {0};
    for (size_t at = 0; at < from->size;) {
        size_t plain = plain_size(from, at);
        cleat_aligned_text_copy(to, from, at, plain);
        at += plain;
        if (at == from->size) break;
        f.count = 0;
        at = decompose_run(from, at, compatible, &f);
        sort_marks(&f);
        if (compose_too) compose(&f);
        for (size_t i = 0; i < f.count; ++i)
            cleat_aligned_text_add_char(to, f.chars[i].character, f.chars[i].begin, f.chars[i].end);
    }
    if (f.failed) to->failed = true;
    cleat_free(f.chars);
}
