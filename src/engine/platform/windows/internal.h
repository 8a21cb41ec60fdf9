/* Of the files of this folder only: paths as Windows takes them. */
#ifndef CLEAT_SRC_PLATFORM_WINDOWS_INTERNAL_H
#define CLEAT_SRC_PLATFORM_WINDOWS_INTERNAL_H

#include <stdbool.h>
#include <wchar.h>
#define WIN32_LEAN_AND_MEAN
#ifndef _WIN32_WINNT
#define _WIN32_WINNT 0x0a00
#endif
#include <windows.h>

enum { CLEAT_WIDE = 4096 };

/* False: it is not UTF-8, or too long; errno says which. Long paths get the prefix that lifts the limit of 260. */
bool cleat_windows_wide(const char *path, wchar_t wide[CLEAT_WIDE]);
/* The same back; `size` bytes of text. */
bool cleat_windows_narrow(const wchar_t *wide, char *text, size_t size);
/* Opens a file of Linux of which Windows says the content (cleat_system_source); -1: ENOENT, it is none of these. */
int cleat_windows_open_system(const char *file);
/* Sets errno to what GetLastError says; returns -1. */
int cleat_windows_fail(void);

#endif
