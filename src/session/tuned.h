/* The file that keeps which kernels were measured to be the fastest of a device (cleat_tune). */
#ifndef CLEAT_SRC_TUNED_H
#define CLEAT_SRC_TUNED_H

#include "cleat/session.h"
#include "graph/choices.h"

/* The file in the user's cache folder: one a device, driver and kernel shape. */
cleat_status cleat_tuned_path(const cleat_device *device, char *path, size_t size, cleat_error *error);
/* What is there, as cleat_choices_load, whatever CLEAT_TUNED says. */
cleat_choices *cleat_tuned_read(const cleat_device *device);
/* An empty table for this device and these kernels, of today. */
cleat_status cleat_tuned_create(const cleat_device *device, cleat_choices **choices, cleat_error *error);
cleat_status cleat_tuned_write(const cleat_device *device, const cleat_choices *choices, cleat_error *error);

#endif
