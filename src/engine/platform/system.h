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

/* For messages: how a user gets an OpenCL driver and ends the input, the variable of the folder of temporary files, and
 * where the system says why it reset a graphics card. Windows does so when a kernel takes two seconds. */
#ifdef _WIN32
#define CLEAT_GET_OPENCL "The current graphics driver of the card's maker brings OpenCL: install it"
#define CLEAT_END_OF_INPUT "Ctrl-Z and Enter"
#define CLEAT_TEMPORARY "TEMP"
#define CLEAT_SYSTEM_LOG "The System log of Windows' Event Viewer (event 4101: a kernel took longer than 2 s)"
#else
#define CLEAT_GET_OPENCL                                                                                               \
    "For the CPU: apt-get install pocl-opencl-icd. For a card: install its vendor's driver, and check that "           \
    "/etc/OpenCL/vendors (or $OCL_ICD_VENDORS) holds its .icd file (in an NVIDIA container: a file nvidia.icd with "   \
    "the line libnvidia-opencl.so.1)"
#define CLEAT_END_OF_INPUT "Ctrl-D"
#define CLEAT_TEMPORARY "TMPDIR"
#define CLEAT_SYSTEM_LOG "The kernel log (`dmesg`)"
#endif

/* Calls `found` with the library of each OpenCL driver that the system lists other than in files: on Windows in its
 * registry, by Khronos' key and by the display adapters. */
void cleat_registered_drivers(void (*found)(void *user, const char *library), void *user);

/* What says the same as a file of the system of Linux ("/proc/meminfo"): on Linux the file; on Windows, where opening a
 * few of these files gives what the source says, the name of a function; NULL: nothing. */
const char *cleat_system_source(const char *file);

/* A display adapter on the PCI bus. */
typedef struct cleat_display_adapter {
    unsigned vendor, device;
    int bus, slot, function; /* bus -1: unknown */
    char name[128];
    char driver[32];   /* its version; "" */
    char opencl[1024]; /* its library; "" */
} cleat_display_adapter;
/* The installed adapters, [most] at most; none where the kernel shows them in files. */
size_t cleat_display_adapters(cleat_display_adapter *adapters, size_t most);

#endif
