/* Key tables of a profile: the keys of the run, and those of the model families. */
#ifndef CLEAT_SRC_SCHEMA_H
#define CLEAT_SRC_SCHEMA_H

#include "cleat/profile.h"
#include "ini/record.h"
#include "models/model.h"

/* Maximum number of samples per optimizer step. */
enum { MAX_SAMPLES = 1048576 };
/* Value of `kinds` for a key of the run that has a meaning only for families whose samples differ in
 * length. */
enum { CLEAT_IF_BUCKETS = 1 };
/* Parts of a profile's record: fields of cleat_profile, and fields of the family's settings. */
enum { CLEAT_PART_RUN, CLEAT_PART_FAMILY };

extern const cleat_section cleat_profile_sections[]; /* terminated by a NULL name */
/* model.type, whose choices and default are the names of the families, model.init, then [train], [loader], [run]. */
enum { CLEAT_INIT_KEY = 1 };
extern const cleat_key cleat_run_keys[];

/* The value assigned to a key; both members NULL: no assignment. */
typedef struct cleat_assignment {
    char *value, *place;
    bool adopted; /* from the weights of model.init, not by the author of the profile */
} cleat_assignment;

/* Key tables of a profile. Values for keys of other families are stored, because model.type may be set
 * after them. */
typedef struct cleat_profile_keys {
    const char **types;    /* names of the families; terminated by NULL */
    cleat_schema all, own; /* keys of all families, without duplicates; keys of the profile's family */
    size_t n_all;
    cleat_assignment *given; /* [n_all] */
    char **places;           /* [keys of `own`] borrowed from `given` */
    bool apart; /* for the help: a key with another default, range or meaning in other families has another row */
} cleat_profile_keys;

/* Loads the names and keys of all families, with no values and no family chosen; only keys->apart is read.
 * After a failure, *keys must still be closed. */
cleat_status cleat_profile_keys_open(cleat_profile_keys *keys, cleat_error *error);
void cleat_profile_keys_close(cleat_profile_keys *keys);
/* Keys of one family together with those of the run, in the order of resolved.ini; the caller frees
 * own->keys. */
cleat_status cleat_profile_keys_of(const cleat_profile_keys *keys, const cleat_model_class *family, cleat_schema *own,
                                   cleat_error *error);
/* The value assigned to a key of `own` or of another table. */
cleat_assignment *cleat_profile_given(const cleat_profile_keys *keys, const cleat_key *key);
/* The same for keys that are looked up in the order of their table: the search starts at *next (0 at first). */
cleat_assignment *cleat_profile_given_next(const cleat_profile_keys *keys, const cleat_key *key, size_t *next);

/* The default of a setting that is newer than checkpoints (cleat_key.later), by its name "model.network";
 * NULL: the key is not newer, or the profile has no such key. */
const char *cleat_profile_later_default(const cleat_profile *profile, const char *name);

/* The profile as a record with the keys of its family; functions with a const record parameter do not
 * change it. */
cleat_record cleat_profile_record(const cleat_profile *profile);
/* The profile as a record that accepts values for the keys of all families. */
cleat_record cleat_profile_reader(cleat_profile *profile);

#endif
