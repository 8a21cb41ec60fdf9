/* Event files for TensorBoard from the folder of a run.
 *
 * `run.tensorboard = true` writes such a file during training. This call makes one afterwards, from any run,
 * including a killed one.
 *
 * Threads: calls with different `out` may run at once. */
#ifndef CLEAT_TENSORBOARD_H
#define CLEAT_TENSORBOARD_H

#include "cleat/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cleat_tensorboard_report {
    char file[1424];
    int64_t records; /* lines of metrics.jsonl and system.jsonl that were converted */
} cleat_tensorboard_report;

/* Writes metrics.jsonl, system.jsonl and resolved.ini of the run folder `run` into one event file in the folder
 * `out` (created if needed; it may be `run` itself) and removes earlier conversions from there. Scalars are
 * named train/loss, eval/loss, system/power, ...; null becomes NaN in metrics and is omitted from system
 * samples. The file begins a session at step 0, so that TensorBoard shows it in place of other event files in
 * `out`. resolved.ini and system.jsonl may be missing; without the latter all records have the time at which
 * metrics.jsonl was changed last. `report` may be NULL. CLEAT_ERR_NOT_FOUND: `run` does not exist.
 * CLEAT_ERR_FORMAT: a line of metrics.jsonl is not a record. After an error, no new file exists. */
CLEAT_API cleat_status cleat_tensorboard_convert(const char *run, const char *out, cleat_tensorboard_report *report,
                                                 cleat_error *error);

#ifdef __cplusplus
}
#endif
#endif
