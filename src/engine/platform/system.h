/* Libraries, terminal, user and machine, by the names of POSIX. */
#ifndef CLEAT_SRC_PLATFORM_SYSTEM_H
#define CLEAT_SRC_PLATFORM_SYSTEM_H

#ifdef _WIN32
#include "platform/windows/system.h"
#else
#include <dlfcn.h>
#include <link.h>
#include <pwd.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <termios.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#endif

/* Where the system says why it reset a graphics card. Windows does so when a kernel takes two seconds. */
#ifdef _WIN32
#define CLEAT_SYSTEM_LOG "The System log of Windows' Event Viewer (event 4101: a kernel took longer than 2 s)"
#else
#define CLEAT_SYSTEM_LOG "The kernel log (`dmesg`)"
#endif

/* Calls `found` with the library of each OpenCL driver that the system lists other than in files: on Windows in its
 * registry, by Khronos' key and by the display adapters. */
void cleat_registered_drivers(void (*found)(void *user, const char *library), void *user);

#endif
