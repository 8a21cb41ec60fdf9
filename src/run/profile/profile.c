/* Profiles as a whole: defaults, values, loading, copies, the resolved dump, help text, comparison. */
#include "profile/schema.h"

#include "core/files.h"
#include "core/memory.h"

#include <stdio.h>
#include <string.h>

cleat_record cleat_profile_record(const cleat_profile *profile) {
    return (cleat_record){.schema = &profile->keys->own,
                          .parts = {[CLEAT_PART_RUN] = (cleat_profile *)profile, [CLEAT_PART_FAMILY] = profile->data},
                          .places = profile->keys->places};
}

/* --- values --------------------------------------------------------------------------------------------------- */

static cleat_status store(const cleat_key *key, const char *value, const char *place, void *const parts[2],
                          cleat_error *error) {
    return cleat_value_parse("profile", key, value, place, parts[key->part], error);
}

/* Makes `type` the family of the profile: its settings get their defaults, then the values given for them.
 * On failure the profile is unchanged. */
static cleat_status use_family(cleat_profile *profile, int type, cleat_error *error) {
    const cleat_model_class *family = cleat_model_classes[type];
    cleat_profile_keys *keys = profile->keys;
    cleat_schema own = {.keys = NULL};
    cleat_data_settings *data = NULL;
    char **places = NULL;
    size_t next = 0;
    cleat_status status = cleat_profile_keys_of(keys, family, &own, error);
    if (!status) status = cleat_settings_create(family, &data, error);
    if (!status && !(places = cleat_alloc(cleat_keys_count(own.keys), sizeof *places)))
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "out of memory creating a profile");
    for (size_t i = 0; !status && own.keys[i].name; ++i) {
        const cleat_assignment *given = cleat_profile_given_next(keys, &own.keys[i], &next);
        places[i] = given->place;
        if (own.keys[i].part == CLEAT_PART_FAMILY && given->value)
            status = store(&own.keys[i], given->value, given->place, (void *[]){profile, data}, error);
    }
    if (status) {
        cleat_free(places);
        cleat_settings_destroy(family, data);
        cleat_free((void *)own.keys);
        return status;
    }
    if (profile->family) cleat_settings_destroy(profile->family, profile->data);
    cleat_free((void *)keys->own.keys);
    cleat_free(keys->places);
    keys->own = own;
    keys->places = places;
    profile->type = type;
    profile->family = family;
    profile->data = data;
    return CLEAT_OK;
}

static cleat_status copy_given(const char *value, const char *place, cleat_assignment *copy, cleat_error *error) {
    cleat_assignment made = {.value = cleat_strdup(value), .place = cleat_strdup(place)};
    if (!made.value || !made.place) {
        cleat_free(made.value);
        cleat_free(made.place);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", place);
    }
    *copy = made;
    return CLEAT_OK;
}

/* Values for keys of other families are checked, but otherwise only stored in case their family is chosen. */
static cleat_status assign(void *user, const cleat_key *key, const char *value, const char *place, cleat_error *error) {
    cleat_profile *profile = user;
    cleat_profile_keys *keys = profile->keys;
    const cleat_key *own = cleat_schema_find(&keys->own, key->section, key->name);
    cleat_assignment *kept = cleat_profile_given(keys, key), made;
    int type = profile->type;
    cleat_status status = copy_given(value, place, &made, error);
    if (status) return status;
    if (key->choices == keys->types) {
        status = store(key, value, place, (void *[]){NULL, NULL}, error);
        for (type = 0; !status && strcmp(keys->types[type], value) != 0;) ++type;
        if (!status && type != profile->type) status = use_family(profile, type, error);
    } else {
        status = store(own ? own : key, value, place, own ? (void *[]){profile, profile->data} : (void *[]){NULL, NULL},
                       error);
    }
    if (status) {
        cleat_free(made.value);
        cleat_free(made.place);
        return status;
    }
    cleat_free(kept->value);
    cleat_free(kept->place);
    *kept = made;
    own = cleat_schema_find(&keys->own, key->section, key->name);
    if (own) keys->places[own - keys->own.keys] = kept->place;
    return CLEAT_OK;
}

cleat_record cleat_profile_reader(cleat_profile *profile) {
    return (cleat_record){.schema = &profile->keys->all, .assign = assign, .user = profile};
}

/* --- making --------------------------------------------------------------------------------------------------- */

static cleat_status set_run_defaults(cleat_profile *profile, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (const cleat_key *key = cleat_run_keys + 1; key->name && !status; ++key)
        status = cleat_value_parse("profile", key, key->initial, "default", profile, error);
    return status;
}

cleat_status cleat_profile_create(cleat_profile **profile, cleat_error *error) {
    cleat_profile *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "out of memory creating a profile");
    cleat_status status = CLEAT_OK;
    made->keys = cleat_alloc(1, sizeof *made->keys);
    if (!made->keys) status = cleat_fail(error, CLEAT_ERR_MEMORY, "out of memory creating a profile");
    if (!status) status = cleat_profile_keys_open(made->keys, error);
    if (!status) status = set_run_defaults(made, error);
    if (!status) status = use_family(made, 0, error);
    if (status) {
        cleat_profile_destroy(made);
        return status;
    }
    *profile = made;
    return CLEAT_OK;
}

void cleat_profile_destroy(cleat_profile *profile) {
    if (!profile) return;
    if (profile->family) cleat_settings_destroy(profile->family, profile->data);
    if (profile->keys) cleat_profile_keys_close(profile->keys);
    cleat_free(profile->keys);
    cleat_free(profile);
}

cleat_status cleat_profile_clone(const cleat_profile *profile, cleat_profile **copy, cleat_error *error) {
    cleat_profile *made = NULL;
    cleat_data_settings *data = NULL;
    cleat_status status = cleat_profile_create(&made, error);
    for (size_t i = 0; !status && profile->keys->all.keys[i].name; ++i) {
        const cleat_assignment *given = &profile->keys->given[i];
        if (given->value) status = copy_given(given->value, given->place, &made->keys->given[i], error);
        made->keys->given[i].adopted = given->adopted;
    }
    if (!status) status = use_family(made, profile->type, error);
    if (!status) status = cleat_settings_clone(profile->family, profile->data, &data, error);
    if (status) {
        cleat_profile_destroy(made);
        return status;
    }
    cleat_settings_destroy(made->family, made->data);
    made->data = data;
    memcpy(made->init, profile->init, sizeof made->init);
    made->train = profile->train;
    made->loader = profile->loader;
    made->run = profile->run;
    *copy = made;
    return CLEAT_OK;
}

cleat_status cleat_profile_create_model(const cleat_profile *profile, cleat_model **model, cleat_error *error) {
    cleat_model_options options = {.workers = (int)profile->loader.num_workers,
                                   .precision = (cleat_precision)profile->train.precision,
                                   .loss_scale_growth_interval = profile->train.loss_scale_growth_interval,
                                   .optimizer = profile->train.optimizer,
                                   .has_momentum = profile->train.momentum > 0,
                                   .params = profile->train.params};
    options.params.learning_rate = profile->train.learning_rate;
    return cleat_model_create(profile->family, profile->data, &options, model, error);
}

/* --- loading -------------------------------------------------------------------------------------------------- */

cleat_status cleat_profile_read_text(cleat_profile *profile, const char *name, const char *text, size_t size,
                                     cleat_error *error) {
    cleat_record record = cleat_profile_reader(profile);
    return cleat_record_read_text(&record, name, text, size, error);
}

cleat_status cleat_profile_read(cleat_profile *profile, const char *path, cleat_error *error) {
    char *text;
    size_t size;
    cleat_status status = cleat_file_read_text(path, &text, &size, error);
    if (status) return status;
    status = cleat_profile_read_text(profile, path, text, size, error);
    cleat_free(text);
    return status;
}

cleat_status cleat_profile_load(const char *path, const char *const *assignments, size_t count, cleat_profile **profile,
                                cleat_error *error) {
    cleat_profile *made = NULL;
    cleat_status status = cleat_profile_create(&made, error);
    if (!status) status = cleat_profile_read(made, path, error);
    for (size_t i = 0; i < count && !status; ++i) status = cleat_profile_set(made, assignments[i], error);
    if (!status && !*made->init) status = cleat_profile_check(made, error);
    if (status) {
        cleat_profile_destroy(made);
        return status;
    }
    *profile = made;
    return CLEAT_OK;
}

/* Prints the value of a key of any family. For a key that the profile's family does not have, it is the
 * given value or the default. */
static void print_value(const cleat_profile *profile, const cleat_key *key, cleat_string *text) {
    const cleat_record record = cleat_profile_record(profile);
    const cleat_key *own = cleat_schema_find(record.schema, key->section, key->name);
    const cleat_assignment *given = cleat_profile_given(profile->keys, key);
    if (own)
        cleat_value_print(own, record.parts[own->part], text);
    else
        cleat_string_add(text, "%s", given->value ? given->value : key->initial);
}

cleat_status cleat_profile_get(const cleat_profile *profile, const char *name, char *text, size_t size,
                               cleat_error *error) {
    const cleat_key *key = cleat_schema_find_setting(&profile->keys->all, name);
    cleat_string value = {0};
    if (!key) return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "profiles have no key %.100s", name);
    print_value(profile, key, &value);
    cleat_status status =
        value.failed ? cleat_fail(error, CLEAT_ERR_MEMORY, "out of memory printing %.100s", name) : CLEAT_OK;
    if (!status) snprintf(text, size, "%s", value.data ? value.data : "");
    cleat_string_free(&value);
    return status;
}

bool cleat_profile_shaping_key(const cleat_profile *profile, size_t i, char *name, size_t size) {
    for (const cleat_key *key = profile->keys->own.keys; key->name; ++key) {
        if (!key->shapes || i-- > 0) continue;
        snprintf(name, size, "%s.%s", key->section, key->name);
        return true;
    }
    return false;
}

bool cleat_profile_key(const cleat_profile *profile, size_t i, char *name, size_t size) {
    const cleat_schema *own = &profile->keys->own;
    if (i >= cleat_keys_count(own->keys)) return false;
    snprintf(name, size, "%s.%s", own->keys[i].section, own->keys[i].name);
    return true;
}

const char *cleat_profile_later_default(const cleat_profile *profile, const char *name) {
    const cleat_key *key = cleat_schema_find_setting(&profile->keys->own, name);
    return key && key->later ? key->initial : NULL;
}

/* Length of "FILE:LINE" in "FILE:LINE: key = value", or of the whole text. */
static size_t file_and_line(const char *place) {
    for (const char *at = strchr(place, ':'); at; at = strchr(at + 1, ':')) {
        size_t digits = strspn(at + 1, "0123456789");
        if (digits > 0 && at[1 + digits] == ':') return (size_t)(at - place) + 1 + digits;
    }
    return strlen(place);
}

cleat_status cleat_profile_origin(const cleat_profile *profile, const char *name, char *text, size_t size,
                                  cleat_error *error) {
    const cleat_key *key = cleat_schema_find_setting(&profile->keys->own, name);
    if (!key) return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "this profile has no key %.100s", name);
    const char *place = profile->keys->places[key - profile->keys->own.keys];
    if (!place) place = "default";
    if (strncmp(place, "--set ", 6) == 0) place = "--set";
    snprintf(text, size, "%.*s", (int)file_and_line(place), place);
    return CLEAT_OK;
}

const char *cleat_profile_key_help(const cleat_profile *profile, const char *name) {
    const cleat_key *key = cleat_schema_find_setting(&profile->keys->own, name);
    return key ? key->help : NULL;
}

/* --- texts ---------------------------------------------------------------------------------------------------- */

cleat_status cleat_profile_dump(const cleat_profile *profile, char **text, cleat_error *error) {
    cleat_string dump = {0};
    cleat_record record = cleat_profile_record(profile);
    cleat_string_add(&dump, "# Every setting of a cleat run. Loading this file reproduces the run.\n");
    cleat_record_dump(&record, &dump);
    return cleat_string_detach(&dump, text, error);
}

cleat_status cleat_profile_help(char **text, cleat_error *error) {
    cleat_string help = {0};
    cleat_profile_keys keys = {.apart = true};
    cleat_status status = cleat_profile_keys_open(&keys, error);
    cleat_string_add(&help, "A profile is an INI file. Its keys, with their defaults:\n");
    if (!status) cleat_schema_help(&keys.all, &help);
    cleat_profile_keys_close(&keys);
    if (status) {
        cleat_string_free(&help);
        return status;
    }
    return cleat_string_detach(&help, text, error);
}

/* --- comparison ----------------------------------------------------------------------------------------------- */

void cleat_profile_hash(const cleat_profile *profile, char text[33]) {
    cleat_string all = {0};
    for (const cleat_key *key = profile->keys->own.keys; key->name; ++key) {
        if (!key->computes) continue;
        const size_t before = all.size;
        cleat_string_add(&all, "%s.%s=", key->section, key->name);
        const size_t value = all.size;
        print_value(profile, key, &all);
        if (key->later && !all.failed &&
            (strcmp(all.data + value, key->initial) == 0 ||
             (key->initially && strcmp(all.data + value, key->initially) == 0)))
            all.size = before;
        else
            cleat_string_add(&all, "\n");
    }
    if (all.failed)
        text[0] = 0; /* an empty hash equals no other */
    else
        cleat_hash_text(all.data, all.size, text);
    cleat_string_free(&all);
}

size_t cleat_profile_differences(const cleat_profile *then, const cleat_profile *now, char *text, size_t size) {
    size_t count = 0, used = 0;
    if (size) *text = 0;
    for (const cleat_key *key = now->keys->own.keys; key->name; ++key) {
        if (!key->computes) continue;
        cleat_string before = {0}, after = {0};
        print_value(then, key, &before);
        print_value(now, key, &after);
        if (strcmp(before.data ? before.data : "", after.data ? after.data : "") != 0) {
            if (used < size) {
                int put = snprintf(text + used, size - used, "%s%s.%s = %s (was %s)", count ? ", " : "", key->section,
                                   key->name, after.data ? after.data : "", before.data ? before.data : "");
                used += put > 0 ? (size_t)put : 0;
            }
            ++count;
        }
        cleat_string_free(&before);
        cleat_string_free(&after);
    }
    return count;
}
