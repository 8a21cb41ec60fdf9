/* One line of a log: a flat JSON object, scanned without a tree. */
#ifndef CLEAT_SRC_RECORD_LINE_H
#define CLEAT_SRC_RECORD_LINE_H

#include "cleat/core.h"

#include <locale.h>

enum { CLEAT_RECORD_FIELDS = 256, CLEAT_RECORD_KIND = 32 };

/* A number of the record. `name` points into the line and is not unescaped. */
typedef struct cleat_record_field {
    const char *name;
    size_t length;
    double value; /* NaN: null */
} cleat_record_field;

typedef struct cleat_record_line {
    char kind[CLEAT_RECORD_KIND];
    cleat_record_field fields[CLEAT_RECORD_FIELDS];
    size_t count;
} cleat_record_line;

/* Scans [line, end), which must be followed by a readable byte that cannot belong to a number (the newline).
 * Numbers and nulls become fields, also those one object deeper; other values are skipped. Numbers beyond
 * CLEAT_RECORD_FIELDS are dropped. Returns false unless it is an object with a "kind". */
bool cleat_record_line_scan(const char *line, const char *end, locale_t plain, cleat_record_line *record);

#endif
