/* Paths of files that tests read. The environment names their folders, so a test program also runs on
 * machines where it was not built. */
#ifndef CLEAT_TESTS_SOURCE_PATH_H
#define CLEAT_TESTS_SOURCE_PATH_H

#include "platform/files.h"

#include <stdio.h>
#include <stdlib.h>

/* The path of `name` in a folder's subfolder `below`. Valid until the 16th call after this one. */
static inline const char *path_below(const char *folder, const char *below, const char *name) {
    static char paths[16][1024];
    static unsigned next;
    char *path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s%s", folder, below, name);
    return path;
}

static inline const char *source_folder(void) {
    const char *folder = getenv("CLEAT_SOURCE_DIR");
    if (folder && *folder) return folder;
    fputs("set CLEAT_SOURCE_DIR to the folder of cleat's repository, whose files this test reads; ctest sets it\n",
          stderr);
    exit(EXIT_FAILURE);
}

/* The path of a file in this repository. */
static inline const char *source_path(const char *name) {
    return path_below(source_folder(), "", name);
}

/* The path of a shared data file: in CLEAT_SHARED, or else beside the repository. */
static inline const char *shared_path(const char *name) {
    const char *folder = getenv("CLEAT_SHARED");
    return folder && *folder ? path_below(folder, "", name) : path_below(source_folder(), "../shared/", name);
}

#endif
