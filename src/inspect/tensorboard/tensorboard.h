/* Event files of TensorBoard: scalars and texts of a run by step.
 *
 * A file is a sequence of records, each a protobuf message (event.proto) framed by its size and two checksums.
 * Every record is appended by one write, so that readers see it at once and a killed process leaves no record
 * in part. Readers take the files of a folder in the order of their names.
 *
 * Threads: all calls but create and close may be made from several threads at once. After a call that failed,
 * later ones do nothing and return CLEAT_OK, so that a caller reports a full disk once. */
#ifndef CLEAT_SRC_TENSORBOARD_TENSORBOARD_H
#define CLEAT_SRC_TENSORBOARD_TENSORBOARD_H

#include "cleat/core.h"

typedef struct cleat_tensorboard cleat_tensorboard;

typedef struct cleat_scalar {
    const char *name;
    double value; /* written as f32 */
} cleat_scalar;

/* Creates a file in `folder` whose name sorts behind those of all event files there, and writes its version
 * record. The caller closes it. */
cleat_status cleat_tensorboard_create(const char *folder, cleat_tensorboard **board, cleat_error *error);
void cleat_tensorboard_close(cleat_tensorboard *board);
const char *cleat_tensorboard_path(const cleat_tensorboard *board);
/* Whether the folder contains an event file. */
bool cleat_tensorboard_exists(const char *folder);

/* Begins a session at `step`: readers drop earlier records of this step and later ones, also those of earlier
 * files. `time` in all calls: seconds since the epoch. */
cleat_status cleat_tensorboard_start(cleat_tensorboard *board, double time, int64_t step, cleat_error *error);
/* Writes the scalars GROUP/NAME [count] of one step as one record; none if `count` is 0. */
cleat_status cleat_tensorboard_scalars(cleat_tensorboard *board, double time, int64_t step, const char *group,
                                       const cleat_scalar *scalars, size_t count, cleat_error *error);
/* Writes a text, which TensorBoard shows as Markdown. */
cleat_status cleat_tensorboard_text(cleat_tensorboard *board, double time, int64_t step, const char *tag,
                                    const char *text, cleat_error *error);
/* Writes a text with its line ends and without markup: as a code block. */
cleat_status cleat_tensorboard_verbatim(cleat_tensorboard *board, double time, int64_t step, const char *tag,
                                        const char *text, cleat_error *error);

/* Writes the values of one line of metrics.jsonl as the scalars KIND/NAME; null becomes NaN. Live files and
 * converted ones both come from these lines, so they have the same values. */
cleat_status cleat_tensorboard_metrics_line(cleat_tensorboard *board, double time, const char *line,
                                            cleat_error *error);
/* Writes one line of system.jsonl, which contains its own time: a sample as the scalars system/NAME, without
 * those that are null; an event as the text event/NAME. Other kinds of lines are ignored. */
cleat_status cleat_tensorboard_system_line(cleat_tensorboard *board, const char *line, cleat_error *error);

/* Writes the records of the steps from `first_step` to `last_step` in metrics.jsonl and system.jsonl of the
 * run folder, without those repeated after a resume. Metrics have no times: they get those of system.jsonl,
 * or without it the time of the last change of metrics.jsonl. *records (may be NULL) is the number of lines
 * written. */
cleat_status cleat_tensorboard_replay(cleat_tensorboard *board, const char *run, int64_t first_step, int64_t last_step,
                                      int64_t *records, cleat_error *error);

#endif
