/* The tables of a profile's settings: the keys of the run, and those of the model families. */
#ifndef CLEAT_SRC_SCHEMA_H
#define CLEAT_SRC_SCHEMA_H

#include "cleat/profile.h"
#include "ini/record.h"
#include "models/model.h"

/* Samples an optimizer step at most. */
enum { MAX_SAMPLES = 1048576 };
/* As `kinds` of a key of the run: it has a meaning for families whose samples differ in length. */
enum { CLEAT_IF_BUCKETS = 1 };
/* Parts of a profile's record: fields of cleat_profile, and of the family's settings. */
enum { CLEAT_PART_RUN, CLEAT_PART_FAMILY };

extern const cleat_section cleat_profile_sections[]; /* ends in a NULL name */
/* model.type, whose choices and default are the families' names, then [train], [loader], [run]. */
extern const cleat_key cleat_run_keys[];

/* What was assigned to a key; both NULL: nothing. */
typedef struct cleat_given {
    char *value, *place;
} cleat_given;

/* A profile's tables. Values of keys that belong to other families are kept, because model.type may follow them. */
typedef struct cleat_profile_keys {
    const char **types;    /* names of the families; ends in NULL */
    cleat_schema all, own; /* the keys of all families, each once; those of the profile's family */
    cleat_given *given;    /* [keys of `all`] */
    char **places;         /* [keys of `own`] borrowed from `given` */
} cleat_profile_keys;

/* Names and keys of all families; nothing given, no family chosen yet. On failure it is good for closing. */
cleat_status cleat_profile_keys_open(cleat_profile_keys *keys, cleat_error *error);
void cleat_profile_keys_close(cleat_profile_keys *keys);
/* The keys of one family with those of the run, in the order of resolved.ini; the caller frees own->keys. */
cleat_status cleat_profile_keys_of(const cleat_profile_keys *keys, const cleat_model_class *family, cleat_schema *own,
                                   cleat_error *error);
/* What was given for a key of `own` or of another table. */
cleat_given *cleat_profile_given(const cleat_profile_keys *keys, const cleat_key *key);

/* The profile as a record with the keys of its family; functions that take a const record do not change it. */
cleat_record cleat_profile_record(const cleat_profile *profile);
/* The profile as a record that takes values for the keys of all families. */
cleat_record cleat_profile_reader(cleat_profile *profile);

#endif
