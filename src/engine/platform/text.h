/* Texts and locales, by the names of POSIX. */
#ifndef CLEAT_SRC_PLATFORM_TEXT_H
#define CLEAT_SRC_PLATFORM_TEXT_H

#ifdef _WIN32
#include "platform/windows/text.h"
#else
#include <langinfo.h>
#include <locale.h>
#include <strings.h>
#endif

/* Around a word that users type, in the form that cmd and PowerShell share; and the command of ImageMagick. */
#ifdef _WIN32
#define CLEAT_SHELL_QUOTE "\""
#define CLEAT_CONVERT "magick"
#else
#define CLEAT_SHELL_QUOTE "'"
#define CLEAT_CONVERT "convert"
#endif

#endif
