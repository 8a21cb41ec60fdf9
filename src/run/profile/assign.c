/* Assignments on the command line: "--set section.key=value". */
#include "profile/schema.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { PLACE_BYTES = 640, NAME_BYTES = 64, VALUE_BYTES = CLEAT_PROFILE_TEXT + 196 };

/* Copies [start, stop) without leading and trailing blanks; false if it does not fit. */
static bool copy_part(char *into, size_t room, const char *start, const char *stop) {
    while (start < stop && isspace((unsigned char)*start)) ++start;
    while (start < stop && isspace((unsigned char)stop[-1])) --stop;
    if ((size_t)(stop - start) >= room) return false;
    memcpy(into, start, (size_t)(stop - start));
    into[stop - start] = 0;
    return true;
}

/* Reports an assignment such as "epochs=3", whose section is missing, and suggests the settings of this name.
 * `value`: "=3". */
static cleat_status no_section(const cleat_schema *schema, const char *name, const char *value, const char *place,
                               cleat_error *error) {
    cleat_string hint = {0};
    for (const cleat_key *key = schema->keys; key->name; ++key)
        if (strcmp(key->name, name) == 0)
            cleat_string_add(&hint, "%s%s.%s%s", hint.size ? " or " : "did you mean ", key->section, name, value);
    cleat_fail(error, CLEAT_ERR_PROFILE, "%s: write section.key=value%s%s%s", place,
               hint.size ? "; " : ", as in train.epochs=3; `cleat train --help-profile WORD` finds settings",
               hint.data ? hint.data : "", hint.size ? "?" : "");
    cleat_string_free(&hint);
    return CLEAT_ERR_PROFILE;
}

cleat_status cleat_profile_set(cleat_profile *profile, const char *assignment_text, cleat_error *error) {
    const cleat_record record = cleat_profile_reader(profile);
    char place[PLACE_BYTES], section[NAME_BYTES], name[NAME_BYTES], value[VALUE_BYTES];
    const char *equals = strchr(assignment_text, '='), *end = assignment_text + strlen(assignment_text);
    const char *dot = memchr(assignment_text, '.', (size_t)((equals ? equals : end) - assignment_text));
    snprintf(place, sizeof place, "--set %.500s", assignment_text);
    if (!equals) return no_section(record.schema, "", "", place, error);
    if (!dot) {
        if (!copy_part(name, sizeof name, assignment_text, equals)) name[0] = 0;
        return no_section(record.schema, name, equals, place, error);
    }
    if (!copy_part(section, sizeof section, assignment_text, dot) || !copy_part(name, sizeof name, dot + 1, equals) ||
        !copy_part(value, sizeof value, equals + 1, end))
        return cleat_fail(error, CLEAT_ERR_PROFILE, "%s: is too long", place);
    const cleat_key *key;
    cleat_status status = cleat_schema_require(record.schema, section, name, place, &key, error);
    if (status) return status;
    return cleat_record_assign(&record, key, value, place, error);
}
