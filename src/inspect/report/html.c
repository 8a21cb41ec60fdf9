/* Text of an HTML page: escaping, numbers, durations. */
#include "report/html.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *entity(unsigned char c) {
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

void cleat_html_text(cleat_string *out, const char *value) {
    static const char unknown[] = "\xEF\xBF\xBD";
    for (const unsigned char *at = (const unsigned char *)value; at && *at;) {
        size_t size = cleat_utf8_size((const char *)at);
        const char *name = entity(*at);
        bool control = *at < 0x20 && *at != '\n' && *at != '\t';
        if (name)
            cleat_string_add_bytes(out, name, strlen(name));
        else if (size == 0 || control || *at == 0x7F)
            cleat_string_add_bytes(out, unknown, sizeof unknown - 1);
        else
            cleat_string_add_bytes(out, (const char *)at, size);
        at += size ? size : 1;
    }
}

void cleat_html_add(cleat_string *out, const char *format, ...) {
    va_list values;
    va_start(values, format);
    for (const char *at = format; *at;) {
        const size_t plain = strcspn(at, "%");
        cleat_string_add_bytes(out, at, plain);
        at += plain;
        if (!*at) break;
        char spec[8] = "";
        memcpy(spec, at, strcspn(at, "sduf") + 1);
        at += strlen(spec);
        if (strcmp(spec, "%s") == 0)
            cleat_html_text(out, va_arg(values, const char *));
        else if (strcmp(spec, "%d") == 0)
            cleat_string_add(out, "%d", va_arg(values, int));
        else if (strcmp(spec, "%zu") == 0)
            cleat_string_add(out, "%zu", va_arg(values, size_t));
        else
            cleat_string_add(out, "%.*f", atoi(spec + 2), va_arg(values, double));
    }
    va_end(values);
}

void cleat_html_json_string(cleat_string *out, const char *value) {
    cleat_string_add_bytes(out, "\"", 1);
    for (const unsigned char *at = (const unsigned char *)value; at && *at;) {
        size_t size = cleat_utf8_size((const char *)at);
        if (size == 0)
            cleat_string_add_bytes(out, "\\ufffd", 6);
        else if (size > 1)
            cleat_string_add_bytes(out, (const char *)at, size);
        else if (*at < 0x20 || *at == 0x7F || strchr("\"\\<>&'", *at))
            cleat_string_add(out, "\\u%04x", *at);
        else
            cleat_string_add_bytes(out, (const char *)at, 1);
        at += size ? size : 1;
    }
    cleat_string_add_bytes(out, "\"", 1);
}

/* JSON does not allow ".00012" for "0.00012": only the exponent is shortened, "1.2e-05" to "1.2e-5". */
void cleat_html_number(cleat_string *out, double value, int digits) {
    char text[40];
    if (!isfinite(value)) {
        cleat_string_add_bytes(out, "null", 4);
        return;
    }
    int size = snprintf(text, sizeof text, "%.*g", digits, value);
    char *exponent = strchr(text, 'e');
    if (exponent && (exponent[2] == '0')) {
        memmove(exponent + 2, exponent + 3, strlen(exponent + 3) + 1);
        --size;
    }
    cleat_string_add_bytes(out, text, (size_t)size);
}

static const char *show_unknown(char text[CLEAT_SHOWN]) {
    snprintf(text, CLEAT_SHOWN, "–");
    return text;
}

const char *cleat_show_number(double value, char text[CLEAT_SHOWN]) {
    if (isnan(value)) return show_unknown(text);
    double size = fabs(value);
    if (size >= 10000 && size < 1e15 && value == floor(value))
        snprintf(text, CLEAT_SHOWN, "%.0f", value);
    else
        snprintf(text, CLEAT_SHOWN, "%.4g", value);
    return text;
}

const char *cleat_show_duration(double seconds, char text[CLEAT_SHOWN]) {
    char shown[CLEAT_DURATION_TEXT];
    if (!(seconds >= 0 && seconds < 1e9)) return show_unknown(text);
    snprintf(text, CLEAT_SHOWN, "%s", cleat_duration_text(seconds, shown));
    return text;
}

const char *cleat_show_share(double share, char text[CLEAT_SHOWN]) {
    if (!isfinite(share)) return show_unknown(text);
    double percent = 100 * share;
    snprintf(text, CLEAT_SHOWN, percent > 0 && percent < 9.95 ? "%.1f %%" : "%.0f %%", percent);
    return text;
}

const char *cleat_show_bytes(double bytes, char text[CLEAT_SHOWN]) {
    if (!(bytes >= 0 && bytes < 9e18)) return show_unknown(text);
    char shown[CLEAT_BYTES_TEXT];
    snprintf(text, CLEAT_SHOWN, "%s", cleat_bytes_text((int64_t)bytes, shown));
    return text;
}

const char *cleat_show_count(double count, char text[CLEAT_SHOWN]) {
    if (!(count >= 0 && count < 1e15)) return show_unknown(text);
    if (count >= 1e9)
        snprintf(text, CLEAT_SHOWN, "%.3g billion", count / 1e9);
    else if (count >= 1e6)
        snprintf(text, CLEAT_SHOWN, "%.3g million", count / 1e6);
    else if (count >= 1000)
        snprintf(text, CLEAT_SHOWN, "%d,%03d", (int)count / 1000, (int)count % 1000);
    else
        snprintf(text, CLEAT_SHOWN, "%.0f", count);
    return text;
}
