/* SentencePiece's normalisation table, applied as Hugging Face's Precompiled does: a grapheme of at most 5
 * bytes is looked up as a whole, then each of its characters; the replacement of the shortest matching
 * sequence replaces everything that was looked up. */
#include "tokenizer/charsmap.h"

#include "cleat/tokenizer.h"
#include "core/memory.h"
#include "tokenizer/unicode.h"

#include <string.h>
#include <utf8proc.h>

enum { LONGEST_GRAPHEME = 5 };

static int base64_value(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes into bytes [3 / 4 of the text]; returns false if the text is not base64. */
static bool decode_base64(const char *text, size_t length, unsigned char *bytes, size_t *size) {
    uint32_t bits = 0;
    size_t count = 0, used = length;
    if (length % 4) return false;
    while (used && length - used < 2 && text[used - 1] == '=') --used;
    for (size_t i = 0; i < used; ++i) {
        int value = base64_value(text[i]);
        if (value < 0) return false;
        bits = bits << 6 | (uint32_t)value;
        if (i % 4 == 1) bytes[count++] = (unsigned char)(bits >> 4);
        if (i % 4 == 2) bytes[count++] = (unsigned char)(bits >> 2);
        if (i % 4 == 3) bytes[count++] = (unsigned char)bits;
    }
    *size = count;
    return true;
}

static uint32_t read_u32(const unsigned char *bytes) {
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* Bytes: the size of the trie, its units, the replacements. */
static cleat_status split_table(const unsigned char *bytes, size_t size, cleat_charsmap *map, cleat_error *error) {
    if (size < 4) return cleat_fail(error, CLEAT_ERR_FORMAT, "precompiled_charsmap has %zu bytes; it is damaged", size);
    size_t trie = read_u32(bytes);
    if (trie > size - 4 || trie % 4 || !trie)
        return cleat_fail(error, CLEAT_ERR_FORMAT,
                          "precompiled_charsmap declares a trie of %zu bytes but has %zu; it is damaged", trie,
                          size - 4);
    cleat_charsmap made = {.n_units = trie / 4, .size = size - 4 - trie};
    made.units = cleat_alloc(made.n_units, sizeof *made.units);
    made.texts = cleat_alloc(made.size + 1, 1);
    if (!made.units || !made.texts) {
        cleat_charsmap_free(&made);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a precompiled_charsmap");
    }
    for (size_t i = 0; i < made.n_units; ++i) made.units[i] = read_u32(bytes + 4 + 4 * i);
    memcpy(made.texts, bytes + 4 + trie, made.size);
    if (!cleat_text_check(made.texts, made.size, NULL)) {
        cleat_charsmap_free(&made);
        return cleat_fail(error, CLEAT_ERR_FORMAT, "precompiled_charsmap has texts that are not UTF-8; it is damaged");
    }
    *map = made;
    return CLEAT_OK;
}

cleat_status cleat_charsmap_read(const char *base64, cleat_charsmap *map, cleat_error *error) {
    size_t length = strlen(base64), size = 0;
    unsigned char *bytes = cleat_alloc(length / 4 * 3 + 3, 1);
    if (!bytes) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a precompiled_charsmap");
    cleat_status status = CLEAT_OK;
    if (!length)
        *map = (cleat_charsmap){0};
    else if (!decode_base64(base64, length, bytes, &size))
        status = cleat_fail(error, CLEAT_ERR_FORMAT, "precompiled_charsmap is not base64");
    else
        status = split_table(bytes, size, map, error);
    cleat_free(bytes);
    return status;
}

void cleat_charsmap_free(cleat_charsmap *map) {
    cleat_free(map->units);
    cleat_free(map->texts);
    *map = (cleat_charsmap){0};
}

/* The fields of a unit: label of the edge that leads to it (bit 31 set in leaves), whether a key ends below it, and
 * the distance to its children. */
static uint32_t label_of(uint32_t unit) {
    return unit & (1u << 31 | 0xFF);
}
static bool has_leaf(uint32_t unit) {
    return unit >> 8 & 1;
}
static uint32_t offset_of(uint32_t unit) {
    return unit >> 10 << ((unit & 1u << 9) >> 6);
}

/* The replacement of the shortest sequence that is a prefix of bytes [size]; NULL: none. */
static const char *find(const cleat_charsmap *map, const char *bytes, size_t size) {
    if (!map->n_units) return NULL;
    uint32_t at = offset_of(map->units[0]);
    for (size_t i = 0; i < size && bytes[i]; ++i) {
        at ^= (unsigned char)bytes[i];
        if (at >= map->n_units || label_of(map->units[at]) != (unsigned char)bytes[i]) return NULL;
        bool ends = has_leaf(map->units[at]);
        at ^= offset_of(map->units[at]);
        if (at >= map->n_units) return NULL;
        uint32_t value = map->units[at] & ~(1u << 31);
        if (ends) return value < map->size ? map->texts + value : NULL;
    }
    return NULL;
}

static void add_replacement(const cleat_aligned_text *from, size_t at, size_t size, const char *text,
                            cleat_aligned_text *to) {
    cleat_aligned_text_add(to, text, strlen(text), from->begin[at], from->end[at + size - 1]);
}

static void apply_to_grapheme(const cleat_charsmap *map, const cleat_aligned_text *from, size_t at, size_t size,
                              cleat_aligned_text *to) {
    const char *text = size <= LONGEST_GRAPHEME ? find(map, from->bytes + at, size) : NULL;
    if (text) {
        add_replacement(from, at, size, text, to);
        return;
    }
    for (size_t end = at + size, length; at < end; at += length) {
        (void)cleat_utf8_next(from->bytes + at, from->size - at, &length);
        text = find(map, from->bytes + at, length);
        if (text)
            add_replacement(from, at, length, text, to);
        else
            cleat_aligned_text_copy(to, from, at, length);
    }
}

/* Bytes of the grapheme at `at`. */
static size_t grapheme_size(const cleat_aligned_text *text, size_t at) {
    int32_t character, next, state = 0;
    size_t start = at, length = cleat_utf8_decode(text->bytes + at, text->size - at, &character);
    for (at += length ? length : 1; length && at < text->size; at += length, character = next) {
        unsigned char byte = (unsigned char)text->bytes[at];
        if (byte < 0x80 && !(byte == '\n' && character == '\r') && character != 0x200D && character < 0x600) break;
        length = cleat_utf8_decode(text->bytes + at, text->size - at, &next);
        if (!length || utf8proc_grapheme_break_stateful(character, next, &state)) break;
    }
    return at - start;
}

void cleat_charsmap_apply(const cleat_charsmap *map, const cleat_aligned_text *from, cleat_aligned_text *to) {
    for (size_t at = 0, size; at < from->size; at += size) {
        size = grapheme_size(from, at);
        apply_to_grapheme(map, from, at, size, to);
    }
}
