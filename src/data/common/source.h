/* Text files in memory with checks of their encoding, and locale-independent conversion of numbers. */
#ifndef CLEAT_SRC_SOURCE_H
#define CLEAT_SRC_SOURCE_H

#include "cleat/core.h"

/* A text file in memory: [at, end), followed by a zero byte. */
typedef struct cleat_source {
    const char *path; /* borrowed */
    char *data;       /* owned */
    char *at, *end;
    size_t bytes_before, lines_before; /* of the file before `data`, if `data` is a later part of it */
} cleat_source;

/* Reads a file and rejects anything but text: an empty file, a compressed one, zero bytes, and (with `utf8`)
 * bytes that are not UTF-8. A byte order mark is skipped. Errors name the line. The caller closes *source. */
cleat_status cleat_source_read(const char *path, bool utf8, cleat_source *source, cleat_error *error);
/* Replaces each byte that is not part of a UTF-8 character by U+FFFD; *replaced receives their number. */
cleat_status cleat_source_repair_utf8(cleat_source *source, size_t *replaced, cleat_error *error);
/* The same checks as cleat_source_read, and skipping of the byte order mark, for a source whose data the
 * caller has set. */
cleat_status cleat_source_check(cleat_source *source, bool utf8, cleat_error *error);
void cleat_source_close(cleat_source *source);

/* Copies `text` [length] for use in a message: unprintable bytes become '?', long text is truncated and ends
 * in "...". Returns `shown`. */
enum { CLEAT_EXCERPT_SIZE = 44 };
const char *cleat_format_excerpt(const char *text, size_t length, char shown[CLEAT_EXCERPT_SIZE]);

/* Parses a whole decimal number ("-12.5", "1e-3"), optionally surrounded by spaces. Returns false for
 * anything else: empty text, nan, inf, hexadecimal. */
bool cleat_parse_decimal(const char *text, size_t length, double *value);
/* Writes `value` with three decimals, like "%.3f" in the C locale; |value| < 1e12. Returns the length. */
int cleat_format_fixed3(double value, char text[24]);

#endif
