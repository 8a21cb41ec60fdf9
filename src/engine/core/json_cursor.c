/* JSON from front to back: strings, whole numbers, and steps over everything else. */
#include "core/json_cursor.h"

#include <string.h>

bool cleat_json_peek(cleat_json_cursor *json, char c) {
    while (json->at < json->end && memchr(" \t\r\n", *json->at, 4)) ++json->at;
    return !json->failed && json->at < json->end && *json->at == c;
}

bool cleat_json_accept(cleat_json_cursor *json, char c) {
    const bool is_next = cleat_json_peek(json, c);
    json->at += is_next;
    return is_next;
}

bool cleat_json_next(cleat_json_cursor *json, char close, int64_t *count) {
    const bool first = (*count)++ == 0;
    if (cleat_json_accept(json, close)) return false;
    json->failed |= !first && !cleat_json_accept(json, ',');
    return !json->failed;
}

static bool read_hex(cleat_json_cursor *json, uint32_t *code) {
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    *code = 0;
    for (int i = 0; i < 4; ++i) {
        const char *digit = json->at < json->end ? memchr(digits, *json->at, 32) : NULL;
        if (!digit) return false;
        *code = *code * 16 + (uint32_t)(digit - digits) % 16;
        ++json->at;
    }
    return true;
}

/* Two units of UTF-16 are one character beyond the first 65536. */
static bool read_unicode(cleat_json_cursor *json, uint32_t *code) {
    uint32_t low;
    if (!read_hex(json, code) || *code == 0 || (*code >= 0xdc00 && *code < 0xe000)) return false;
    if (*code < 0xd800 || *code >= 0xe000) return true;
    if (json->end - json->at < 2 || memcmp(json->at, "\\u", 2) != 0) return false;
    json->at += 2;
    if (!read_hex(json, &low) || low < 0xdc00 || low >= 0xe000) return false;
    *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
    return true;
}

static char *put_utf8(uint32_t code, char *text) {
    static const uint8_t marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    const int size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (int i = size - 1; i > 0; --i, code >>= 6) text[i] = (char)(0x80 | (code & 0x3f));
    text[0] = (char)(marks[size] | code);
    return text + size;
}

/* After a backslash. NULL: there is none. */
static char *read_escape(cleat_json_cursor *json, char *text) {
    static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *name = json->at < json->end ? memchr(names, *json->at, sizeof names - 1) : NULL;
    uint32_t code;
    if (json->at == json->end || (!name && *json->at != 'u')) return NULL;
    ++json->at;
    if (name) return put_utf8((uint32_t)meant[name - names], text);
    return read_unicode(json, &code) ? put_utf8(code, text) : NULL;
}

char *cleat_json_read_text(cleat_json_cursor *json, char *text) {
    json->failed |= !cleat_json_accept(json, '"');
    while (!json->failed && json->at < json->end && *json->at != '"') {
        const char c = *json->at++;
        if (c == '\\')
            text = read_escape(json, text);
        else
            *text++ = c;
        json->failed |= !text || (unsigned char)c < 0x20;
    }
    if (json->failed || !cleat_json_accept(json, '"')) {
        json->failed = true;
        return NULL;
    }
    *text = 0;
    return text + 1;
}

bool cleat_json_read_count(cleat_json_cursor *json, int64_t *count) {
    const int64_t limit = (int64_t)1 << 53;
    int digits = 0;
    (void)cleat_json_peek(json, 0); /* steps over blanks */
    for (*count = 0; json->at < json->end && *json->at >= '0' && *json->at <= '9'; ++json->at, ++digits) {
        *count = *count * 10 + (*json->at - '0');
        if (*count > limit) return false;
    }
    return digits > 0 && json->at < json->end && !memchr(".eE", *json->at, 3);
}

void cleat_json_skip(cleat_json_cursor *json) {
    (void)cleat_json_peek(json, 0); /* steps over blanks */
    json->failed |= json->at == json->end || !memchr("\"[{-0123456789tfn", *json->at, 17);
    for (int depth = 0; json->at < json->end; ++json->at) {
        if (depth == 0 && memchr(",]}", *json->at, 3)) return;
        depth += (*json->at == '{' || *json->at == '[') - (*json->at == '}' || *json->at == ']');
        if (*json->at != '"') continue;
        for (++json->at; json->at < json->end && *json->at != '"'; ++json->at)
            if (*json->at == '\\' && json->at + 1 < json->end) ++json->at;
        if (json->at == json->end) break;
    }
    json->failed = true;
}
