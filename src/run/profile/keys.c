/* Key tables of a profile: the keys of all model families together, and those of one family. */
#include "profile/schema.h"

#include "core/memory.h"

#include <string.h>

static size_t count_families(void) {
    size_t count = 0;
    while (cleat_model_classes[count]) ++count;
    return count;
}

static cleat_key type_key(const cleat_profile_keys *keys) {
    cleat_key key = cleat_run_keys[0];
    key.choices = keys->types;
    key.initial = keys->types[0];
    return key;
}

/* --- all families --------------------------------------------------------------------------------------------- */

/* Each key is compared with a hundred others, most of which differ in the first letter. */
static bool same(const char *a, const char *b) {
    return *a == *b && strcmp(a, b) == 0;
}

static bool has_same_help(const cleat_key *a, const cleat_key *b) {
    return strcmp(a->help, b->help) == 0 && a->choices == b->choices && a->min == b->min && a->max == b->max &&
           (a->initial && b->initial ? strcmp(a->initial, b->initial) == 0 : a->initial == b->initial);
}

/* Searches from *next on, and wraps around. Two lists mostly have their common keys in the same order, so
 * the next wanted one is usually found at once. */
static cleat_key *find(cleat_key *keys, size_t count, const cleat_key *wanted, bool apart, size_t *next) {
    for (size_t i = 0, at = *next; i < count; ++i, ++at) {
        if (at >= count) at = 0;
        if (!same(keys[at].name, wanted->name) || !same(keys[at].section, wanted->section)) continue;
        if (apart && !has_same_help(&keys[at], wanted)) continue;
        *next = at + 1;
        return &keys[at];
    }
    return NULL;
}

/* Appends the keys of `section` that `all` does not contain yet; the `kinds` of a key is the set of
 * families that have it. */
static void add_section(cleat_key *all, size_t *count, const char *section, bool apart) {
    size_t next = 0;
    for (size_t f = 0; cleat_model_classes[f]; ++f)
        for (const cleat_key *key = cleat_model_classes[f]->keys; key->name; ++key) {
            if (strcmp(key->section, section) != 0) continue;
            cleat_key *known = find(all, *count, key, apart, &next);
            if (!known) {
                known = &all[(*count)++];
                *known = *key;
                known->part = CLEAT_PART_FAMILY;
                known->kinds = 0;
            }
            known->kinds |= UINT64_C(1) << f;
        }
}

static cleat_status make_all(cleat_profile_keys *keys, cleat_error *error) {
    const size_t families = count_families();
    const uint64_t every = families < 64 ? (UINT64_C(1) << families) - 1 : UINT64_MAX;
    uint64_t with_buckets = 0;
    size_t room = cleat_keys_count(cleat_run_keys), count = 0;
    for (size_t f = 0; f < families; ++f) {
        room += cleat_keys_count(cleat_model_classes[f]->keys);
        if (!cleat_model_classes[f]->fixed_length) with_buckets |= UINT64_C(1) << f;
    }
    cleat_key *all = cleat_alloc(room + 1, sizeof *all);
    if (!all) return cleat_fail(error, CLEAT_ERR_MEMORY, "out of memory creating a profile");
    all[count++] = type_key(keys);
    all[count++] = cleat_run_keys[CLEAT_INIT_KEY];
    for (const cleat_section *section = cleat_profile_sections; section->name; ++section)
        add_section(all, &count, section->name, keys->apart);
    for (const cleat_key *key = cleat_run_keys + CLEAT_INIT_KEY + 1; key->name; ++key) {
        all[count] = *key;
        if (key->kinds) all[count].kinds = with_buckets;
        ++count;
    }
    for (size_t i = 0; i < count; ++i)
        if (all[i].kinds == every) all[i].kinds = 0;
    keys->all = (cleat_schema){.noun = "profile",
                               .sections = cleat_profile_sections,
                               .keys = all,
                               .kind_key = "model.type",
                               .kinds = keys->types};
    return CLEAT_OK;
}

cleat_status cleat_profile_keys_open(cleat_profile_keys *keys, cleat_error *error) {
    const size_t families = count_families();
    if (families < 1 || families > 64)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%zu model families; there may be 1 to 64", families);
    keys->types = cleat_alloc(families + 1, sizeof *keys->types);
    if (!keys->types) return cleat_fail(error, CLEAT_ERR_MEMORY, "out of memory creating a profile");
    for (size_t f = 0; f < families; ++f) keys->types[f] = cleat_model_classes[f]->name;
    cleat_status status = make_all(keys, error);
    if (status) return status;
    keys->n_all = cleat_keys_count(keys->all.keys);
    keys->given = cleat_alloc(keys->n_all, sizeof *keys->given);
    return keys->given ? CLEAT_OK : cleat_fail(error, CLEAT_ERR_MEMORY, "out of memory creating a profile");
}

void cleat_profile_keys_close(cleat_profile_keys *keys) {
    for (size_t i = 0; keys->given && keys->all.keys[i].name; ++i) {
        cleat_free(keys->given[i].value);
        cleat_free(keys->given[i].place);
    }
    cleat_free(keys->given);
    cleat_free(keys->places);
    cleat_free((void *)keys->own.keys);
    cleat_free((void *)keys->all.keys);
    cleat_free(keys->types);
}

cleat_assignment *cleat_profile_given(const cleat_profile_keys *keys, const cleat_key *key) {
    size_t next = 0;
    return cleat_profile_given_next(keys, key, &next);
}

cleat_assignment *cleat_profile_given_next(const cleat_profile_keys *keys, const cleat_key *key, size_t *next) {
    cleat_key *all = (cleat_key *)keys->all.keys;
    return &keys->given[find(all, keys->n_all, key, false, next) - all];
}

/* --- one family ----------------------------------------------------------------------------------------------- */

cleat_status cleat_profile_keys_of(const cleat_profile_keys *keys, const cleat_model_class *family, cleat_schema *own,
                                   cleat_error *error) {
    size_t count = 0;
    cleat_key *made = cleat_alloc(cleat_keys_count(cleat_run_keys) + cleat_keys_count(family->keys) + 1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "out of memory creating a profile");
    made[count++] = type_key(keys);
    made[count++] = cleat_run_keys[CLEAT_INIT_KEY];
    for (const cleat_key *key = family->keys; key->name; ++key) {
        made[count] = *key;
        made[count++].part = CLEAT_PART_FAMILY;
    }
    for (const cleat_key *key = cleat_run_keys + CLEAT_INIT_KEY + 1; key->name; ++key) {
        if (key->kinds == CLEAT_IF_BUCKETS && family->fixed_length) continue;
        made[count] = *key;
        made[count++].kinds = 0;
    }
    *own = keys->all;
    own->keys = made;
    return CLEAT_OK;
}
