/* Where the measured rates of a device are stored (cleat_rates_measure of cleat/rates.h). */
#ifndef CLEAT_SRC_RATES_H
#define CLEAT_SRC_RATES_H

#include "cleat/rates.h"

/* Path of a file in the user's cache folder: one for each device, driver, kernel shape and version of the
 * timed kernels. */
cleat_status cleat_rates_path(const cleat_device *device, char *path, size_t size, cleat_error *error);

/* Reads a stored file. Returns false if there is none, or if it is not exactly as it was written. */
bool cleat_rates_read(const char *path, cleat_rates *rates);
/* Writes such a file. A failure is only logged. */
void cleat_rates_write(const char *path, const cleat_rates *rates);

#endif
