/* Checkpoints: folders that are there completely or not at all.
 *
 *     RUN/ckpt-E005-S000123/model.safetensors    parameters, and buffers (running statistics)
 *                           optim.safetensors    moments, and what else a step needs
 *                           state.json           where training stands; size and hash of all other files
 *                           ...                  what the data taught (cleat_dataset_save)
 *     RUN/last, RUN/best                         text files: the name of a checkpoint folder
 *
 * Written under a temporary name, synced, renamed; then `last` and `best` are replaced. A process killed at
 * any moment leaves a run folder from which the newest complete checkpoint opens. Knows host arrays only, no
 * devices. */
#ifndef CLEAT_SRC_CHECKPOINT_CHECKPOINT_H
#define CLEAT_SRC_CHECKPOINT_CHECKPOINT_H

#include "checkpoint/state.h"
#include "cleat/data.h"
#include "core/safetensors.h"

/* What one checkpoint holds. Tensor data are host memory. */
typedef struct cleat_checkpoint_content {
    const cleat_train_state *state;
    const cleat_st_tensor *model; /* [model_count] */
    size_t model_count;
    const cleat_st_tensor *optim; /* [optim_count] */
    size_t optim_count;
    const cleat_st_metadata *settings; /* [settings_count] of the model: must be equal for it to be loaded */
    size_t settings_count;
    const cleat_dataset *dataset; /* what it learnt is kept too (cleat_dataset_save); NULL: nothing */
} cleat_checkpoint_content;

/* Writes a checkpoint into the run folder `run` (made if needed) and points `last` at it, and `best` too if
 * `best`. Then removes all but the `keep` (>= 1) newest ones and the best; checkpoints of later steps than
 * this one, which a resumed run has left behind; and what interrupted writes left over. On failure the run
 * folder still opens as before. `folder` [CLEAT_CHECKPOINT_PATH] (may be NULL) receives the checkpoint's
 * path. */
cleat_status cleat_checkpoint_write(const char *run, const cleat_checkpoint_content *content, bool best, int64_t keep,
                                    char *folder, cleat_error *error);

typedef struct cleat_checkpoint {
    char folder[CLEAT_CHECKPOINT_PATH];
    cleat_train_state state;
    cleat_safetensors *model;
    cleat_safetensors *optim;
} cleat_checkpoint;

/* Opens one checkpoint folder, and checks size and hash of every file in it. The caller closes it. */
cleat_status cleat_checkpoint_open(const char *folder, cleat_checkpoint **checkpoint, cleat_error *error);
void cleat_checkpoint_close(cleat_checkpoint *checkpoint);

/* Opens what `last` names in the run folder, for a resume; where that is damaged or missing, the newest
 * intact one, with a warning. CLEAT_ERR_NOT_FOUND where the run has no checkpoint at all. */
cleat_status cleat_checkpoint_open_last(const char *run, cleat_checkpoint **checkpoint, cleat_error *error);
/* Opens for evaluation: `path` is a checkpoint folder, or a run folder, of which `best` is taken, or else
 * `last`. */
cleat_status cleat_checkpoint_open_best(const char *path, cleat_checkpoint **checkpoint, cleat_error *error);
/* Whether the run folder holds a checkpoint. */
bool cleat_checkpoint_exists(const char *run);

/* The settings the model was made with must be these; the error lists each that differs. */
cleat_status cleat_checkpoint_expect_settings(const cleat_checkpoint *checkpoint, const cleat_st_metadata *settings,
                                              size_t count, cleat_error *error);

#endif
