/* Steps of writing a checkpoint that are shared with copying one. */
#ifndef CLEAT_SRC_CHECKPOINT_WRITE_H
#define CLEAT_SRC_CHECKPOINT_WRITE_H

#include "cleat/core.h"

/* Name of a checkpoint folder that is still being written. */
#define CLEAT_CHECKPOINT_TEMPORARY ".tmp-ckpt"

/* Removes the leftovers of a killed training: temporary folders of checkpoints, and temporary files. */
void cleat_checkpoint_remove_leftovers(const char *run);
/* Removes every checkpoint of the folder, `last` and `best`. A failure is only a warning. */
void cleat_checkpoint_remove_all(const char *run);
/* Renames the complete folder `temporary` to `path`, and syncs the run folder. */
cleat_status cleat_checkpoint_publish(const char *run, const char *temporary, const char *path, cleat_error *error);
/* Writes `name` to RUN/`pointer` ("last", "best"). */
cleat_status cleat_checkpoint_point_at(const char *run, const char *pointer, const char *name, cleat_error *error);

#endif
