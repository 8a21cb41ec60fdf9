/* INI records: a struct that a schema describes, and where each of its values was given, which is what error
 * messages point at. */
#ifndef CLEAT_SRC_INI_RECORD_H
#define CLEAT_SRC_INI_RECORD_H

#include "ini/schema.h"

/* A view: the struct and the places belong to whoever made it. */
typedef struct cleat_record {
    const cleat_schema *schema;
    void *fields;  /* the struct */
    int kind;      /* of the schema's kinds; 0 where it has none */
    char **places; /* one a key: "profiles/rna.ini:3: heads = 8", NULL for a default; NULL: none was kept */
} cleat_record;

/* Gives every field of the zeroed `fields` its default; cleat_record_close releases the places. */
cleat_status cleat_record_open(const cleat_schema *schema, void *fields, cleat_record *record, cleat_error *error);
void cleat_record_close(cleat_record *record);

/* Parses `value` into the key's field and remembers `place`; on failure both stay as they were. */
cleat_status cleat_record_assign(const cleat_record *record, const cleat_key *key, const char *value, const char *place,
                                 cleat_error *error);
/* Reads an INI text of `size` bytes, strictly: unknown names, values out of range, keys given twice, and keys that
 * must be given and are not fail with file and line. `name` stands for the file. After a failure the record is good
 * for closing only (read.c). */
cleat_status cleat_record_read_text(const cleat_record *record, const char *name, const char *text, size_t size,
                                    cleat_error *error);
/* Appends an INI text with comments, every key that has a meaning in a record of this kind with its value: reading it
 * gives the same record. */
void cleat_record_dump(const cleat_record *record, cleat_text *text);

/* --- values that are wrong together --------------------------------------------------------------------------- */

typedef struct cleat_key_name {
    const char *section, *name;
} cleat_key_name;

/* CLEAT_ERR_PROFILE: "PLACE: sentence", where the place is "rna.ini:3: heads = 8", "--set model.heads=8" or
 * "model.heads = 8 (default)". */
cleat_status cleat_record_refuse(const cleat_record *record, cleat_error *error, const char *section, const char *name,
                                 const char *format, ...) CLEAT_PRINTF(5, 6);
/* CLEAT_ERR_PROFILE: "PLACE contradicts PLACE: sentence". */
cleat_status cleat_record_contradict(const cleat_record *record, cleat_error *error, cleat_key_name one,
                                     cleat_key_name other, const char *format, ...) CLEAT_PRINTF(5, 6);

#endif
