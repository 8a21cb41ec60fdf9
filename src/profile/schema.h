/* The schema of profiles: the table of settings that src/ini works from. */
#ifndef CLEAT_SRC_SCHEMA_H
#define CLEAT_SRC_SCHEMA_H

#include "cleat/profile.h"
#include "ini/record.h"

/* Samples an optimizer step at most. */
enum { MAX_SAMPLES = 1048576 };

extern const cleat_section cleat_sections[]; /* ends in a NULL name */
extern const cleat_key cleat_keys[];         /* grouped by section, in order; ends in a NULL name */
extern const cleat_schema cleat_profile_schema;

const cleat_key *cleat_key_find(const char *section, const char *name); /* or NULL */

/* The profile as a record; functions that take a const record do not change it. */
cleat_record cleat_profile_record(const cleat_profile *profile);

#endif
