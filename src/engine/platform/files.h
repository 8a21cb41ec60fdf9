/* Files and folders, by the names of POSIX; paths are UTF-8. */
#ifndef CLEAT_SRC_PLATFORM_FILES_H
#define CLEAT_SRC_PLATFORM_FILES_H

#ifdef _WIN32
#include "platform/windows/files.h"
#else
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#endif

/* The path that a user has given, with slashes and without the prefix \\?\; the path that users can type into their
 * shell. On POSIX they stay as they are. CLEAT_PATHS_END: what separates paths in an environment variable.
 * CLEAT_UNREAD: errno of a write to a pipe without a reader; Microsoft's runtime has no number for ERROR_NO_DATA. */
#ifdef _WIN32
void cleat_path_from_user(char *path);
void cleat_path_for_user(char *path);
#define CLEAT_PATHS_END ";"
#define CLEAT_UNREAD EINVAL
#else
static inline void cleat_path_from_user(char *path) {
    (void)path;
}
static inline void cleat_path_for_user(char *path) {
    (void)path;
}
#define CLEAT_PATHS_END ":"
#define CLEAT_UNREAD EPIPE
#endif

#endif
