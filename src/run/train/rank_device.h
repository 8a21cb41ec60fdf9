/* The device of a rank. */
#ifndef CLEAT_SRC_RANK_DEVICE_H
#define CLEAT_SRC_RANK_DEVICE_H

#include "cleat/device.h"
#include "ranks/ranks.h"

/* Opens the device that the selector `wanted` or CLEAT_RANK_DEVICES names; with auto or gpu, the ranks of a
 * machine with several GPUs take one each. Without `ranks` it is cleat_doctor_open_device. The caller closes
 * *device. */
cleat_status cleat_rank_open_device(cleat_ranks *ranks, const char *wanted, cleat_device **device, cleat_error *error);

#endif
