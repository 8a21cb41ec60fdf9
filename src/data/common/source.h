/* Text files as readers want them, and numbers that do not depend on the locale. */
#ifndef CLEAT_SRC_SOURCE_H
#define CLEAT_SRC_SOURCE_H

#include "cleat/core.h"

/* A text file in memory: [at, end), with a zero byte behind. */
typedef struct cleat_source {
    const char *path; /* borrowed */
    char *data;       /* the allocation */
    char *at, *end;
    size_t bytes_before, lines_before; /* of the file, where `data` is a later part of it */
} cleat_source;

/* Reads a file and refuses what is no text: an empty file, a compressed one, zero bytes, and (with `utf8`)
 * bytes that are not UTF-8. A byte order mark is skipped. Errors name the line. */
cleat_status cleat_source_read(const char *path, bool utf8, cleat_source *source, cleat_error *error);
/* Puts U+FFFD in the place of every byte that is no part of a UTF-8 character; *replaced counts them. */
cleat_status cleat_source_repair_utf8(cleat_source *source, size_t *replaced, cleat_error *error);
/* The same checks, and the byte order mark, for a source that its reader has filled. */
cleat_status cleat_source_check(cleat_source *source, bool utf8, cleat_error *error);
void cleat_source_close(cleat_source *source);

/* Copies `text` [length] so that it can stand in a message: unprintable bytes become '?', long text ends in
 * "...". */
enum { CLEAT_EXCERPT_SIZE = 44 };
const char *cleat_format_excerpt(const char *text, size_t length, char shown[CLEAT_EXCERPT_SIZE]);

/* Parses a whole decimal number ("-12.5", "1e-3"); spaces around it are fine. False for anything else: empty,
 * nan, inf, hexadecimal. */
bool cleat_parse_decimal(const char *text, size_t length, double *value);
/* Writes `value` with three decimals, as "%.3f" does in the C locale. |value| < 1e12. Returns the length. */
int cleat_format_fixed3(double value, char text[24]);

#endif
