/* Profiles as a whole: defaults, loading, the resolved dump, the help text, comparison. */
#include "profile/schema.h"

#include "core/files.h"
#include "core/memory.h"

#include <stdio.h>
#include <string.h>

cleat_record cleat_profile_record(const cleat_profile *profile) {
    return (cleat_record){.schema = &cleat_profile_schema,
                          .fields = (cleat_profile *)profile,
                          .kind = profile->model.type,
                          .places = profile->origins};
}

cleat_status cleat_profile_create(cleat_profile **profile, cleat_error *error) {
    cleat_profile *made = cleat_alloc(1, sizeof *made);
    cleat_record record = {0};
    cleat_status status = CLEAT_OK;
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "out of memory creating a profile");
    status = cleat_record_open(&cleat_profile_schema, made, &record, error);
    made->origins = record.places;
    if (status != CLEAT_OK) {
        cleat_profile_destroy(made);
        return status;
    }
    *profile = made;
    return CLEAT_OK;
}

void cleat_profile_destroy(cleat_profile *profile) {
    if (!profile) return;
    cleat_record record = cleat_profile_record(profile);
    cleat_record_close(&record);
    cleat_free(profile);
}

cleat_status cleat_profile_read_text(cleat_profile *profile, const char *name, const char *text, size_t size,
                                     cleat_error *error) {
    cleat_record record = cleat_profile_record(profile);
    return cleat_record_read_text(&record, name, text, size, error);
}

cleat_status cleat_profile_read(cleat_profile *profile, const char *path, cleat_error *error) {
    char *text;
    size_t size;
    cleat_status status = cleat_file_read(path, &text, &size, error);
    if (status != CLEAT_OK) return status;
    status = cleat_profile_read_text(profile, path, text, size, error);
    cleat_free(text);
    return status;
}

cleat_status cleat_profile_load(const char *path, const char *const *assignments, size_t count, cleat_profile **profile,
                                cleat_error *error) {
    cleat_profile *made = NULL;
    cleat_status status = cleat_profile_create(&made, error);
    if (status == CLEAT_OK) status = cleat_profile_read(made, path, error);
    for (size_t i = 0; i < count && status == CLEAT_OK; ++i) status = cleat_profile_set(made, assignments[i], error);
    if (status == CLEAT_OK) status = cleat_profile_check(made, error);
    if (status != CLEAT_OK) {
        cleat_profile_destroy(made);
        return status;
    }
    *profile = made;
    return CLEAT_OK;
}

cleat_status cleat_profile_get(const cleat_profile *profile, const char *name, char *text, size_t size,
                               cleat_error *error) {
    for (const cleat_key *key = cleat_keys; key->name; ++key) {
        size_t length = strlen(key->section);
        if (strncmp(name, key->section, length) != 0 || name[length] != '.') continue;
        if (strcmp(name + length + 1, key->name) != 0) continue;
        cleat_text value = {0};
        char *taken;
        cleat_value_print(key, profile, &value);
        cleat_status status = cleat_text_detach(&value, &taken, error);
        if (status != CLEAT_OK) return status;
        snprintf(text, size, "%s", taken);
        cleat_free(taken);
        return CLEAT_OK;
    }
    return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "profiles have no key %.100s", name);
}

bool cleat_profile_shaping_key(const cleat_profile *profile, size_t i, char *name, size_t size) {
    for (const cleat_key *key = cleat_keys; key->name; ++key) {
        if (!key->shapes || !cleat_key_applies(key, profile->model.type) || i-- > 0) continue;
        snprintf(name, size, "%s.%s", key->section, key->name);
        return true;
    }
    return false;
}

/* --- texts ---------------------------------------------------------------------------------------------------- */

cleat_status cleat_profile_dump(const cleat_profile *profile, char **text, cleat_error *error) {
    cleat_text dump = {0};
    cleat_record record = cleat_profile_record(profile);
    cleat_text_add(&dump, "# Every setting of a cleat run. Loading this file reproduces the run.\n");
    cleat_record_dump(&record, &dump);
    return cleat_text_detach(&dump, text, error);
}

cleat_status cleat_profile_write(const cleat_profile *profile, const char *path, cleat_error *error) {
    char *text;
    cleat_status status = cleat_profile_dump(profile, &text, error);
    if (status != CLEAT_OK) return status;
    status = cleat_file_write(path, text, strlen(text), error);
    cleat_free(text);
    return status;
}

cleat_status cleat_profile_help(char **text, cleat_error *error) {
    cleat_text help = {0};
    cleat_text_add(&help, "A profile is an INI file. Its keys, with their defaults:\n");
    cleat_schema_help(&cleat_profile_schema, &help);
    return cleat_text_detach(&help, text, error);
}

/* --- comparison ----------------------------------------------------------------------------------------------- */

void cleat_profile_hash(const cleat_profile *profile, char text[33]) {
    cleat_text all = {0};
    for (const cleat_key *key = cleat_keys; key->name; ++key) {
        if (!key->computes || !cleat_key_applies(key, profile->model.type)) continue;
        cleat_text_add(&all, "%s.%s=", key->section, key->name);
        cleat_value_print(key, profile, &all);
        cleat_text_add(&all, "\n");
    }
    if (all.failed)
        text[0] = 0; /* no hash: equal to none */
    else
        cleat_hash_text(all.data, all.size, text);
    cleat_text_free(&all);
}

static bool same_text(const cleat_text *a, const cleat_text *b) {
    return a->size == b->size && memcmp(a->data ? a->data : "", b->data ? b->data : "", a->size) == 0;
}

size_t cleat_profile_differences(const cleat_profile *then, const cleat_profile *now, char *text, size_t size) {
    size_t count = 0, used = 0;
    if (size) *text = 0;
    for (const cleat_key *key = cleat_keys; key->name; ++key) {
        if (!key->computes || !cleat_key_applies(key, now->model.type)) continue;
        cleat_text before = {0}, after = {0};
        cleat_value_print(key, then, &before);
        cleat_value_print(key, now, &after);
        if (!same_text(&before, &after)) {
            if (used < size) {
                int put = snprintf(text + used, size - used, "%s%s.%s = %s (was %s)", count ? ", " : "", key->section,
                                   key->name, after.data ? after.data : "", before.data ? before.data : "");
                used += put > 0 ? (size_t)put : 0;
            }
            ++count;
        }
        cleat_text_free(&before);
        cleat_text_free(&after);
    }
    return count;
}
