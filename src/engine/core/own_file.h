/* The file that holds the code of the library, and files of programs. */
#ifndef CLEAT_SRC_OWN_FILE_H
#define CLEAT_SRC_OWN_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Writes the resolved path of the shared library or program that holds this code to `path`. False, with
 * `path` undefined, if it cannot be found. */
bool cleat_own_file(char path[PATH_MAX]);

/* Finds the plug-in `file` ("libcleat-mpi.so"): the file that the environment variable `variable` names, or
 * else the one beside the library or program that holds this code, or in the folders for plug-ins beside it
 * or of the installation. False, with `path` undefined, if there is none. */
bool cleat_plugin_file(const char *file, const char *variable, char path[PATH_MAX]);

/* Finds a program in PATH, as a shell does. */
bool cleat_program_file(const char *name, char *path, size_t size);

#endif
