/* The file that stores which kernels were measured to be the fastest on a device (cleat_tune). */
#ifndef CLEAT_SRC_TUNED_CACHE_H
#define CLEAT_SRC_TUNED_CACHE_H

#include "cleat/tuning.h"
#include "core/embedded.h"
#include "graph/tuning.h"

/* The shipped tables: profiles/devices/NAME.tuned, sorted by name; ends with a NULL name. */
extern const cleat_embedded_file cleat_embedded_tuned[];

/* Writes a hash of all kernels and the version of cleat, as text. */
cleat_status cleat_kernels_hash(char hash[33], cleat_error *error);
/* Path of the file in the user's cache folder: one for each device, driver and kernel shape. */
cleat_status cleat_tuned_path(const cleat_device *device, char *path, size_t size, cleat_error *error);
/* Reads this file, regardless of CLEAT_TUNED. NULL if it does not exist, is invalid, or was measured with
 * other kernels. The caller destroys the table. */
cleat_tuning_table *cleat_tuned_read(const cleat_device *device);
/* As cleat_tuning_load, but without changing the parameters of CLBlast. */
cleat_tuning_table *cleat_tuned_read_with_shipped(const cleat_device *device);
/* Makes CLBlast use the table's parameters, if it has any. Logs a warning if this device cannot run them. */
void cleat_tuned_apply(cleat_device *device, const cleat_tuning_table *tuning);
/* Creates an empty table for this device, these kernels and the current date. */
cleat_status cleat_tuned_create(const cleat_device *device, cleat_tuning_table **tuning, cleat_error *error);
/* Writes the table to its file in the cache folder, or, if `path` is not NULL, to that file, ready to be
 * shipped. */
cleat_status cleat_tuned_write(const cleat_device *device, const cleat_tuning_table *tuning, const char *path,
                               cleat_error *error);

#endif
