/* Fallback to less memory when a device has less than planned. */
#ifndef CLEAT_SRC_OOM_FALLBACK_H
#define CLEAT_SRC_OOM_FALLBACK_H

#include "train/run_settings.h"

typedef struct cleat_memory_limit {
    /* upper limit in bytes for the plan, once the device had less than it reported; 0: the profile's */
    int64_t limit;
    cleat_error refused; /* error that the device reported then */
} cleat_memory_limit;

/* Call after CLEAT_ERR_DEVICE_MEMORY or CLEAT_ERR_FIT in `error`, with the size of the plan in bytes
 * (`planned`, 0: there was no plan). Lowers the limit, which leads to smaller micro-batches or recomputed
 * activations; without a plan, shortens sequences if the profile allows that. Every fallback is logged.
 * Returns false, with the error completed, if no fallback is left. `folder`: run folder, whose last
 * checkpoint is named in the log. */
bool cleat_oom_fallback(cleat_memory_limit *memory, cleat_run_settings *settings, const char *folder, int64_t planned,
                        cleat_error *error);

#endif
