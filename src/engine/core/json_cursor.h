/* Reads JSON from front to back, where a tree of its values is not needed. */
#ifndef CLEAT_SRC_JSON_CURSOR_H
#define CLEAT_SRC_JSON_CURSOR_H

#include "cleat/core.h"

typedef struct cleat_json_cursor {
    const char *at, *end;
    bool failed; /* the text is not JSON: the caller asks once, at the end */
} cleat_json_cursor;

/* Is `c` next, after blanks? */
bool cleat_json_peek(cleat_json_cursor *json, char c);
/* The same; consumes it. */
bool cleat_json_accept(cleat_json_cursor *json, char c);
/* Consumes what stands before element *count of an object or array that ends with `close`, and increments
 * *count. False: the end was next, and is consumed. */
bool cleat_json_next(cleat_json_cursor *json, char close, int64_t *count);
/* Decodes a string to `text`, zero-terminated, which takes at most the bytes of the string with its quotes.
 * Returns the byte after the zero; NULL: no string is next. */
char *cleat_json_read_text(cleat_json_cursor *json, char *text);
/* Reads a whole number from 0 to 2^53; false: none is next, which is no failure. */
bool cleat_json_read_count(cleat_json_cursor *json, int64_t *count);
/* Steps over a value, of which only brackets and strings are looked at. */
void cleat_json_skip(cleat_json_cursor *json);

#endif
