/* What Windows lacks of POSIX for texts. Its runtime has one locale, which programs leave at "C". */
#ifndef CLEAT_SRC_PLATFORM_WINDOWS_TEXT_H
#define CLEAT_SRC_PLATFORM_WINDOWS_TEXT_H

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

typedef int cleat_windows_locale;
#define locale_t cleat_windows_locale
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
#define strsignal(number) ((void)(number), "a signal") /* WIFSIGNALED is never true */
void *cleat_windows_memrchr(const void *bytes, int byte, size_t size);
long long cleat_windows_getline(char **line, size_t *room, FILE *file);
#define memrchr cleat_windows_memrchr
#define getline cleat_windows_getline
int cleat_windows_strverscmp(const char *a, const char *b);
#define strverscmp cleat_windows_strverscmp
#define timegm _mkgmtime
#define memmem cleat_windows_memmem
#define strcasestr cleat_windows_strcasestr

/* The runtime keeps what is written to the standard error, unless that is a console, until it is 4 KiB. */
static inline int cleat_windows_flush(FILE *file, int written) {
    if (file == stderr) fflush(file);
    return written;
}
#define fprintf(file, ...) cleat_windows_flush(file, (fprintf)(file, __VA_ARGS__))
#define vfprintf(file, format, list) cleat_windows_flush(file, (vfprintf)(file, format, list))

#endif
