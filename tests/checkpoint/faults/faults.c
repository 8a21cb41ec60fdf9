/* Calls of the file system that can fail, or end the process, in place of the library's own. */
#include "faults.h"

#include "platform/files.h"
#include "platform/processes.h"

#include <errno.h>

long calls_until_fault;
bool fault_kills;

/* Counts a call; returns true if it must fail. */
static bool fault(void) {
    if (calls_until_fault == 0 || --calls_until_fault > 0) return false;
    if (fault_kills) kill(getpid(), SIGKILL);
    errno = EIO;
    return true;
}

/* The functions themselves, and those that replace them, under the names given by the linker. */
int __real_rename(const char *from, const char *to);
int __real_mkdir(const char *path, unsigned mode);
int __real_unlink(const char *path);
int __real_unlinkat(int folder, const char *name, int flags);
ssize_t __real_write(int file, const void *data, size_t size);
int __wrap_rename(const char *from, const char *to);
int __wrap_fsync(int file);
int __wrap_mkdir(const char *path, unsigned mode);
int __wrap_unlink(const char *path);
int __wrap_unlinkat(int folder, const char *name, int flags);
ssize_t __wrap_write(int file, const void *data, size_t size);

int __wrap_rename(const char *from, const char *to) {
    return fault() ? -1 : __real_rename(from, to);
}

/* Unlike a power failure, a kill loses nothing that was written: the call is counted, but not executed. */
int __wrap_fsync(int file) {
    (void)file;
    return fault() ? -1 : 0;
}

int __wrap_mkdir(const char *path, unsigned mode) {
    return fault() ? -1 : __real_mkdir(path, mode);
}

int __wrap_unlink(const char *path) {
    return fault() ? -1 : __real_unlink(path);
}

int __wrap_unlinkat(int folder, const char *name, int flags) {
    return fault() ? -1 : __real_unlinkat(folder, name, flags);
}

ssize_t __wrap_write(int file, const void *data, size_t size) {
    if (calls_until_fault == 1) __real_write(file, data, size / 2); /* the first half is written */
    return fault() ? -1 : __real_write(file, data, size);
}
