/* Compiling the kernels of a run in several processes. PoCL generates the code of one kernel after the other,
 * under a lock of the process, so only one core works. Processes that fill PoCL's cache side by side halve
 * the first start on two cores. The library starts no process: the program that uses it does. */
#ifndef CLEAT_COMPILE_H
#define CLEAT_COMPILE_H

#include "cleat/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How a program starts processes that compile. Calls come one at a time, from any thread that uses the
 * device, and from threads of the library. */
typedef struct cleat_compile_helpers {
    /* Starts up to `count` processes that each call cleat_compile_jobs with a descriptor of the open file
     * `file`, and end then. Returns how many were started. */
    int (*start)(void *user, int file, int count);
    /* How many of them still run. */
    int (*running)(void *user);
    /* Ends those that still run, and waits for their end. */
    void (*stop)(void *user);
    void *user;
    /* Without any progress for that number of seconds, they are stopped; 0: 60. */
    double patience;
} cleat_compile_helpers;

/* Lets `device` compile with `helpers` (borrowed until the device is closed; NULL: alone, as at first) from
 * now on: where the driver is PoCL, more than one CPU may be used, and enough kernels have not been compiled
 * before. If the processes fail, this process compiles the remaining kernels. All results are the same
 * bits. */
CLEAT_API void cleat_device_compile_with(cleat_device *device, const cleat_compile_helpers *helpers);

/* In a helper process: compiles kernels of the list in `file` until every kernel has been started by some
 * process. Errors: `file` is not such a list, or the device cannot be opened. A kernel that does not compile
 * is left to the parent process. */
CLEAT_API cleat_status cleat_compile_jobs(int file, cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif
