/* Files and folders, by the names of POSIX; paths are UTF-8. */
#ifndef CLEAT_SRC_PLATFORM_FILES_H
#define CLEAT_SRC_PLATFORM_FILES_H

#ifdef _WIN32
#include "platform/windows/files.h"
#else
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#endif

#endif
