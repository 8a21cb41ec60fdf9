/* Locks between processes. */
#ifndef CLEAT_SRC_LOCK_H
#define CLEAT_SRC_LOCK_H

#include "cleat/core.h"

/* Locks the file PATH.lock, which is created and never removed, and waits at most `seconds` for the current
 * holder, which may be another process or another thread of this one. The lock ends with cleat_unlock or with
 * the end of its process, however that ends: a file that contains "under way" and is not locked was left
 * behind. CLEAT_ERR_TIME_UP: the lock was held all the time. Errors of
 * cleat_file_open_inside: the file cannot be created.
 * CLEAT_ERR_NOT_SUPPORTED: its file system has no locks. */
cleat_status cleat_lock(const char *path, double seconds, int *lock, cleat_error *error);
void cleat_unlock(int lock);

#endif
