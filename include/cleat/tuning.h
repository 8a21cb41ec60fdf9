/* Tuned kernel choices of a device, as measured by the autotuner. */
#ifndef CLEAT_TUNING_H
#define CLEAT_TUNING_H

#include "cleat/device.h"
#include "cleat/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Loads the tuned choices for a device: those that cleat_tune found on it with these kernels, and as a
 * fallback those shipped for such a device (profiles/devices/NAME.tuned). Shipped choices may be of other
 * kernel versions; a choice whose variant no longer exists is skipped. Returns NULL if no choices exist or
 * $CLEAT_TUNED is "never" (values other than "auto" and "never" log a warning). A damaged file logs a
 * warning. CLBlast parameters among the choices take effect with this call. Release with
 * cleat_tuning_destroy. */
CLEAT_API cleat_tuning_table *cleat_tuning_load(cleat_device *device);

#ifdef __cplusplus
}
#endif
#endif
