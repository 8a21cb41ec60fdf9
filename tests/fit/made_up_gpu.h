/* A card that does not exist, for plans on paper. */
#ifndef CLEAT_TESTS_MADE_UP_GPU_H
#define CLEAT_TESTS_MADE_UP_GPU_H

#include "cleat/device.h"

/* The facts of a GPU named "Fake 9000" with `free_bytes` bytes of memory, all free. */
cleat_device_facts made_up_gpu(int64_t free_bytes);

#endif
