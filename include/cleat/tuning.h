/* The fastest kernels of a device, as the autotuner measured them. */
#ifndef CLEAT_TUNING_H
#define CLEAT_TUNING_H

#include "cleat/device.h"
#include "cleat/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is known of the fastest kernels of the device, for plans that are to be those of a run: what
 * cleat_tune found here with these kernels, and where that has no answer, what was measured on such a
 * device and came with the program (profiles/devices/NAME.tuned); that needs not be of these very kernels,
 * for an answer whose variant is gone is passed over. NULL where there is nothing, or $CLEAT_TUNED is
 * "never" (another word than "auto" is a warning). A damaged file is a warning. Where the answers have
 * parameters for CLBlast, CLBlast computes with them from here on. Free with cleat_tuning_destroy. */
CLEAT_API cleat_tuning_table *cleat_tuning_load(cleat_device *device);

#ifdef __cplusplus
}
#endif
#endif
