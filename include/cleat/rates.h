/* Sustained speeds of a device, measured once and cached. */
#ifndef CLEAT_RATES_H
#define CLEAT_RATES_H

#include "cleat/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Measures the sustained speeds of a device with kernels of cleat: the matrix products of a feed-forward
 * block, an addition over 64 MiB, and kernel launches. The first call takes about a second plus compilation;
 * the result is cached in the cache folder ($CLEAT_CACHE_DIR). Temporarily allocates half of the free device
 * memory, at most 64 MiB; 6 MiB are enough. CLEAT_ERR_FIT or CLEAT_ERR_DEVICE_MEMORY: less memory is free.
 * Errors of the device are returned too. */
CLEAT_API cleat_status cleat_rates_measure(cleat_device *device, cleat_rates *rates, cleat_error *error);

/* As cleat_rates_measure, but always measures. For each rate, the better of the measured and the cached value
 * is returned and cached, because other load on the machine can only lower a measured rate. */
CLEAT_API cleat_status cleat_rates_remeasure(cleat_device *device, cleat_rates *rates, cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif
