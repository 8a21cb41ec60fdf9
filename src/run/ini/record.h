/* INI records: a struct described by a schema, and the place where each of its values was given, which error
 * messages cite. */
#ifndef CLEAT_SRC_INI_RECORD_H
#define CLEAT_SRC_INI_RECORD_H

#include "ini/schema.h"

/* A view of a struct and of the places of its values, both owned by the caller that opened the record. */
typedef struct cleat_record {
    const cleat_schema *schema;
    void *parts[2]; /* the structs that the schema describes: a key's field is in parts[key->part] */
    /* [keys] "profiles/rna.ini:3: heads = 8", NULL for a default; places NULL: none are recorded. */
    char **places;
    /* Called instead of storing a value and its place, for records whose schema depends on their values; NULL: none. */
    cleat_status (*assign)(void *user, const cleat_key *key, const char *value, const char *place, cleat_error *error);
    void *user;
} cleat_record;

/* Sets every field of the zeroed `fields` to its default and allocates the places. cleat_record_close frees
 * the places. */
cleat_status cleat_record_open(const cleat_schema *schema, void *fields, cleat_record *record, cleat_error *error);
void cleat_record_close(cleat_record *record);

/* Parses `value` into the key's field and records `place`. On failure both are unchanged. */
cleat_status cleat_record_assign(const cleat_record *record, const cleat_key *key, const char *value, const char *place,
                                 cleat_error *error);
/* Reads an INI text of `size` bytes strictly: unknown names, values out of range, keys given twice and
 * missing required keys are errors with file and line. `name` is the file name in messages. After a failure
 * the record may only be closed (read.c). */
cleat_status cleat_record_read_text(const cleat_record *record, const char *name, const char *text, size_t size,
                                    cleat_error *error);
/* Appends an INI text with comments, every key with its value: reading it gives the same record. */
void cleat_record_dump(const cleat_record *record, cleat_string *text);

/* --- invalid combinations of values --------------------------------------------------------------------------- */

/* Return CLEAT_ERR_PROFILE; settings are named "model.heads". The message is "PLACE: sentence", where PLACE is
 * "rna.ini:3: heads = 8", "--set model.heads=8" or "model.heads = 8 (default)". */
cleat_status cleat_record_refuse(const cleat_record *record, cleat_error *error, const char *setting,
                                 const char *format, ...) CLEAT_PRINTF(4, 5);
/* The message is "PLACE contradicts PLACE: sentence". */
cleat_status cleat_record_contradict(const cleat_record *record, cleat_error *error, const char *one, const char *other,
                                     const char *format, ...) CLEAT_PRINTF(5, 6);

#endif
