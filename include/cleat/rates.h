/* Speeds of a device, measured once and cached: those that cleat's kernels sustain, and those that its units
 * can reach. */
#ifndef CLEAT_RATES_H
#define CLEAT_RATES_H

#include "cleat/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Measures the sustained speeds of a device with kernels of cleat, for estimates of time: the matrix products
 * of a feed-forward block, an addition, and the launches of an empty kernel. On fast cards the products grow
 * until each takes at least 32 times as long as a launch; the addition covers 64 MiB, on GPUs more than their
 * cache holds (512 MiB on large cards). The first call takes about a second plus compilation; the result is
 * cached in the cache folder ($CLEAT_CACHE_DIR). Temporarily allocates at most half of the free device
 * memory; 6 MiB are enough. CLEAT_ERR_FIT or CLEAT_ERR_DEVICE_MEMORY: less memory is free. Errors of the
 * device are also returned. */
CLEAT_API cleat_status cleat_rates_measure(cleat_device *device, cleat_rates *rates, cleat_error *error);

/* As cleat_rates_measure, but always measures. For each rate, the better of the measured and the cached value
 * is returned and cached, because other load on the machine can only lower a measured rate. */
CLEAT_API cleat_status cleat_rates_remeasure(cleat_device *device, cleat_rates *rates, cleat_error *error);

/* Measures the peaks of a device, with which `cleat bench` compares: flops and matrix_flops are those of
 * multiply-adds in registers, without any memory; bytes and launch_seconds are the sustained ones. Cached in
 * the same way. `again`: measures everything again, as cleat_rates_remeasure does. */
CLEAT_API cleat_status cleat_peaks_measure(cleat_device *device, bool again, cleat_rates *peaks, cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif
