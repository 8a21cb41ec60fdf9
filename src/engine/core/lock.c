/* Locks between processes, by flock: the system releases a lock with the last descriptor of the opened
 * file. */
#include "core/lock.h"

#include "core/clock.h"
#include "core/files.h"
#include "platform/files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { PATH_BYTES = 4096 };

static cleat_status wait_for(int file, const char *path, double seconds, cleat_error *error) {
    const struct timespec pause = {.tv_nsec = 20000000};
    const double end = cleat_seconds() + seconds;
    while (flock(file, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EINTR) continue;
        if (errno != EWOULDBLOCK)
            return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "%s: cannot lock: %s", path, strerror(errno));
        if (cleat_seconds() >= end)
            return cleat_fail(error, CLEAT_ERR_TIME_UP, "%s: locked by another process for %g s", path, seconds);
        nanosleep(&pause, NULL);
    }
    return CLEAT_OK;
}

cleat_status cleat_lock(const char *path, double seconds, int *lock, cleat_error *error) {
    char name[PATH_BYTES];
    if ((size_t)snprintf(name, sizeof name, "%s.lock", path) >= sizeof name)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "path too long: %.100s...", path);
    int file;
    cleat_status status = cleat_file_open_inside(name, O_RDWR | O_CREAT, 0600, &file, error);
    if (status) return status;
    status = wait_for(file, name, seconds, error);
    if (!status)
        *lock = file;
    else
        close(file);
    return status;
}

void cleat_unlock(int lock) {
    close(lock);
}
