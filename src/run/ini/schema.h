/* Schemas of INI records: a table with one row per key, which contains everything about the key. Reading,
 * checking, help and dump are derived from it. */
#ifndef CLEAT_SRC_INI_SCHEMA_H
#define CLEAT_SRC_INI_SCHEMA_H

#include "core/string.h"

/* Longest string of a record, longest list, and largest number of sections of a schema. */
enum { CLEAT_INI_TEXT = 1024, CLEAT_INI_LIST = 16, CLEAT_INI_SECTIONS = 32 };

typedef enum cleat_key_type {
    CLEAT_KEY_INT,    /* int64_t */
    CLEAT_KEY_FLOAT,  /* double */
    CLEAT_KEY_BOOL,   /* bool; two `choices` are the words for false and true */
    CLEAT_KEY_CHOICE, /* int: index of the chosen name */
    CLEAT_KEY_STRING, /* char[room], room <= CLEAT_INI_TEXT */
    CLEAT_KEY_TEXT,   /* const char *: NULL, or allocated with cleat_alloc and owned by the struct */
    CLEAT_KEY_QUOTA,  /* int64_t[2]: seconds in all and of one session; 0: no limit */
    CLEAT_KEY_PERIOD, /* double: seconds, written with a unit; fractions are allowed */
    CLEAT_KEY_BYTES,  /* int64_t */
    CLEAT_KEY_LIST,   /* int64_t count, int64_t[CLEAT_INI_LIST]: ascending unless `unordered` */
} cleat_key_type;

typedef struct cleat_key {
    const char *section, *name;
    const char *former; /* a name of an earlier release, which files may still use; NULL: none */
    size_t offset;      /* of the field in its struct, in bytes */
    int part;           /* index of the record's struct that holds the field */
    cleat_key_type type;
    double min, max;            /* of a number; of the length of a string; of each element of a list */
    const char *initial;        /* the default in the syntax of a file; NULL: a file must give the key */
    const char *word;           /* "auto" or "none" if allowed besides the range */
    bool or_auto;               /* of a whole number: "auto", -1, is allowed too */
    int64_t word_value;         /* value of the field for `word` (of a list: of its count) */
    const char *const *choices; /* ends with NULL */
    size_t room;                /* size of a string's field in bytes */
    bool path;                  /* of a string: on Windows with slashes */
    bool unordered;             /* the list need not be ascending */
    bool computes;              /* the value influences the bits that a run computes */
    bool later;                 /* with `computes`: the key is newer than checkpoints; its default is not hashed */
    const char *initially; /* with `later`: the default of an earlier release, which is not hashed either; or NULL */
    /* The value determines the parameters or their meaning; checkpoints store it. */
    bool shapes;
    bool fewer;       /* with `shapes`: a network with a smaller value is the first part of one with a larger */
    bool resolves;    /* with `shapes`: the same parameters also suit other values, e.g. of a stride */
    uint64_t kinds;   /* bit k set: the key applies to records of kind k; 0: to all */
    const char *help; /* one sentence */
} cleat_key;

typedef struct cleat_section {
    const char *name, *help;
} cleat_section;

typedef struct cleat_schema {
    const char *noun;              /* name of such a file in messages: "profile" */
    const cleat_section *sections; /* ends with a NULL name; at most CLEAT_INI_SECTIONS */
    const cleat_key *keys;         /* grouped by section, in order; ends with a NULL name */
    /* The key that determines the kind of a record: "model.type"; NULL: there is only one kind. */
    const char *kind_key;
    const char *const *kinds; /* names of the kinds; ends with NULL */
} cleat_schema;

/* Number of keys. */
size_t cleat_keys_count(const cleat_key *keys);
const cleat_key *cleat_schema_find(const cleat_schema *schema, const char *section, const char *name); /* or NULL */
/* The same by one name, "train.epochs". */
const cleat_key *cleat_schema_find_setting(const cleat_schema *schema, const char *setting);
/* Whether the key applies to records of kind `kind`. */
bool cleat_key_applies(const cleat_key *key, int kind);
/* Appends every section and key with its default, its meaning and the allowed values. Later rows of the
 * same name, for other kinds, follow the first. */
void cleat_schema_help(const cleat_schema *schema, cleat_string *text);

/* --- names (names.c) ------------------------------------------------------------------------------------------ */

/* Finds the key `name` of `section`. CLEAT_ERR_PROFILE: no such section or key, with `place` and the name
 * that was probably meant. */
cleat_status cleat_schema_require(const cleat_schema *schema, const char *section, const char *name, const char *place,
                                  const cleat_key **key, cleat_error *error);
/* CLEAT_ERR_PROFILE unless the schema has a section of that name. */
cleat_status cleat_schema_require_section(const cleat_schema *schema, const char *section, const char *place,
                                          cleat_error *error);

/* --- one value (value.c) -------------------------------------------------------------------------------------- */

/* Parses `text` into the key's field of `fields`, the struct that holds it; NULL: only validates it. On
 * failure the field is unchanged, and the message gives `place` ("rna.ini:12: d_model = x") and the allowed
 * values. `noun`: as in cleat_schema. */
cleat_status cleat_value_parse(const char *noun, const cleat_key *key, const char *text, const char *place,
                               void *fields, cleat_error *error);
/* Appends the value in the syntax of a file; parsing it gives the same value. */
void cleat_value_print(const cleat_key *key, const void *fields, cleat_string *text);
/* Appends the allowed values: "a whole number from 1 to 64, or auto". */
void cleat_value_allowed(const cleat_key *key, cleat_string *text);

#endif
