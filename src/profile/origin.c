/* Values and where each was given, which is what error messages point at. */
#include "profile/schema.h"

#include "core/memory.h"

struct cleat_profile_origins {
    size_t count;
    char *places[]; /* one a key, in the order of the schema; NULL for a default */
};

cleat_status cleat_origins_create(cleat_profile *profile, cleat_error *error) {
    size_t count = cleat_key_count();
    profile->origins = cleat_alloc(1, sizeof *profile->origins + count * sizeof(char *));
    if (!profile->origins) return cleat_fail(error, CLEAT_ERR_MEMORY, "out of memory making a profile");
    profile->origins->count = count;
    return CLEAT_OK;
}

void cleat_origins_destroy(cleat_profile *profile) {
    if (!profile->origins) return;
    for (size_t i = 0; i < profile->origins->count; ++i) cleat_free(profile->origins->places[i]);
    cleat_free(profile->origins);
    profile->origins = NULL;
}

static char **place_of(const cleat_profile *profile, const cleat_key *key) {
    return &profile->origins->places[key - cleat_keys];
}

const char *cleat_profile_origin(const cleat_profile *profile, const cleat_key *key) {
    return profile->origins ? *place_of(profile, key) : NULL;
}

cleat_status cleat_profile_assign(cleat_profile *profile, const cleat_key *key, const char *value, const char *place,
                                  cleat_error *error) {
    char *copy = cleat_strdup(place);
    if (!copy) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", place);
    cleat_status status = cleat_value_parse(key, value, place, profile, error);
    if (status != CLEAT_OK) {
        cleat_free(copy);
        return status;
    }
    cleat_free(*place_of(profile, key));
    *place_of(profile, key) = copy;
    return CLEAT_OK;
}
