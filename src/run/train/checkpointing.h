/* Checkpoints of a training run: saving the training state of an engine to files, and resuming from them.
 * The file format belongs to checkpoint/. */
#ifndef CLEAT_SRC_CHECKPOINTING_H
#define CLEAT_SRC_CHECKPOINTING_H

#include "checkpoint/checkpoint.h"
#include "train/engine.h"

/* Adds the engine's part to *state: the loss scale and the number of averaged epochs. */
cleat_status cleat_checkpointing_collect(cleat_engine *engine, cleat_train_state *state, cleat_error *error);
/* Writes a checkpoint of `state`, which must be complete, and of the engine's parameters, moments and
 * average. `profile`: as the caller of the run gave it. */
cleat_status cleat_checkpointing_save(const char *folder, cleat_engine *engine, const cleat_train_state *state,
                                      const cleat_profile *profile, const cleat_dataset *dataset, bool best,
                                      cleat_error *error);

/* Loads the checkpoint into the engine, and its training state into *state. */
cleat_status cleat_checkpointing_resume(const cleat_checkpoint *checkpoint, cleat_engine *engine,
                                        cleat_train_state *state, cleat_error *error);

#endif
