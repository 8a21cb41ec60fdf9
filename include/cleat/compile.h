/* Compiling the kernels of a run in several processes. PoCL generates code for one kernel at a time under a
 * process-wide lock, so a process uses only one core. Two processes that fill PoCL's cache halve the first
 * start on two cores. The library starts no processes; the program that uses it does. */
#ifndef CLEAT_COMPILE_H
#define CLEAT_COMPILE_H

#include "cleat/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Callbacks with which a program starts compiler processes. Calls come one at a time, from any thread that
 * uses the device, and from threads of the library. */
typedef struct cleat_compile_helpers {
    /* Starts up to `count` processes, each of which calls cleat_compile_jobs with a descriptor of the open
     * file `file` and then exits. Returns how many were started. */
    int (*start)(void *user, int file, int count);
    /* Returns how many of them still run. */
    int (*running)(void *user);
    /* Stops those that still run and waits for them to exit. */
    void (*stop)(void *user);
    void *user;
    /* Seconds without progress after which they are stopped; 0: 60. */
    double patience;
} cleat_compile_helpers;

/* Lets `device` compile with `helpers` (borrowed until the device is closed; NULL, the default: none) if the
 * driver is PoCL, more than one CPU is available, and enough kernels have never been compiled. If the
 * processes fail, this process compiles the remaining kernels. Results have the same bits. */
CLEAT_API void cleat_device_compile_with(cleat_device *device, const cleat_compile_helpers *helpers);

/* In a helper process: compiles kernels of the list in `file` until every kernel has been started by some
 * process. Errors: `file` is not such a list, or the device cannot be opened. A kernel that does not compile
 * is left to the parent process. */
CLEAT_API cleat_status cleat_compile_jobs(int file, cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif
