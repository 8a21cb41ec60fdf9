/* The fastest kernels of a device, as the autotuner measured them. */
#ifndef CLEAT_TUNING_H
#define CLEAT_TUNING_H

#include "cleat/device.h"
#include "cleat/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Loads the tuned choices for a device: those that cleat_tune found on it with these kernels, and beneath
 * them those shipped for such a device (profiles/devices/NAME.tuned). Shipped choices may be of other
 * kernel versions; a choice whose variant no longer exists is skipped. NULL if there are none, or if
 * $CLEAT_TUNED is "never" (a word other than "auto" is a warning). A damaged file is a warning. Parameters
 * for CLBlast in the choices take effect with this call. Release with cleat_tuning_destroy. */
CLEAT_API cleat_tuning_table *cleat_tuning_load(cleat_device *device);

#ifdef __cplusplus
}
#endif
#endif
