/* Writing JSON text: the few forms that checkpoints and metrics need. */
#ifndef CLEAT_SRC_JSON_H
#define CLEAT_SRC_JSON_H

#include "core/text.h"

/* Appends `value` in quotes, escaped. Bytes from 0x80 on pass through: text is UTF-8. */
void cleat_json_add_string(cleat_text *text, const char *value);

#endif
