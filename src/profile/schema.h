/* The schema of profiles: one row a key. Everything about a key is in its row. */
#ifndef CLEAT_SRC_SCHEMA_H
#define CLEAT_SRC_SCHEMA_H

#include "cleat/profile.h"
#include "profile/text.h"

typedef enum cleat_key_type {
    CLEAT_KEY_INT,      /* int64_t */
    CLEAT_KEY_FLOAT,    /* double */
    CLEAT_KEY_BOOL,     /* bool */
    CLEAT_KEY_CHOICE,   /* int, the index of the chosen name */
    CLEAT_KEY_STRING,   /* char[room] */
    CLEAT_KEY_DURATION, /* int64_t, seconds */
    CLEAT_KEY_LIST,     /* cleat_int_list, ascending */
} cleat_key_type;

typedef struct cleat_key {
    const char *section, *name;
    size_t offset; /* of the field in cleat_profile */
    cleat_key_type type;
    double min, max;            /* numbers; the length of a string; each element of a list */
    const char *initial;        /* the default, as a profile would say it */
    const char *word;           /* "auto" or "none" where that is allowed besides the range */
    const char *const *choices; /* ends in NULL */
    size_t room;                /* of a string's field */
    bool computes;              /* it decides which bits a run computes */
    const char *help;           /* one sentence */
} cleat_key;

typedef struct cleat_section {
    const char *name, *help;
} cleat_section;

extern const cleat_section cleat_sections[]; /* ends in a NULL name */
extern const cleat_key cleat_keys[];         /* grouped by section, in order; ends in a NULL name */

size_t cleat_key_count(void);
const cleat_key *cleat_key_find(const char *section, const char *name); /* or NULL */

/* The nearest of `names` (edits: insert, delete, replace, swap neighbours), or NULL where none is near. */
const char *cleat_nearest_name(const char *name, const char *const *names, size_t count);

/* --- one value (value.c) -------------------------------------------------------------------------------------- */

/* Parses `text` into the key's field of `profile`. On failure the field is untouched and `error` says what is
 * allowed, after the given place ("rna.ini:12: d_model = x"). */
cleat_status cleat_value_parse(const cleat_key *key, const char *text, const char *place, cleat_profile *profile,
                               cleat_error *error);
/* Appends the value as a profile says it: parsing it gives the same value. */
void cleat_value_print(const cleat_key *key, const cleat_profile *profile, cleat_text *text);
/* Appends what is allowed: "a whole number from 1 to 64, or auto". */
void cleat_value_allowed(const cleat_key *key, cleat_text *text);

/* The key `name` of `section`, or CLEAT_ERR_PROFILE: at `place`, no such section or key, and which may have
 * been meant (unknown.c). */
cleat_status cleat_key_require(const char *section, const char *name, const char *place, const cleat_key **key,
                               cleat_error *error);
/* CLEAT_ERR_PROFILE unless there is a section of that name. */
cleat_status cleat_section_require(const char *section, const char *place, cleat_error *error);

/* --- where values were given (origin.c) ----------------------------------------------------------------------- */

/* The line or option that gave the value, e.g. "profiles/rna.ini:3: heads = 8"; NULL for a default. Borrowed. */
const char *cleat_profile_origin(const cleat_profile *profile, const cleat_key *key);
/* Parses `value` into the key's field and remembers `place`; on failure both stay as they were. */
cleat_status cleat_profile_assign(cleat_profile *profile, const cleat_key *key, const char *value, const char *place,
                                  cleat_error *error);
cleat_status cleat_origins_create(cleat_profile *profile, cleat_error *error);
void cleat_origins_destroy(cleat_profile *profile);

#endif
