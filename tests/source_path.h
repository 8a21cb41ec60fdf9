/* Paths of files that tests read, so that a test program also runs where it was not built. */
#ifndef CLEAT_TESTS_SOURCE_PATH_H
#define CLEAT_TESTS_SOURCE_PATH_H

#include <stdio.h>
#include <stdlib.h>

/* The path of `name` below the folder that the environment variable names, or else below `fallback`. Valid until the 16th call after
 * this one. */
static inline const char *path_below(const char *variable, const char *fallback, const char *name) {
    static char paths[16][1024];
    static unsigned next;
    const char *folder = getenv(variable);
    char *path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s", folder && *folder ? folder : fallback, name);
    return path;
}

/* Of this repository: CLEAT_SOURCE_DIR, or else where the test was compiled. */
static inline const char *source_path(const char *name) {
    return path_below("CLEAT_SOURCE_DIR", CLEAT_SOURCE_DIR, name);
}

/* Of the shared data: CLEAT_SHARED, or else beside the repository. */
static inline const char *shared_path(const char *name) {
    return path_below("CLEAT_SHARED", CLEAT_SOURCE_DIR "/../shared", name);
}

#endif
