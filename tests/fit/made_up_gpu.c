/* A made-up card for plans without a device. */
#include "made_up_gpu.h"

#include <stdio.h>

cleat_device_facts made_up_gpu(int64_t free_bytes) {
    cleat_device_facts facts = {.kind = CLEAT_DEVICE_GPU,
                                .vendor = CLEAT_VENDOR_NVIDIA,
                                .memory_total = free_bytes,
                                .memory_free = free_bytes,
                                .max_allocation = free_bytes / 4 / 256 * 256,
                                .alignment = 256,
                                .local_memory = 48 * 1024,
                                .max_work_group = 1024,
                                .compute_units = 40,
                                .work_group = 256,
                                .vector_width = 4};
    snprintf(facts.name, sizeof facts.name, "Fake 9000");
    return facts;
}
