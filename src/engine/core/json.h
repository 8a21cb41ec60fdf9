/* Writes JSON: a document member by member, and the constructs that checkpoints, metrics and records need. */
#ifndef CLEAT_SRC_JSON_H
#define CLEAT_SRC_JSON_H

#include "core/string.h"

/* Appends `value` in quotes, escaped. Bytes from 0x80 on are copied unchanged, since all text is UTF-8. */
void cleat_json_add_string(cleat_string *text, const char *value);
/* The same of a text whose encoding is not known, such as a driver's name: bytes that are not UTF-8 become U+FFFD. */
void cleat_json_add_clean(cleat_string *text, const char *value);
/* Appends a number with at most 9 digits (a whole number with all of its digits); null if it is not finite. */
void cleat_json_add_number(cleat_string *text, double value);

/* A value with the name of its member; NULL: an element of an array, or the document itself. */
typedef struct cleat_json_value {
    const char *name;
    enum {
        JSON_OPEN,
        JSON_CLOSE,
        JSON_TEXT,
        JSON_CLEAN,
        JSON_COUNT,
        JSON_BOOL,
        JSON_NUMBER, /* here and below: number */
        JSON_TIME,
        JSON_DIGITS,
        JSON_FIXED,
        JSON_EXACT
    } kind;
    const char *text; /* NULL: null */
    double number;    /* null if it is not finite */
    int64_t count;    /* digits, bracket */
} cleat_json_value;

/* Starts a value: a comma, unless the value is the first of its object or array or follows a line break or a blank,
 * and the name. */
void cleat_json_add_name(cleat_string *json, const char *name);
void cleat_json_add_values(cleat_string *json, const cleat_json_value *values, size_t count);
/* Appends values: json_add(&json, json_open(NULL, '{'), json_text("name", name), ..., json_close('}')). */
#define json_add(json, ...)                                                                                            \
    cleat_json_add_values(json, (const cleat_json_value[]){__VA_ARGS__},                                               \
                          sizeof((const cleat_json_value[]){__VA_ARGS__}) / sizeof(cleat_json_value))

static inline cleat_json_value json_open(const char *name, char bracket) {
    return (cleat_json_value){.name = name, .kind = JSON_OPEN, .count = bracket};
}
static inline cleat_json_value json_close(char bracket) {
    return (cleat_json_value){.kind = JSON_CLOSE, .count = bracket};
}
static inline cleat_json_value json_text(const char *name, const char *text) {
    return (cleat_json_value){.name = name, .kind = JSON_TEXT, .text = text};
}
/* A text whose encoding is not known (cleat_json_add_clean). */
static inline cleat_json_value json_clean(const char *name, const char *text) {
    return (cleat_json_value){.name = name, .kind = JSON_CLEAN, .text = text};
}
/* Null for an empty text. */
static inline cleat_json_value json_some(const char *name, const char *text) {
    return json_text(name, *text ? text : NULL);
}
static inline cleat_json_value json_count(const char *name, int64_t count) {
    return (cleat_json_value){.name = name, .kind = JSON_COUNT, .count = count};
}
static inline cleat_json_value json_bool(const char *name, bool value) {
    return (cleat_json_value){.name = name, .kind = JSON_BOOL, .count = value};
}
/* As cleat_json_add_number. */
static inline cleat_json_value json_number(const char *name, double number) {
    return (cleat_json_value){.name = name, .kind = JSON_NUMBER, .number = number};
}
/* A point in time, with three decimals. */
static inline cleat_json_value json_time(const char *name, double seconds) {
    return (cleat_json_value){.name = name, .kind = JSON_TIME, .number = seconds};
}
/* With `digits` significant digits. */
static inline cleat_json_value json_digits(const char *name, double number, int digits) {
    return (cleat_json_value){.name = name, .kind = JSON_DIGITS, .number = number, .count = digits};
}
/* With `digits` decimals. */
static inline cleat_json_value json_fixed(const char *name, double number, int digits) {
    return (cleat_json_value){.name = name, .kind = JSON_FIXED, .number = number, .count = digits};
}
/* With 15 digits, or 17 where 15 are too few. */
static inline cleat_json_value json_exact(const char *name, double number) {
    return (cleat_json_value){.name = name, .kind = JSON_EXACT, .number = number};
}

#endif
