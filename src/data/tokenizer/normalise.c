/* The normalisers of tokenizer.json. Each reads one text and writes another. */
#include "tokenizer/normalise.h"

#include "core/memory.h"
#include "tokenizer/classes.h"
#include "tokenizer/unicode.h"

#include <string.h>

/* Reads the character at `at` and sets its length; text here is always UTF-8. */
static int32_t char_at(const cleat_aligned_text *text, size_t at, size_t *length) {
    return cleat_utf8_next(text->bytes + at, text->size - at, length);
}

static void put_lower(cleat_aligned_text *to, int32_t character, uint32_t begin, uint32_t end) {
    if (character == 0x130) { /* the only character with a lower case of two characters */
        cleat_aligned_text_add_char(to, 'i', begin, end);
        cleat_aligned_text_add_char(to, 0x307, begin, end);
    } else {
        cleat_aligned_text_add_char(to, cleat_char_lower(character), begin, end);
    }
}

static void lowercase(const cleat_aligned_text *from, cleat_aligned_text *to) {
    if (!cleat_aligned_text_reserve(to, from->size)) return;
    for (size_t at = 0, length; at < from->size; at += length) {
        char byte = from->bytes[at];
        if (byte >= 'A' && byte <= 'Z') {
            length = 1;
            byte += 'a' - 'A';
            cleat_aligned_text_add(to, &byte, 1, from->begin[at], from->end[at]);
        } else if ((unsigned char)byte < 0x80) {
            length = 1;
            cleat_aligned_text_copy(to, from, at, 1);
        } else {
            put_lower(to, char_at(from, at, &length), from->begin[at], from->end[at]);
        }
    }
}

static void filter(const cleat_aligned_text *from, bool (*removes)(int32_t character), cleat_aligned_text *to) {
    for (size_t at = 0, length; at < from->size; at += length)
        if (!removes(char_at(from, at, &length))) cleat_aligned_text_copy(to, from, at, length);
}

static bool is_ascii(const cleat_aligned_text *text) {
    unsigned char all = 0;
    for (size_t i = 0; i < text->size; ++i) all |= (unsigned char)text->bytes[i];
    return all < 0x80;
}

/* BertNormalizer on ASCII, which has no accents and no ideographs. */
static void bert_ascii(const cleat_normaliser *n, const cleat_aligned_text *from, cleat_aligned_text *to) {
    if (!cleat_aligned_text_reserve(to, from->size)) return;
    for (size_t i = 0; i < from->size; ++i) {
        char byte = from->bytes[i];
        if (n->clean && cleat_class_bert_control((unsigned char)byte)) continue;
        if (n->clean && cleat_class_space((unsigned char)byte)) byte = ' ';
        if (n->lowercase && byte >= 'A' && byte <= 'Z') byte += 'a' - 'A';
        to->bytes[to->size] = byte;
        to->begin[to->size] = from->begin[i];
        to->end[to->size++] = from->end[i];
    }
}

/* Removes control characters, replaces other white space by spaces, and puts spaces around ideographs. */
static void bert_clean(const cleat_normaliser *n, const cleat_aligned_text *from, cleat_aligned_text *to) {
    for (size_t at = 0, length; at < from->size; at += length) {
        int32_t character = char_at(from, at, &length);
        uint32_t begin = from->begin[at], end = from->end[at];
        bool ideograph = n->ideographs && cleat_class_bert_ideograph(character);
        if (n->clean && cleat_class_bert_control(character)) continue;
        if (ideograph) cleat_aligned_text_add(to, " ", 1, begin, begin);
        if (n->clean && cleat_class_space(character))
            cleat_aligned_text_add(to, " ", 1, begin, end);
        else
            cleat_aligned_text_copy(to, from, at, length);
        if (ideograph) cleat_aligned_text_add(to, " ", 1, end, end);
    }
}

static void swap(cleat_aligned_text *a, cleat_aligned_text *b) {
    cleat_aligned_text other = *a;
    *a = *b;
    *b = other;
    b->size = 0;
    a->failed = b->failed = a->failed || b->failed;
}

static void bert(const cleat_normaliser *n, cleat_aligned_text *text, cleat_aligned_text *spare) {
    if (is_ascii(text)) {
        bert_ascii(n, text, spare);
        swap(text, spare);
        return;
    }
    bert_clean(n, text, spare);
    swap(text, spare);
    if (n->accents) {
        cleat_normal_form(text, false, false, spare);
        swap(text, spare);
        filter(text, cleat_class_bert_accent, spare);
        swap(text, spare);
    }
    if (n->lowercase) {
        lowercase(text, spare);
        swap(text, spare);
    }
}

static bool nmt_removes(int32_t c) {
    return (c >= 0x1 && c <= 0x8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
}

static bool nmt_is_space(int32_t c) {
    return c == 0x9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) || c == 0x2028 ||
           c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
}

static void nmt(const cleat_aligned_text *from, cleat_aligned_text *to) {
    for (size_t at = 0, length; at < from->size; at += length) {
        int32_t character = char_at(from, at, &length);
        if (nmt_removes(character)) continue;
        if (nmt_is_space(character))
            cleat_aligned_text_add(to, " ", 1, from->begin[at], from->end[at]);
        else
            cleat_aligned_text_copy(to, from, at, length);
    }
}

static void strip(const cleat_normaliser *n, const cleat_aligned_text *from, cleat_aligned_text *to) {
    size_t start = 0, end = from->size, length;
    while (n->left && start < end && cleat_class_space(char_at(from, start, &length))) start += length;
    while (n->right && end > start && cleat_class_space(char_at(from, cleat_utf8_previous(from->bytes, end), &length)))
        end = cleat_utf8_previous(from->bytes, end);
    cleat_aligned_text_copy(to, from, start, end - start);
}

static cleat_status replace(const cleat_normaliser *n, const cleat_aligned_text *from, cleat_aligned_text *to,
                            cleat_pattern_work *work, cleat_error *error) {
    size_t at = 0, start, end, size = strlen(n->content);
    cleat_pattern_result found;
    while ((found = cleat_pattern_find(&n->pattern, from->bytes, from->size, at, work, &start, &end)) ==
           CLEAT_PATTERN_FOUND) {
        cleat_aligned_text_copy(to, from, at, start - at);
        cleat_aligned_text_add(to, n->content, size, from->begin[start], from->end[end - 1]);
        at = end;
    }
    cleat_aligned_text_copy(to, from, at, from->size - at);
    return found == CLEAT_PATTERN_FAILED ? cleat_pattern_failure("Replace", error) : CLEAT_OK;
}

static void prepend(const cleat_normaliser *n, const cleat_aligned_text *from, cleat_aligned_text *to) {
    if (!from->size) return;
    cleat_aligned_text_add(to, n->content, strlen(n->content), from->begin[0], from->begin[0]);
    cleat_aligned_text_copy(to, from, 0, from->size);
}

/* Printable bytes map to themselves, the others, in order, to the characters from U+0100 on. */
int32_t cleat_byte_char(unsigned char byte) {
    if ((byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE) return byte;
    if (byte <= ' ') return 0x100 + byte;
    return byte == 0xAD ? 0x143 : 0x100 + 33 + (byte - 0x7F);
}

int cleat_char_byte(int32_t character) {
    const int32_t byte = character < 0x100    ? character
                         : character <= 0x120 ? character - 0x100
                         : character < 0x143  ? character - 0x121 + 0x7F
                                              : 0xAD;
    return byte >= 0 && cleat_byte_char((unsigned char)byte) == character ? byte : -1;
}

void cleat_add_byte_chars(const cleat_aligned_text *text, size_t from, size_t size, cleat_aligned_text *to) {
    if (!cleat_aligned_text_reserve(to, 2 * size)) return;
    for (size_t i = from; i < from + size; ++i)
        cleat_aligned_text_add_char(to, cleat_byte_char((unsigned char)text->bytes[i]), text->begin[i], text->end[i]);
}

static cleat_status apply(const cleat_normaliser *n, const cleat_aligned_text *from, cleat_aligned_text *to,
                          cleat_pattern_work *work, cleat_error *error) {
    switch (n->kind) {
    case CLEAT_NORMALISE_BERT: /* see bert */
        break;
    case CLEAT_NORMALISE_STRIP:
        strip(n, from, to);
        break;
    case CLEAT_NORMALISE_STRIP_ACCENTS:
        filter(from, cleat_class_mark, to);
        break;
    case CLEAT_NORMALISE_NFC:
        cleat_normal_form(from, false, true, to);
        break;
    case CLEAT_NORMALISE_NFD:
        cleat_normal_form(from, false, false, to);
        break;
    case CLEAT_NORMALISE_NFKC:
        cleat_normal_form(from, true, true, to);
        break;
    case CLEAT_NORMALISE_NFKD:
        cleat_normal_form(from, true, false, to);
        break;
    case CLEAT_NORMALISE_LOWERCASE:
        lowercase(from, to);
        break;
    case CLEAT_NORMALISE_NMT:
        nmt(from, to);
        break;
    case CLEAT_NORMALISE_PRECOMPILED:
        cleat_charsmap_apply(&n->map, from, to);
        break;
    case CLEAT_NORMALISE_REPLACE:
        return replace(n, from, to, work, error);
    case CLEAT_NORMALISE_PREPEND:
        prepend(n, from, to);
        break;
    case CLEAT_NORMALISE_BYTES:
        cleat_add_byte_chars(from, 0, from->size, to);
        break;
    }
    return CLEAT_OK;
}

cleat_status cleat_normalise(const cleat_normaliser *normaliser, cleat_aligned_text *text, cleat_aligned_text *spare,
                             cleat_pattern_work *work, cleat_error *error) {
    spare->size = 0;
    if (normaliser->kind == CLEAT_NORMALISE_BERT) {
        bert(normaliser, text, spare);
        return CLEAT_OK;
    }
    cleat_status status = apply(normaliser, text, spare, work, error);
    swap(text, spare);
    return status;
}

void cleat_normaliser_free(cleat_normaliser *normaliser) {
    cleat_pattern_free(&normaliser->pattern);
    cleat_free(normaliser->content);
    cleat_charsmap_free(&normaliser->map);
    *normaliser = (cleat_normaliser){0};
}
