/* Status texts, and error messages with context. */
#include "cleat/core.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *cleat_status_text(cleat_status status) {
    switch (status) {
#define CLEAT_STATUS_CASE(code, text)                                                                                  \
    case code:                                                                                                         \
        return text;
        CLEAT_STATUS_LIST(CLEAT_STATUS_CASE)
#undef CLEAT_STATUS_CASE
    }
    return "unknown status";
}

const char *cleat_version(void) {
    return CLEAT_VERSION;
}

void cleat_clean_text(char *text) {
    for (unsigned char *at = (unsigned char *)text; *at; ++at)
        if ((*at < 0x20 && *at != '\n' && *at != '\t') || *at == 0x7F)
            *at = '?';
        else if (*at == 0xC2 && at[1] >= 0x80 && at[1] < 0xA0)
            at[0] = at[1] = '?';
}

cleat_status cleat_fail(cleat_error *error, cleat_status status, const char *format, ...) {
    if (error) {
        va_list arguments;
        va_start(arguments, format);
        error->status = status;
        error->cl_code = 0;
        vsnprintf(error->text, sizeof error->text, format, arguments);
        va_end(arguments);
        cleat_clean_text(error->text);
    }
    return status;
}

static size_t append(char text[CLEAT_ERROR_TEXT], size_t used, const char *more) {
    size_t size = strlen(more), room = CLEAT_ERROR_TEXT - 1 - used;
    if (size > room) size = room;
    memcpy(text + used, more, size);
    text[used + size] = 0;
    return used + size;
}

cleat_status cleat_fail_in(cleat_error *error, cleat_status status, const char *format, ...) {
    if (!error) return status;
    char what[CLEAT_ERROR_TEXT / 2], inner[CLEAT_ERROR_TEXT];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    cleat_clean_text(what);
    memcpy(inner, error->text, sizeof inner);
    append(error->text, append(error->text, append(error->text, 0, what), ": "), inner);
    return error->status;
}
