/* JSON: strings, numbers, values with names. */
#include "core/json.h"

#include <float.h>
#include <math.h>
#include <string.h>

void cleat_json_add_string(cleat_string *text, const char *value) {
    cleat_string_add_bytes(text, "\"", 1);
    for (const char *c = value; *c; ++c) {
        if (*c == '"' || *c == '\\')
            cleat_string_add(text, "\\%c", *c);
        else if ((unsigned char)*c < 0x20 || *c == 0x7f) /* DEL: valid, but refused by some readers */
            cleat_string_add(text, "\\u%04x", (unsigned)*c);
        else
            cleat_string_add_bytes(text, c, 1);
    }
    cleat_string_add_bytes(text, "\"", 1);
}

void cleat_json_add_clean(cleat_string *text, const char *value) {
    static const char replacement[] = "\xEF\xBF\xBD";
    cleat_string clean = {0};
    for (size_t size; *value; value += size ? size : 1) {
        size = cleat_utf8_size(value);
        cleat_string_add_bytes(&clean, size ? value : replacement, size ? size : sizeof replacement - 1);
    }
    text->failed |= clean.failed;
    cleat_json_add_string(text, clean.data ? clean.data : "");
    cleat_string_free(&clean);
}

static void add_digits(cleat_string *json, double number, int digits) {
    char text[32];
    cleat_number_print_digits(number, digits, text);
    cleat_string_add(json, "%s", text);
}

void cleat_json_add_number(cleat_string *text, double value) {
    if (!isfinite(value)) {
        cleat_string_add(text, "null");
    } else if (value == rint(value) && fabs(value) < 9007199254740992.0) {
        cleat_string_add(text, "%lld", (long long)value);
    } else {
        add_digits(text, value, 9);
    }
}

/* printf would write the decimal point of the locale. */
static void add_time(cleat_string *text, double seconds) {
    const long long thousandths = llrint(seconds * 1000);
    cleat_string_add(text, "%lld.%03lld", thousandths / 1000, thousandths % 1000);
}

static int exact_digits(double number) {
    char text[32];
    double back;
    cleat_number_print_digits(number, 15, text);
    return cleat_number_parse(text, &back) && fabs(back - number) <= DBL_EPSILON * fabs(number) ? 15 : 17;
}

static void add_value(cleat_string *json, const cleat_json_value *value) {
    const bool is_number = value->kind >= JSON_NUMBER;
    if (value->kind == JSON_OPEN || value->kind == JSON_CLOSE)
        cleat_string_add(json, "%c", (char)value->count);
    else if (value->kind == JSON_COUNT)
        cleat_string_add(json, "%lld", (long long)value->count);
    else if (value->kind == JSON_BOOL)
        cleat_string_add(json, value->count ? "true" : "false");
    else if (is_number ? !isfinite(value->number) : !value->text)
        cleat_string_add(json, "null");
    else if (value->kind == JSON_TEXT)
        cleat_json_add_string(json, value->text);
    else if (value->kind == JSON_CLEAN)
        cleat_json_add_clean(json, value->text);
    else if (value->kind == JSON_TIME)
        add_time(json, value->number);
    else if (value->kind == JSON_NUMBER)
        cleat_json_add_number(json, value->number);
    else if (value->kind == JSON_DIGITS)
        add_digits(json, value->number, (int)value->count);
    else if (value->kind == JSON_FIXED)
        cleat_string_add(json, "%.*f", (int)value->count, value->number);
    else
        add_digits(json, value->number, exact_digits(value->number));
}

void cleat_json_add_name(cleat_string *json, const char *name) {
    const char last = json->size ? json->data[json->size - 1] : '\n';
    if (!strchr("{[\n ", last)) cleat_string_add(json, json->spaced ? ", " : ",");
    if (!name) return;
    cleat_json_add_string(json, name);
    cleat_string_add(json, json->spaced ? ": " : ":");
}

void cleat_json_add_values(cleat_string *json, const cleat_json_value *values, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        if (values[i].kind != JSON_CLOSE) cleat_json_add_name(json, values[i].name);
        add_value(json, &values[i]);
    }
}
