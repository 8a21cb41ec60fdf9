/* Parts of the reader of a run's folder, each for one kind of file. */
#ifndef CLEAT_SRC_HISTORY_H
#define CLEAT_SRC_HISTORY_H

#include "cleat/history.h"

/* Each adds to `history` what the file contains. A missing file is not an error: the only errors are
 * CLEAT_ERR_MEMORY and CLEAT_ERR_IO. `is_system`: system.jsonl, else metrics.jsonl. */
cleat_status cleat_history_read_log(cleat_history *history, const char *path, bool is_system, cleat_error *error);
cleat_status cleat_history_read_checkpoints(cleat_history *history, cleat_error *error);

/* Finds phase, last_start and last_end once everything else is read. Only error: CLEAT_ERR_MEMORY. */
cleat_status cleat_history_find_last(cleat_history *history, cleat_error *error);

/* Reads a file if it exists: *text is NULL otherwise. The caller frees *text. */
cleat_status cleat_history_text(const char *path, char **text, size_t *size, cleat_error *error);

#endif
