/* Error messages for unknown names, with the known names that were probably meant. */
#include "ini/schema.h"

#include <string.h>

cleat_status cleat_schema_require_section(const cleat_schema *schema, const char *section, const char *place,
                                          cleat_error *error) {
    const char *names[CLEAT_INI_SECTIONS] = {0};
    size_t count = 0;
    cleat_string all = {0};
    for (const cleat_section *known = schema->sections; known->name; ++known)
        if (strcmp(known->name, section) == 0) return CLEAT_OK;
    for (const cleat_section *known = schema->sections; known->name; ++known) {
        cleat_string_add(&all, "%s[%s]", count ? ", " : "", known->name);
        names[count++] = known->name;
    }
    const char *near = cleat_nearest_name(section, names, count);
    cleat_fail(error, CLEAT_ERR_PROFILE, "%s: unknown section [%.60s]%s%s%s; the sections are %s", place, section,
               near ? "; did you mean [" : "", near ? near : "", near ? "]?" : "", all.data ? all.data : "");
    cleat_string_free(&all);
    return CLEAT_ERR_PROFILE;
}

static void unknown_key(const cleat_schema *schema, const char *section, const char *name, const char *place,
                        cleat_error *error) {
    const char *names[64] = {0};
    size_t count = 0;
    cleat_string all = {0}, hint = {0};
    const cleat_key *other = NULL; /* of that name in another section */
    for (const cleat_key *key = schema->keys; key->name; ++key) {
        if (!other && strcmp(key->name, name) == 0) other = key;
        if (strcmp(key->section, section) != 0 || count == sizeof names / sizeof *names) continue;
        cleat_string_add(&all, "%s%s", count ? ", " : "", key->name);
        names[count++] = key->name;
    }
    const char *near = cleat_nearest_name(name, names, count);
    if (other)
        cleat_string_add(&hint, "; it belongs in [%s]", other->section);
    else if (near)
        cleat_string_add(&hint, "; did you mean '%s'?", near);
    cleat_fail(error, CLEAT_ERR_PROFILE, "%s: [%s] has no key '%.60s'%s; the keys are %s", place, section, name,
               hint.data ? hint.data : "", all.data ? all.data : "");
    cleat_string_free(&hint);
    cleat_string_free(&all);
}

cleat_status cleat_schema_require(const cleat_schema *schema, const char *section, const char *name, const char *place,
                                  const cleat_key **key, cleat_error *error) {
    cleat_status status = cleat_schema_require_section(schema, section, place, error);
    if (status) return status;
    const cleat_key *found = cleat_schema_find(schema, section, name);
    if (!found) {
        unknown_key(schema, section, name, place, error);
        return CLEAT_ERR_PROFILE;
    }
    *key = found;
    return CLEAT_OK;
}
