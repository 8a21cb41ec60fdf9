/* UTF-8, and character classes from the tables of utf8proc. */
#include "tokenizer/unicode.h"

#include "cleat/tokenizer.h"

#include <utf8proc.h>

static bool is_continuation(unsigned char byte) {
    return (byte & 0xC0) == 0x80;
}

/* Number of bytes that a first byte announces; 0: it cannot be a first byte. C0 and C1 could only begin
 * overlong forms; nothing begins with F5 or above. */
static size_t announced(unsigned char first) {
    if (first < 0x80) return 1;
    if (first < 0xC2) return 0;
    if (first < 0xE0) return 2;
    if (first < 0xF0) return 3;
    return first < 0xF5 ? 4 : 0;
}

size_t cleat_utf8_decode(const char *text, size_t size, int32_t *character) {
    static const int32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    static const unsigned char payload[5] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    const unsigned char *bytes = (const unsigned char *)text;
    size_t length = announced(bytes[0]);
    if (length == 0 || length > size) return 0;
    int32_t value = bytes[0] & payload[length];
    for (size_t i = 1; i < length; ++i) {
        if (!is_continuation(bytes[i])) return 0;
        value = value << 6 | (bytes[i] & 0x3F);
    }
    if (value < least[length] || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return 0;
    *character = value;
    return length;
}

int32_t cleat_utf8_next(const char *text, size_t size, size_t *length) {
    int32_t character = 0xFFFD;
    *length = cleat_utf8_decode(text, size, &character);
    if (!*length) *length = 1;
    return character;
}

size_t cleat_utf8_previous(const char *text, size_t end) {
    size_t at = end - 1;
    while (at && is_continuation((unsigned char)text[at])) --at;
    return at;
}

size_t cleat_utf8_encode(int32_t character, char text[4]) {
    return (size_t)utf8proc_encode_char(character, (utf8proc_uint8_t *)text);
}

bool cleat_text_check(const char *text, size_t size, size_t *bad_byte) {
    int32_t character;
    for (size_t at = 0, length; at < size; at += length) {
        length = (unsigned char)text[at] < 0x80 ? 1 : cleat_utf8_decode(text + at, size - at, &character);
        if (length) continue;
        if (bad_byte) *bad_byte = at;
        return false;
    }
    return true;
}

const char *cleat_unicode_version(void) {
    return utf8proc_version();
}

cleat_char_class cleat_ascii_class(unsigned char character) {
    enum { W = CLEAT_CHAR_WORD, S = CLEAT_CHAR_SPACE, P = CLEAT_CHAR_PUNCTUATION, R = CLEAT_CHAR_REMOVED };
    static const unsigned char classes[128] = {
        R, R, R, R, R, R, R, R, R, S, S, R, R, S, R, R, /* controls */
        R, R, R, R, R, R, R, R, R, R, R, R, R, R, R, R, /* controls */
        S, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, /* space to / */
        W, W, W, W, W, W, W, W, W, W, P, P, P, P, P, P, /* 0 to ? */
        P, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, /* @ to O */
        W, W, W, W, W, W, W, W, W, W, W, P, P, P, P, P, /* P to _ */
        P, W, W, W, W, W, W, W, W, W, W, W, W, W, W, W, /* ` to o */
        W, W, W, W, W, W, W, W, W, W, W, P, P, P, P, R, /* p to delete */
    };
    return (cleat_char_class)classes[character];
}

/* The blocks that the authors of BERT chose; later CJK extensions are not among them. */
static bool is_ideograph(int32_t c) {
    if (c < 0x3400) return false;
    return c <= 0x4DBF || (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0xF900 && c <= 0xFAFF) ||
           (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2CEAF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

/* The Jamo that compose with a Hangul syllable: vowels and final consonants. */
static bool is_joining_jamo(int32_t c) {
    return (c >= 0x1161 && c <= 0x1175) || (c >= 0x11A8 && c <= 0x11C2);
}

cleat_char_class cleat_char_classify(int32_t character) {
    if (character < 0x80) return cleat_ascii_class((unsigned char)character);
    if (character == 0xFFFD) return CLEAT_CHAR_REMOVED;
    if (is_joining_jamo(character)) return CLEAT_CHAR_MARK;
    switch (utf8proc_category(character)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
        return CLEAT_CHAR_REMOVED;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return CLEAT_CHAR_SPACE;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
        return CLEAT_CHAR_MARK;
    default:
        if (is_ideograph(character)) return CLEAT_CHAR_IDEOGRAPH;
        return cleat_char_is_punctuation(character) ? CLEAT_CHAR_PUNCTUATION : CLEAT_CHAR_WORD;
    }
}

bool cleat_char_is_punctuation(int32_t character) {
    if (character < 0x80) return cleat_ascii_class((unsigned char)character) == CLEAT_CHAR_PUNCTUATION;
    switch (utf8proc_category(character)) {
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
        return true;
    default:
        return false;
    }
}

bool cleat_char_is_accent(int32_t character) {
    return utf8proc_category(character) == UTF8PROC_CATEGORY_MN;
}

/* Lower-cases one character. The full mapping of U+0130 alone has two characters (i and U+0307), and the
 * accent U+0307 is stripped wherever text is lower-cased. */
int32_t cleat_char_lower(int32_t character) {
    return utf8proc_tolower(character);
}

int cleat_char_combining(int32_t character) {
    return utf8proc_get_property(character)->combining_class;
}

size_t cleat_char_decompose(int32_t character, int32_t parts[CLEAT_MAX_DECOMPOSITION]) {
    int boundary = UTF8PROC_BOUNDCLASS_START;
    utf8proc_ssize_t count =
        utf8proc_decompose_char(character, parts, CLEAT_MAX_DECOMPOSITION, UTF8PROC_DECOMPOSE, &boundary);
    if (count >= 1 && count <= CLEAT_MAX_DECOMPOSITION) return (size_t)count;
    parts[0] = character;
    return 1;
}

size_t cleat_chars_compose(int32_t *characters, size_t count) {
    utf8proc_ssize_t composed =
        utf8proc_normalize_utf32(characters, (utf8proc_ssize_t)count, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    return composed < 0 ? count : (size_t)composed;
}
