/* JSON: strings, numbers, names. */
#include "core/json.h"

#include <math.h>

void cleat_json_add_string(cleat_text *text, const char *value) {
    cleat_text_add_bytes(text, "\"", 1);
    for (const char *c = value; *c; ++c) {
        if (*c == '"' || *c == '\\')
            cleat_text_add(text, "\\%c", *c);
        else if ((unsigned char)*c < 0x20 || *c == 0x7f) /* DEL: valid, but refused by some readers */
            cleat_text_add(text, "\\u%04x", (unsigned)*c);
        else
            cleat_text_add_bytes(text, c, 1);
    }
    cleat_text_add_bytes(text, "\"", 1);
}

void cleat_json_add_clean(cleat_text *text, const char *value) {
    static const char replacement[] = "\xEF\xBF\xBD";
    cleat_text clean = {0};
    for (size_t size; *value; value += size ? size : 1) {
        size = cleat_utf8_size(value);
        cleat_text_add_bytes(&clean, size ? value : replacement, size ? size : sizeof replacement - 1);
    }
    text->failed |= clean.failed;
    cleat_json_add_string(text, clean.data ? clean.data : "");
    cleat_text_free(&clean);
}

void cleat_json_add_number(cleat_text *text, double value) {
    enum { DIGITS = 9 };
    char number[32];
    if (!isfinite(value)) {
        cleat_text_add(text, "null");
    } else if (value == rint(value) && fabs(value) < 9007199254740992.0) {
        cleat_text_add(text, "%lld", (long long)value);
    } else {
        cleat_number_print_digits(value, DIGITS, number);
        cleat_text_add(text, "%s", number);
    }
}

void cleat_json_add_name(cleat_text *text, const char *name) {
    const char last = text->size ? text->data[text->size - 1] : '{';
    if (last != '{' && last != '[') cleat_text_add(text, ",");
    cleat_json_add_string(text, name);
    cleat_text_add(text, ":");
}

/* printf would write the decimal point of the locale. */
void cleat_json_add_time(cleat_text *text, double seconds) {
    const long long thousandths = llrint(seconds * 1000);
    cleat_text_add(text, "%lld.%03lld", thousandths / 1000, thousandths % 1000);
}
