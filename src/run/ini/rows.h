/* Macros for the rows of a schema. The file with the table defines RECORD, the type of its struct, before it
 * includes this header. */
#ifndef CLEAT_SRC_INI_ROWS_H
#define CLEAT_SRC_INI_ROWS_H

#include "ini/schema.h"

/* The key NAME of [SECTION] is the field SECTION.NAME of the record. */
#define AT(SECTION, NAME) .section = #SECTION, .name = #NAME, .offset = offsetof(RECORD, SECTION.NAME)
/* The key NAME of [SECTION] is the field MEMBER of the record. */
#define FIELD(SECTION, NAME, MEMBER) .section = #SECTION, .name = #NAME, .offset = offsetof(RECORD, MEMBER)
#define INT(LOW, HIGH, INITIAL) .type = CLEAT_KEY_INT, .min = LOW, .max = HIGH, .initial = INITIAL
#define FLOAT(LOW, HIGH, INITIAL) .type = CLEAT_KEY_FLOAT, .min = LOW, .max = HIGH, .initial = INITIAL
#define BOOL(INITIAL) .type = CLEAT_KEY_BOOL, .initial = INITIAL
#define EITHER(NAMES, INITIAL) .type = CLEAT_KEY_BOOL, .choices = NAMES, .initial = INITIAL
#define CHOICE(NAMES, INITIAL) .type = CLEAT_KEY_CHOICE, .choices = NAMES, .initial = INITIAL
#define STRING(FIELD, SHORTEST, INITIAL)                                                                               \
    .type = CLEAT_KEY_STRING, .room = sizeof((RECORD *)0)->FIELD, .min = SHORTEST,                                     \
    .max = sizeof((RECORD *)0)->FIELD - 1, .initial = INITIAL
#define TEXT(SHORTEST, LONGEST, INITIAL) .type = CLEAT_KEY_TEXT, .min = SHORTEST, .max = LONGEST, .initial = INITIAL
/* TOTAL or TOTAL/SESSION, or OR_NONE, whose value is 0, in place of either. */
#define QUOTA(LOW, HIGH, INITIAL) .type = CLEAT_KEY_QUOTA, .min = LOW, .max = HIGH, .initial = INITIAL
#define PERIOD(LOW, HIGH, INITIAL) .type = CLEAT_KEY_PERIOD, .min = LOW, .max = HIGH, .initial = INITIAL
#define BYTES(LOW, HIGH, INITIAL) .type = CLEAT_KEY_BYTES, .min = LOW, .max = HIGH, .initial = INITIAL
#define LIST(LOW, HIGH, INITIAL) .type = CLEAT_KEY_LIST, .min = LOW, .max = HIGH, .initial = INITIAL
#define OR_AUTO .word = "auto", .word_value = -1
#define OR_NONE_OR_AUTO OR_NONE, .or_auto = true
#define OR_NONE .word = "none", .word_value = 0
#define A_PATH .path = true
#define COMPUTES .computes = true
#define SHAPES .computes = true, .shapes = true
#define REQUIRED NULL /* for INITIAL: a file must give the key */

#endif
