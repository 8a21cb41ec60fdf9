/* Reading the small files of /proc and /sys. */
#ifndef CLEAT_SRC_KERNEL_FILES_H
#define CLEAT_SRC_KERNEL_FILES_H

#include "cleat/core.h"

/* The path is that of printf. All return false, and write nothing, if the file is missing, cannot be read (drivers
 * answer with EINVAL, EIO, ENOTSUP) or holds something else. */

/* Reads the start of a file, at most size - 1 bytes, and ends it with a zero. */
bool cleat_kernel_text(char *text, size_t size, const char *path, ...) CLEAT_PRINTF(3, 4);
/* Reads the number at the start of a file. */
bool cleat_kernel_number(double *number, const char *path, ...) CLEAT_PRINTF(2, 3);
/* Finds the number after `word` at the start of a line: cleat_kernel_field(text, "VmRSS:", &kib). */
bool cleat_kernel_field(const char *text, const char *word, double *number);

/* Writes the path of the first hwmon folder of a device to path [size]. */
bool cleat_kernel_hwmon(const char *device, char *path, size_t size);
/* The id of this process if drivers list it under that id; false in a container. */
bool cleat_kernel_process(const char *root, long *process);

/* An event counter since the last read. */
typedef struct cleat_kernel_counter {
    double last;
    bool known;
} cleat_kernel_counter;

/* How much a counter grew since the previous call; NaN on the first, and if it went backwards. */
double cleat_kernel_growth(cleat_kernel_counter *counter, double value);

#endif
