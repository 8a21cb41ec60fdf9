/* The log callback: the only global of the library besides the test switch of memory.c. */
#include "cleat/core.h"

#include <stdarg.h>
#include <stdio.h>

static struct {
    cleat_log_fn log;
    void *user;
    cleat_log_level level;
} sink;

void cleat_set_log(cleat_log_fn log, void *user, cleat_log_level level) {
    sink.log = log;
    sink.user = user;
    sink.level = level;
}

void cleat_log(cleat_log_level level, const char *format, ...) {
    if (!sink.log || level > sink.level) return;
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    cleat_clean_text(text);
    sink.log(sink.user, level, text);
}
