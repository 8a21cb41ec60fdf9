/* How fast a device is: rates that are measured once and cached. */
#ifndef CLEAT_RATES_H
#define CLEAT_RATES_H

#include "cleat/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How fast a device is in cleat's own kernels: the products of a feed-forward block, an addition over 64
 * MiB, launches. Takes about a second the first time (and compiling); the result is kept in the cache
 * folder ($CLEAT_CACHE_DIR) for the next. Works in little memory (half of what is free, 64 MiB at most; 6
 * MiB are enough) and releases it. Errors: CLEAT_ERR_FIT or CLEAT_ERR_DEVICE_MEMORY, less than that; those
 * of the device. */
CLEAT_API cleat_status cleat_rates_measure(cleat_device *device, cleat_rates *rates, cleat_error *error);

/* The same, measured now whatever is kept. Of each rate, the better of the measured and the kept one is
 * returned and kept from then on: a busy machine can only make a rate look worse. */
CLEAT_API cleat_status cleat_rates_remeasure(cleat_device *device, cleat_rates *rates, cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif
