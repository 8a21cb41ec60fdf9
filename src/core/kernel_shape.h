/* The shape kernels are built in, chosen from plain facts: for devices that are open and for cards that are not there. */
#ifndef CLEAT_SRC_KERNEL_SHAPE_H
#define CLEAT_SRC_KERNEL_SHAPE_H

#include "cleat/device.h"

/* Sets work_group and lanes: one work-item with wide vectors for a CPU, groups within max_work_group for anything else. */
static inline void cleat_kernel_shape(cleat_device_facts *facts, bool cpu) {
    facts->work_group = cpu ? 1 : 256;
    facts->lanes = cpu ? 16 : 4;
    while (facts->work_group > facts->max_work_group && facts->work_group > 1) facts->work_group /= 2;
}

#endif
