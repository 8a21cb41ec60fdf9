/* Metrics as JSON lines: one object per record, in the order of steps.
 * {"kind":"train","epoch":2,"step":120,"loss":1.25,"learning_rate":0.0005}
 * A float is printed with 9 digits, which distinguish any two f32 values; a value that is not finite is
 * printed as null. Each record is appended by one write; an incomplete record after a crash is removed
 * when the file is opened again. */
#ifndef CLEAT_SRC_METRICS_LOG_H
#define CLEAT_SRC_METRICS_LOG_H

#include "cleat/models.h"

typedef struct cleat_metrics_log cleat_metrics_log;

/* Opens `path` for appending, and creates it if needed. `keep` < 0 starts an empty file; otherwise the first
 * `keep` records stay and the rest is truncated, so that a run resumed from a checkpoint with that number of
 * records writes the later ones again. Fewer records than `keep` cause a warning. NULL: records are counted
 * from `keep` on, and written nowhere. */
cleat_status cleat_metrics_log_open(const char *path, int64_t keep, cleat_metrics_log **log, cleat_error *error);
/* Number of complete records in the file, as stored in checkpoints. */
int64_t cleat_metrics_log_records(const cleat_metrics_log *log);
void cleat_metrics_log_close(cleat_metrics_log *log);
/* `kind`: "start" (startup times of a process until its first step), "train", "eval", or "schedule"
 * (number of epochs, after a time budget shortened it). `step`: optimizer steps done. */
cleat_status cleat_metrics_log_write(cleat_metrics_log *log, const char *kind, int64_t epoch, int64_t step,
                                     const cleat_metric *metrics, size_t count, cleat_error *error);
/* Calls `appended` with each further line, which ends with a newline, once it is in the file. NULL: nothing is
 * called. */
void cleat_metrics_log_observe(cleat_metrics_log *log, void (*appended)(void *user, const char *line), void *user);
/* Syncs the file to disk; required before a checkpoint that refers to its records. */
cleat_status cleat_metrics_log_sync(cleat_metrics_log *log, cleat_error *error);

#endif
