/* Writes the JSON constructs that checkpoints and metrics need. */
#ifndef CLEAT_SRC_JSON_H
#define CLEAT_SRC_JSON_H

#include "core/text.h"

/* Appends `value` in quotes, escaped. Bytes from 0x80 on are copied unchanged, since all text is UTF-8. */
void cleat_json_add_string(cleat_text *text, const char *value);

#endif
