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

#endif
