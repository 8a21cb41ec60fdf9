/* What is known of a device by having measured it: its speeds, and its fastest kernels. */
#ifndef CLEAT_SESSION_H
#define CLEAT_SESSION_H

#include "cleat/device.h"
#include "cleat/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How fast a device is in cleat's own kernels: the products of a feed-forward block, an addition over 64 MiB, launches.
 * Takes about a second the first time (and compiling); the result is kept in the cache folder ($CLEAT_CACHE_DIR) for the
 * next. Works in little memory (half of what is free, 64 MiB at most; 6 MiB are enough) and releases it. Errors:
 * CLEAT_ERR_FIT or CLEAT_ERR_DEVICE_MEMORY, less than that; those of the device. */
CLEAT_API cleat_status cleat_rates_measure(cleat_device *device, cleat_rates *rates, cleat_error *error);

/* What is known of the fastest kernels of the device, for plans that are to be those of a run: what cleat_tune found here
 * with these kernels, and where that has no answer, what was measured on such a device and came with the program
 * (profiles/devices/NAME.tuned); that needs not be of these very kernels, for an answer whose variant is gone is passed
 * over. NULL where there is nothing, or $CLEAT_TUNED is "never" (another word than "auto" is a warning). A damaged file is a warning. Where the answers have
 * parameters for CLBlast, CLBlast computes with them from here on. Free with cleat_tuning_destroy. */
CLEAT_API cleat_tuning_table *cleat_tuning_load(cleat_device *device);

#ifdef __cplusplus
}
#endif
#endif
