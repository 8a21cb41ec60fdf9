/* Where the measured rates of a device are kept (cleat_rates_measure of cleat/rates.h). */
#ifndef CLEAT_SRC_RATES_H
#define CLEAT_SRC_RATES_H

#include "cleat/rates.h"

/* The file in the user's cache folder: one a device, driver, kernel shape and state of the kernels that are timed. */
cleat_status cleat_rates_path(const cleat_device *device, char *path, size_t size, cleat_error *error);

#endif
