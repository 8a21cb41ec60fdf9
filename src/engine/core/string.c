/* Growable strings, and numbers in the C locale. */
#include "core/string.h"

#include "core/memory.h"
#include "platform/text.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool make_room(cleat_string *text, size_t more) {
    if (text->failed) return false;
    while (text->capacity <= text->size + more)
        if (cleat_grow(&text->data, text->capacity, &text->capacity, NULL) != CLEAT_OK) {
            text->failed = true;
            return false;
        }
    return true;
}

void cleat_string_reserve(cleat_string *text, size_t size) {
    const size_t wanted = text->size + size + 1;
    if (text->failed || wanted <= text->capacity) return;
    char *made = cleat_alloc(wanted, 1);
    if (!made) {
        text->failed = true;
        return;
    }
    if (text->data) memcpy(made, text->data, text->size + 1);
    cleat_free(text->data);
    text->data = made;
    text->capacity = wanted;
}

void cleat_string_add_bytes(cleat_string *text, const char *bytes, size_t size) {
    if (!make_room(text, size)) return;
    if (size) memcpy(text->data + text->size, bytes, size); /* `bytes` may be NULL then */
    text->size += size;
    text->data[text->size] = 0;
}

void cleat_string_add_field(cleat_string *text, const char *field) {
    if (!strpbrk(field, ",\"\r\n")) {
        cleat_string_add_bytes(text, field, strlen(field));
        return;
    }
    cleat_string_add_bytes(text, "\"", 1);
    for (const char *c = field; *c; ++c) {
        if (*c == '"') cleat_string_add_bytes(text, "\"", 1);
        cleat_string_add_bytes(text, c, 1);
    }
    cleat_string_add_bytes(text, "\"", 1);
}

void cleat_string_add(cleat_string *text, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int size = vsnprintf(NULL, 0, format, arguments);
    if (size >= 0 && make_room(text, (size_t)size)) {
        vsnprintf(text->data + text->size, (size_t)size + 1, format, again);
        text->size += (size_t)size;
    }
    va_end(again);
    va_end(arguments);
}

void cleat_string_add_base64(cleat_string *text, const uint8_t *bytes, size_t size) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        const size_t left = size - i;
        const uint32_t three =
            (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) | (left > 2 ? bytes[i + 2] : 0);
        const char four[4] = {digits[three >> 18], digits[three >> 12 & 63], left > 1 ? digits[three >> 6 & 63] : '=',
                              left > 2 ? digits[three & 63] : '='};
        cleat_string_add_bytes(text, four, 4);
    }
}

void cleat_string_free(cleat_string *text) {
    cleat_free(text->data);
    *text = (cleat_string){0};
}

cleat_status cleat_string_detach(cleat_string *text, char **out, cleat_error *error) {
    cleat_string_add_bytes(text, "", 0); /* an empty string is valid */
    if (text->failed) {
        cleat_string_free(text);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "out of memory building a string");
    }
    *out = text->data;
    *text = (cleat_string){0};
    return CLEAT_OK;
}

bool cleat_number_parse(const char *text, double *value) {
    if (!isdigit((unsigned char)*text) && !strchr("+-.", *text)) return false;
    if (strpbrk(text, "xXpPnN")) return false; /* reject hexadecimal, inf, nan */
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    char *end;
    double parsed = plain ? strtod_l(text, &end, plain) : strtod(text, &end);
    if (plain) freelocale(plain);
    if (end == text || *end || !isfinite(parsed)) return false;
    *value = parsed;
    return true;
}

void cleat_number_print_digits(double value, int digits, char text[32]) {
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = plain ? uselocale(plain) : (locale_t)0;
    snprintf(text, 32, "%.*g", digits, value);
    if (plain) {
        uselocale(before);
        freelocale(plain);
    }
}

void cleat_number_print(double value, char text[32]) {
    double back;
    for (int digits = 6; digits < 17; ++digits) {
        cleat_number_print_digits(value, digits, text);
        if (cleat_number_parse(text, &back) && back == value) return;
    }
    cleat_number_print_digits(value, 17, text);
}

bool cleat_has_word(const char *list, const char *word, char between) {
    const size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, between), at = at ? at + 1 : NULL)
        if (strncmp(at, word, length) == 0 && (at[length] == between || !at[length])) return true;
    return false;
}

/* Overlong forms, surrogates and numbers above U+10FFFF are not characters. */
size_t cleat_utf8_size(const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    size_t size = at[0] < 0x80 ? 1 : at[0] >= 0xC2 && at[0] < 0xE0 ? 2 : at[0] >= 0xE0 && at[0] < 0xF0 ? 3 : 0;
    if (at[0] >= 0xF0 && at[0] < 0xF5) size = 4;
    for (size_t i = 1; i < size; ++i)
        if ((at[i] & 0xC0) != 0x80) return 0;
    if (size == 3 && ((at[0] == 0xE0 && at[1] < 0xA0) || (at[0] == 0xED && at[1] > 0x9F))) return 0;
    if (size == 4 && ((at[0] == 0xF0 && at[1] < 0x90) || (at[0] == 0xF4 && at[1] > 0x8F))) return 0;
    return size;
}

const char *cleat_bytes_text(int64_t bytes, char text[CLEAT_BYTES_TEXT]) {
    static const char *const units[] = {"KiB", "MiB", "GiB"};
    double value = (double)bytes / 1024;
    int unit = 0;
    if (bytes < 1024)
        snprintf(text, CLEAT_BYTES_TEXT, "%lld bytes", (long long)bytes);
    else {
        for (; unit < 2 && value >= 1023.995; ++unit) value /= 1024;
        snprintf(text, CLEAT_BYTES_TEXT, "%.2f %s", value, units[unit]);
    }
    return text;
}

const char *cleat_duration_text(double seconds, char text[CLEAT_DURATION_TEXT]) {
    const bool known = seconds >= 0 && seconds < 1e9;
    const int s = known ? (int)(seconds + 0.5) : 0;
    if (!known)
        snprintf(text, CLEAT_DURATION_TEXT, "?");
    else if (seconds > 0 && seconds < 0.9995)
        snprintf(text, CLEAT_DURATION_TEXT, "%.3g ms", seconds * 1000);
    else if (seconds < 10)
        snprintf(text, CLEAT_DURATION_TEXT, "%.3g s", seconds);
    else if (s < 60)
        snprintf(text, CLEAT_DURATION_TEXT, "%d s", s);
    else if (s < 3600)
        snprintf(text, CLEAT_DURATION_TEXT, "%d min %02d s", s / 60, s % 60);
    else if (s < 86400)
        snprintf(text, CLEAT_DURATION_TEXT, "%d h %02d min", s / 3600, s / 60 % 60);
    else
        snprintf(text, CLEAT_DURATION_TEXT, "%d d %02d h", s / 86400, s / 3600 % 24);
    return text;
}
