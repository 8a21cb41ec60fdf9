/* Growable strings, and number conversion that does not depend on the locale of the process. */
#ifndef CLEAT_SRC_STRING_H
#define CLEAT_SRC_STRING_H

#include "cleat/core.h"

typedef struct cleat_string {
    char *data; /* zero-terminated; NULL while empty */
    size_t size, capacity;
    bool failed; /* out of memory: later calls do nothing; the caller checks once at the end */
    bool spaced; /* JSON with a blank after each comma and colon */
} cleat_string;

void cleat_string_add(cleat_string *text, const char *format, ...) CLEAT_PRINTF(2, 3);
void cleat_string_add_bytes(cleat_string *text, const char *bytes, size_t size);
/* Makes room for `size` further bytes at once, where growing by doubling would need twice as much. */
void cleat_string_reserve(cleat_string *text, size_t size);
/* Appends a field of a CSV file, in quotes where RFC 4180 requires them. */
void cleat_string_add_field(cleat_string *text, const char *field);
/* Appends the bytes in base64 (RFC 4648). */
void cleat_string_add_base64(cleat_string *text, const uint8_t *bytes, size_t size);
void cleat_string_free(cleat_string *text);
/* Moves the string to *out, which the caller frees with cleat_free. If memory ran out, frees it and reports
 * that. */
cleat_status cleat_string_detach(cleat_string *text, char **out, cleat_error *error);

/* Formats a duration for people: "350 ms", "3.25 s", "12 s", "4 min 05 s", "2 h 07 min", "3 d 04 h"; "?" if it is
 * unknown. Returns `text`. */
enum { CLEAT_DURATION_TEXT = 24 };
const char *cleat_duration_text(double seconds, char text[CLEAT_DURATION_TEXT]);

/* Whether a list "a b c", here of blanks as `between`, has the word. */
bool cleat_has_word(const char *list, const char *word, char between);

/* Bytes of the UTF-8 character at the start of `text`, which is zero-terminated; 0: none starts there. */
size_t cleat_utf8_size(const char *text);

/* Parses the whole of `text` as a finite number. */
bool cleat_number_parse(const char *text, double *value);
/* Prints the number with the fewest digits, at least 6, that parse back to the same bits. */
void cleat_number_print(double value, char text[32]);
/* Prints the number with `digits` significant digits. */
void cleat_number_print_digits(double value, int digits, char text[32]);

#endif
