/* Starting a run folder from a checkpoint of another one (--resume-from). */
#ifndef CLEAT_SRC_TRAIN_RESUME_FROM_H
#define CLEAT_SRC_TRAIN_RESUME_FROM_H

#include "cleat/core.h"

/* Copies the last checkpoint of `source`, a run folder (or `source` itself, a checkpoint folder), into the
 * run folder `folder`, together with what a resume there needs: the best checkpoint, resolved.ini, the
 * records of metrics.jsonl up to the checkpoint, system.jsonl and examples.json. `source` is only read: no
 * lock, no file. If it is killed half-way, --resume also continues from the folder, which then has no
 * checkpoint or only the best one. */
cleat_status cleat_resume_from(const char *source, const char *folder, cleat_error *error);
/* Removes from the run folder what cleat_resume_from copied, for a run that was refused: the same command
 * with other settings can then use the folder. A failure is only a warning. */
void cleat_resume_from_undo(const char *folder);

#endif
