/* Writes the JSON constructs that checkpoints, metrics and records need. */
#ifndef CLEAT_SRC_JSON_H
#define CLEAT_SRC_JSON_H

#include "core/text.h"

/* Appends `value` in quotes, escaped. Bytes from 0x80 on are copied unchanged, since all text is UTF-8. */
void cleat_json_add_string(cleat_text *text, const char *value);
/* The same of a text whose encoding is not known, such as a driver's name: bytes that are not UTF-8 become U+FFFD. */
void cleat_json_add_clean(cleat_text *text, const char *value);
/* Appends a number with at most 9 digits (a whole number with all of its digits); null if it is not finite. */
void cleat_json_add_number(cleat_text *text, double value);
/* Appends `"NAME":` in front of a value, with a comma unless it is the first of its object. */
void cleat_json_add_name(cleat_text *text, const char *name);
/* Appends a point in time with three decimals. */
void cleat_json_add_time(cleat_text *text, double seconds);

#endif
