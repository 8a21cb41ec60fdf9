/* Where the measured rates of a device are kept (cleat_rates_measure of cleat/rates.h). */
#ifndef CLEAT_SRC_RATES_H
#define CLEAT_SRC_RATES_H

#include "cleat/rates.h"

/* The file in the user's cache folder: one a device, driver, kernel shape and state of the kernels that are timed. */
cleat_status cleat_rates_path(const cleat_device *device, char *path, size_t size, cleat_error *error);

/* Keeps `rates` where they are better than those kept (fewer seconds a launch, more of the others), one by one. Does
 * nothing where there is no folder to keep them in. */
void cleat_rates_raise(const cleat_device *device, const cleat_rates *rates);

#endif
