/* Speeds of a device, measured once and cached. */
#ifndef CLEAT_RATES_H
#define CLEAT_RATES_H

#include "cleat/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Measures the sustained speeds of a device in the kernels of cleat: the products of a feed-forward block,
 * an addition over 64 MiB, and launches. Takes about a second the first time, plus compilation; the result
 * is cached in the cache folder ($CLEAT_CACHE_DIR). Uses little memory (half of the free memory, at most
 * 64 MiB; 6 MiB are enough) and releases it. Errors: CLEAT_ERR_FIT or CLEAT_ERR_DEVICE_MEMORY if there is
 * less; errors of the device. */
CLEAT_API cleat_status cleat_rates_measure(cleat_device *device, cleat_rates *rates, cleat_error *error);

/* As cleat_rates_measure, but always measured. Of each rate, the better of the measured and the cached
 * value is returned and cached: load on the machine can only lower a measured rate. */
CLEAT_API cleat_status cleat_rates_remeasure(cleat_device *device, cleat_rates *rates, cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif
