/* Less, where a device has less memory than was planned with. */
#ifndef CLEAT_SRC_OOM_FALLBACK_H
#define CLEAT_SRC_OOM_FALLBACK_H

#include "train/run_settings.h"

typedef struct cleat_memory_limit {
    int64_t limit;       /* bytes to plan with at most, once the device had less than it reported; 0: the profile's */
    cleat_error refused; /* what the device reported then */
} cleat_memory_limit;

/* After CLEAT_ERR_DEVICE_MEMORY or CLEAT_ERR_FIT in `error`, of a plan of `planned` bytes (0: there was none): lowers the
 * limit, which leads to smaller micro-batches or recomputed activations; without a plan, shortens sequences where the
 * profile allows that. Every fallback is logged. False, with the error completed, where nothing less is left. `folder`:
 * of the run, whose last checkpoint the log names. */
bool cleat_oom_fallback(cleat_memory_limit *memory, cleat_run_settings *settings, const char *folder, int64_t planned,
                        cleat_error *error);

#endif
