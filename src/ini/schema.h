/* Schemas of INI records: a table with one row a key, everything about the key in its row. Reading, checking, help
 * and dump work from it. */
#ifndef CLEAT_SRC_INI_SCHEMA_H
#define CLEAT_SRC_INI_SCHEMA_H

#include "core/text.h"

/* What a record can hold, and the reader takes. */
enum { CLEAT_INI_TEXT = 1024, CLEAT_INI_LIST = 16, CLEAT_INI_SECTIONS = 32 };

typedef enum cleat_key_type {
    CLEAT_KEY_INT,      /* int64_t */
    CLEAT_KEY_FLOAT,    /* double */
    CLEAT_KEY_BOOL,     /* bool */
    CLEAT_KEY_CHOICE,   /* int, the index of the chosen name */
    CLEAT_KEY_STRING,   /* char[room], room at most CLEAT_INI_TEXT */
    CLEAT_KEY_DURATION, /* int64_t, seconds */
    CLEAT_KEY_BYTES,    /* int64_t */
    CLEAT_KEY_LIST,     /* int64_t count, int64_t[CLEAT_INI_LIST] ascending, unless `unordered` */
} cleat_key_type;

typedef struct cleat_key {
    const char *section, *name;
    size_t offset; /* of the field in the record */
    cleat_key_type type;
    double min, max;            /* numbers; the length of a string; each element of a list */
    const char *initial;        /* the default, as a file would say it; NULL: a file must give the key */
    const char *word;           /* "auto" or "none" where that is allowed besides the range ... */
    int64_t word_value;         /* ... and what stands for it in the field (of a list: as its count) */
    const char *const *choices; /* ends in NULL */
    size_t room;                /* of a string's field */
    bool unordered;             /* a list need not ascend */
    bool computes;              /* it decides which bits a run computes ... */
    bool shapes;                /* ... and what the parameters are, or were trained for: a checkpoint keeps it */
    uint32_t kinds;             /* bit k is set: the key has a meaning in records of kind k; 0: in all */
    const char *help;           /* one sentence */
} cleat_key;

typedef struct cleat_section {
    const char *name, *help;
} cleat_section;

typedef struct cleat_schema {
    const char *noun;              /* what messages call such a file: "profile" */
    const cleat_section *sections; /* ends in a NULL name; at most CLEAT_INI_SECTIONS */
    const cleat_key *keys;         /* grouped by section, in order; ends in a NULL name */
    const char *kind_key;          /* the key that says of which kind a record is, "model.type"; NULL: all are alike */
    const char *const *kinds;      /* names of the kinds; ends in NULL */
} cleat_schema;

size_t cleat_schema_size(const cleat_schema *schema);                                                  /* keys */
const cleat_key *cleat_schema_find(const cleat_schema *schema, const char *section, const char *name); /* or NULL */
/* Whether the key has a meaning in records of kind `kind`. */
bool cleat_key_applies(const cleat_key *key, int kind);
/* Appends every section and key with default, meaning, and what is allowed. */
void cleat_schema_help(const cleat_schema *schema, cleat_text *text);

/* --- names (names.c) ------------------------------------------------------------------------------------------ */

/* The nearest of `names` (edits: insert, delete, replace, swap neighbours), or NULL where none is near. */
const char *cleat_nearest_name(const char *name, const char *const *names, size_t count);
/* The key `name` of `section`, or CLEAT_ERR_PROFILE: at `place`, no such section or key, and which may have
 * been meant. */
cleat_status cleat_schema_require(const cleat_schema *schema, const char *section, const char *name, const char *place,
                                  const cleat_key **key, cleat_error *error);
/* CLEAT_ERR_PROFILE unless there is a section of that name. */
cleat_status cleat_schema_require_section(const cleat_schema *schema, const char *section, const char *place,
                                          cleat_error *error);

/* --- one value (value.c) -------------------------------------------------------------------------------------- */

/* Parses `text` into the key's field of `record`. On failure the field is untouched and `error` says what is
 * allowed, after the given place ("rna.ini:12: d_model = x"). */
cleat_status cleat_value_parse(const cleat_schema *schema, const cleat_key *key, const char *text, const char *place,
                               void *record, cleat_error *error);
/* Appends the value as a file says it: parsing it gives the same value. */
void cleat_value_print(const cleat_key *key, const void *record, cleat_text *text);
/* Appends what is allowed: "a whole number from 1 to 64, or auto". */
void cleat_value_allowed(const cleat_key *key, cleat_text *text);

#endif
