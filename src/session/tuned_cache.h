/* The file that keeps which kernels were measured to be the fastest of a device (cleat_tune). */
#ifndef CLEAT_SRC_TUNED_CACHE_H
#define CLEAT_SRC_TUNED_CACHE_H

#include "cleat/tuning.h"
#include "core/embedded.h"
#include "graph/tuning.h"

/* Files of choices that came with the program: profiles/devices/NAME.tuned, by name; ends with a NULL name. */
extern const cleat_embedded cleat_embedded_tuned[];

/* What stands for all kernels together and the version of cleat: a hash as text. */
cleat_status cleat_kernels_hash(char hash[33], cleat_error *error);
/* The file in the user's cache folder: one a device, driver and kernel shape. */
cleat_status cleat_tuned_path(const cleat_device *device, char *path, size_t size, cleat_error *error);
/* What is there, if it is of these kernels, whatever CLEAT_TUNED says; NULL where nothing is. */
cleat_tuning_table *cleat_tuned_read(const cleat_device *device);
/* As cleat_tuning_load, but CLBlast stays as it is. */
cleat_tuning_table *cleat_tuned_read_with_shipped(const cleat_device *device);
/* Makes CLBlast compute with the table's parameters, where it has any. Some that this device cannot run are a warning. */
void cleat_tuned_apply(cleat_device *device, const cleat_tuning_table *tuning);
/* An empty table for this device and these kernels, of today. */
cleat_status cleat_tuned_create(const cleat_device *device, cleat_tuning_table **tuning, cleat_error *error);
/* To the file in the cache folder; `path` not NULL: to that file, ready to be shipped. */
cleat_status cleat_tuned_write(const cleat_device *device, const cleat_tuning_table *tuning, const char *path,
                               cleat_error *error);

#endif
