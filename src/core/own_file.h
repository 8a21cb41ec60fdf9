/* The file that holds the code of the library. */
#ifndef CLEAT_SRC_OWN_FILE_H
#define CLEAT_SRC_OWN_FILE_H

#include <limits.h>
#include <stdbool.h>

/* Writes the resolved path of the shared library or program that holds this code to `path`. False, with `path` undefined,
 * if it cannot be found. */
bool cleat_own_file(char path[PATH_MAX]);

#endif
