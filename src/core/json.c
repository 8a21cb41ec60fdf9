/* JSON strings: quoting and escaping. */
#include "core/json.h"

#include <string.h>

void cleat_json_add_string(cleat_text *text, const char *value) {
    cleat_text_add_bytes(text, "\"", 1);
    for (const char *c = value; *c; ++c) {
        if (*c == '"' || *c == '\\')
            cleat_text_add(text, "\\%c", *c);
        else if ((unsigned char)*c < 0x20)
            cleat_text_add(text, "\\u%04x", (unsigned)*c);
        else
            cleat_text_add_bytes(text, c, 1);
    }
    cleat_text_add_bytes(text, "\"", 1);
}
