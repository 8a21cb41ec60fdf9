/* What Windows lacks of POSIX for texts. Its runtime has one locale, which programs leave at "C". */
#ifndef CLEAT_SRC_PLATFORM_WINDOWS_TEXT_H
#define CLEAT_SRC_PLATFORM_WINDOWS_TEXT_H

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define locale_t int
#define LC_ALL_MASK LC_ALL
#define newlocale(mask, name, base) ((void)(base), 1)
static inline locale_t uselocale(locale_t to) {
    return to;
}
#define freelocale(locale) ((void)(locale))
#define strtod_l(text, end, locale) ((void)(locale), strtod(text, end))
#define CODESET 0
#define nl_langinfo(item) "UTF-8"

void *cleat_windows_memmem(const void *bytes, size_t size, const void *wanted, size_t length);
char *cleat_windows_strcasestr(const char *text, const char *wanted);
#define strsignal(number) ((void)(number), "a crash")
void *cleat_windows_memrchr(const void *bytes, int byte, size_t size);
long long cleat_windows_getline(char **line, size_t *room, FILE *file);
#define memrchr cleat_windows_memrchr
#define getline cleat_windows_getline
int cleat_windows_strverscmp(const char *a, const char *b);
#define strverscmp cleat_windows_strverscmp
#define timegm _mkgmtime
#define memmem cleat_windows_memmem
#define strcasestr cleat_windows_strcasestr

/* A message is written at once. The runtime would write it to a console letter by letter, and keep what it writes to
 * a standard error that is no console until it is 4 KiB. */
int cleat_windows_vfprintf(FILE *file, const char *format, va_list arguments);
int cleat_windows_fprintf(FILE *file, const char *format, ...);
#define vfprintf cleat_windows_vfprintf
#define fprintf cleat_windows_fprintf
#define printf(...) cleat_windows_fprintf(stdout, __VA_ARGS__)

#endif
