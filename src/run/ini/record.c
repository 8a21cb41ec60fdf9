/* Records: defaults, values and the place where each was given, the dump, and error messages that cite
 * places. */
#include "ini/record.h"

#include "core/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

cleat_status cleat_record_open(const cleat_schema *schema, void *fields, cleat_record *record, cleat_error *error) {
    cleat_record opened = {
        .schema = schema, .parts = {fields}, .places = cleat_alloc(cleat_keys_count(schema->keys), sizeof(char *))};
    cleat_status status = CLEAT_OK;
    if (!opened.places) return cleat_fail(error, CLEAT_ERR_MEMORY, "out of memory creating a %s", schema->noun);
    for (const cleat_key *key = schema->keys; key->name && !status; ++key)
        if (key->initial) status = cleat_value_parse(schema->noun, key, key->initial, "default", fields, error);
    if (status) {
        cleat_record_close(&opened);
        return status;
    }
    *record = opened;
    return CLEAT_OK;
}

void cleat_record_close(cleat_record *record) {
    for (size_t i = 0; record->places && i < cleat_keys_count(record->schema->keys); ++i) cleat_free(record->places[i]);
    cleat_free(record->places);
    record->places = NULL;
}

cleat_status cleat_record_assign(const cleat_record *record, const cleat_key *key, const char *value, const char *place,
                                 cleat_error *error) {
    if (record->assign) return record->assign(record->user, key, value, place, error);
    char **kept = &record->places[key - record->schema->keys];
    char *copy = cleat_strdup(place);
    if (!copy) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", place);
    cleat_status status = cleat_value_parse(record->schema->noun, key, value, place, record->parts[key->part], error);
    if (status) {
        cleat_free(copy);
        return status;
    }
    cleat_free(*kept);
    *kept = copy;
    return CLEAT_OK;
}

/* --- dump ----------------------------------------------------------------------------------------------------- */

static bool joins_safely(char c) {
    return c == '/' || c == '_' || c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z');
}

/* Writes a long value over several lines, all but the last ending with a backslash. A piece must not begin
 * like a comment, nor begin or end with a blank. */
static void add_long_value(const char *value, cleat_string *text) {
    enum { PIECE = 120 };
    while (strlen(value) > PIECE) {
        size_t size = PIECE;
        while (size > 1 && !(joins_safely(value[size - 1]) && joins_safely(value[size]))) --size;
        if (size == 1) size = PIECE;
        cleat_string_add(text, "%.*s\\\n  ", (int)size, value);
        value += size;
    }
    cleat_string_add(text, "%s\n", value);
}

static void add_assignment(const cleat_key *key, const cleat_record *record, cleat_string *text) {
    cleat_string value = {0};
    cleat_value_print(key, record->parts[key->part], &value);
    cleat_string_add(text, "%s = ", key->name);
    add_long_value(value.data ? value.data : "", text);
    text->failed |= value.failed;
    cleat_string_free(&value);
}

void cleat_record_dump(const cleat_record *record, cleat_string *text) {
    for (const cleat_section *section = record->schema->sections; section->name; ++section) {
        bool begun = false;
        for (const cleat_key *key = record->schema->keys; key->name; ++key) {
            if (strcmp(key->section, section->name) != 0) continue;
            if (!begun) cleat_string_add(text, "\n[%s] ; %s\n", section->name, section->help);
            begun = true;
            cleat_string_add(text, "# %s\n", key->help);
            add_assignment(key, record, text);
        }
    }
}

/* --- error messages ------------------------------------------------------------------------------------------- */

static void add_place(const cleat_record *record, const char *setting, cleat_string *text) {
    const cleat_key *key = cleat_schema_find_setting(record->schema, setting);
    const char *place = record->places ? record->places[key - record->schema->keys] : NULL;
    if (place) {
        cleat_string_add(text, "%.400s", place);
        return;
    }
    cleat_string_add(text, "%s = ", setting);
    cleat_value_print(key, record->parts[key->part], text);
    cleat_string_add(text, " (default)");
}

/* other: NULL for a value that is wrong by itself. */
static cleat_status refuse(const cleat_record *record, cleat_error *error, const char *one, const char *other,
                           const char *format, va_list arguments) {
    char sentence[512];
    cleat_string places = {0};
    vsnprintf(sentence, sizeof sentence, format, arguments);
    add_place(record, one, &places);
    if (other) cleat_string_add(&places, "\n  contradicts ");
    if (other) add_place(record, other, &places);
    cleat_fail(error, CLEAT_ERR_PROFILE, "%s%s%s", places.data ? places.data : one, other ? "\n  " : ": ", sentence);
    cleat_string_free(&places);
    return CLEAT_ERR_PROFILE;
}

cleat_status cleat_record_refuse(const cleat_record *record, cleat_error *error, const char *setting,
                                 const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const cleat_status status = refuse(record, error, setting, NULL, format, arguments);
    va_end(arguments);
    return status;
}

cleat_status cleat_record_contradict(const cleat_record *record, cleat_error *error, const char *one, const char *other,
                                     const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const cleat_status status = refuse(record, error, one, other, format, arguments);
    va_end(arguments);
    return status;
}
