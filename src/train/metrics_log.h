/* Metrics as JSON lines: one object a record, in the order of steps.
 *
 *     {"kind":"train","epoch":2,"step":120,"loss":1.25,"learning_rate":0.0005}
 *
 * A float is printed with 9 digits, which tell any two f32 apart; a value that is not finite as null. Each
 * record is appended by one write; a record cut off by a crash is removed when the file is opened again. */
#ifndef CLEAT_SRC_METRICS_LOG_H
#define CLEAT_SRC_METRICS_LOG_H

#include "cleat/models.h"

typedef struct cleat_metrics_log cleat_metrics_log;

/* Opens `path` for appending, made if needed. `keep` < 0 starts an empty file; else the first `keep` records
 * stay and what follows them is cut off, so that a run resumed from a checkpoint with that many records
 * writes them again. Fewer records than that is a warning. */
cleat_status cleat_metrics_log_open(const char *path, int64_t keep, cleat_metrics_log **log, cleat_error *error);
/* Complete records in the file: what a checkpoint remembers. */
int64_t cleat_metrics_log_records(const cleat_metrics_log *log);
void cleat_metrics_log_close(cleat_metrics_log *log);
/* `kind`: "start" (what the first step of a process waited for), "train", "eval", or "schedule" (epochs, where a time budget shortened
 * them). `step`: optimizer steps done. */
cleat_status cleat_metrics_log_write(cleat_metrics_log *log, const char *kind, int64_t epoch, int64_t step,
                                     const cleat_metric *metrics, size_t count, cleat_error *error);
/* Syncs to the disk: before a checkpoint that counts on the records. */
cleat_status cleat_metrics_log_sync(cleat_metrics_log *log, cleat_error *error);

#endif
