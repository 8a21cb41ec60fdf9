/* A made-up card for plans without a device. */
#ifndef CLEAT_TESTS_MADE_UP_GPU_H
#define CLEAT_TESTS_MADE_UP_GPU_H

#include "cleat/device.h"

/* Facts of a GPU named "Fake 9000" with `free_bytes` bytes of memory, all free. */
cleat_device_facts made_up_gpu(int64_t free_bytes);

#endif
