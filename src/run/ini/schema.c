/* Queries on a schema: its size, keys by name, the help text. */
#include "ini/schema.h"

#include <stdio.h>
#include <string.h>

size_t cleat_keys_count(const cleat_key *keys) {
    size_t count = 0;
    while (keys[count].name) ++count;
    return count;
}

/* Most of the hundred or so keys compared differ in the first letter. */
static bool same(const char *a, const char *b) {
    return *a == *b && strcmp(a, b) == 0;
}

const cleat_key *cleat_schema_find(const cleat_schema *schema, const char *section, const char *name) {
    for (const cleat_key *key = schema->keys; key->name; ++key)
        if (same(key->section, section) && (same(key->name, name) || (key->former && same(key->former, name))))
            return key;
    return NULL;
}

const cleat_key *cleat_schema_find_setting(const cleat_schema *schema, const char *setting) {
    char section[32];
    const size_t length = strcspn(setting, ".");
    if (!setting[length] || length >= sizeof section) return NULL;
    snprintf(section, sizeof section, "%.*s", (int)length, setting);
    return cleat_schema_find(schema, section, setting + length + 1);
}

bool cleat_key_applies(const cleat_key *key, int kind) {
    return key->kinds == 0 || (key->kinds >> kind & 1u);
}

/* Appends "model.type is a, b". */
static void add_kinds(const cleat_schema *schema, const cleat_key *key, cleat_string *text) {
    const char *before = " is ";
    cleat_string_add(text, "%s", schema->kind_key);
    for (int k = 0; schema->kinds[k]; ++k) {
        if (!cleat_key_applies(key, k)) continue;
        cleat_string_add(text, "%s%s", before, schema->kinds[k]);
        before = ", ";
    }
}

/* A later row of the same name: the key's meaning for other kinds. */
static void add_form(const cleat_schema *schema, const cleat_key *key, cleat_string *text) {
    cleat_string_add(text, "      Where ");
    add_kinds(schema, key, text);
    cleat_string_add(text, ": %s Takes ", key->help);
    cleat_value_allowed(key, text);
    cleat_string_add(text, "; default: %s.\n", key->initial ? key->initial : "none");
}

static void add_key(const cleat_schema *schema, const cleat_key *key, cleat_string *text) {
    if (key->initial)
        cleat_string_add(text, "  %s = %s\n", key->name, key->initial);
    else
        cleat_string_add(text, "  %s (must be given)\n", key->name);
    cleat_string_add(text, "      %s\n      Takes ", key->help);
    cleat_value_allowed(key, text);
    cleat_string_add(text, ".\n");
    if (key->kinds) {
        cleat_string_add(text, "      Only where ");
        add_kinds(schema, key, text);
        cleat_string_add(text, ".\n");
    }
    for (const cleat_key *form = key + 1; form->name; ++form)
        if (same(form->name, key->name) && same(form->section, key->section)) add_form(schema, form, text);
}

void cleat_schema_help(const cleat_schema *schema, cleat_string *text) {
    for (const cleat_section *section = schema->sections; section->name; ++section) {
        cleat_string_add(text, "\n[%s] ; %s\n", section->name, section->help);
        for (const cleat_key *key = schema->keys; key->name; ++key)
            if (same(key->section, section->name) && cleat_schema_find(schema, key->section, key->name) == key)
                add_key(schema, key, text);
    }
}
