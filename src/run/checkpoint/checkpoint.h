/* Checkpoints: folders that exist completely or not at all.
 *
 * RUN/ckpt-E005-S000123/
 *     model.safetensors  parameters, and buffers (running statistics)
 *     optim.safetensors  moments, and other state that training needs
 *     profile.ini        the profile of the run as given, with data.path as an absolute path
 *     state.json         training state; size and hash of all other files
 *     ...                fitted preprocessing of the dataset (cleat_dataset_save)
 * RUN/last, RUN/best     text files with the name of a checkpoint folder
 *
 * A checkpoint is written under a temporary name, synced and renamed; then `last` and `best` are replaced.
 * A process killed at any moment leaves a run folder from which the newest complete checkpoint opens. This
 * module handles host arrays only, no devices. */
#ifndef CLEAT_SRC_CHECKPOINT_CHECKPOINT_H
#define CLEAT_SRC_CHECKPOINT_CHECKPOINT_H

#include "checkpoint/state.h"
#include "cleat/data.h"
#include "core/safetensors.h"

/* Contents of one checkpoint; everything is borrowed. */
typedef struct cleat_checkpoint_content {
    const cleat_train_state *state;
    const cleat_st_tensor *model; /* [model_count] */
    size_t model_count;
    const cleat_st_tensor *optim; /* [optim_count] */
    size_t optim_count;
    /* [settings_count] model settings: a model must have equal ones to load the checkpoint */
    const cleat_st_metadata *settings;
    size_t settings_count;
    /* its fitted preprocessing is saved too (cleat_dataset_save); NULL: none */
    const cleat_dataset *dataset;
    const char *profile;                            /* text of profile.ini; NULL: none */
    const cleat_st_source *model_data, *optim_data; /* NULL: the tensors' own data */
} cleat_checkpoint_content;

/* Writes a checkpoint into the run folder `run` (created if needed) and points `last` at it, with `best`
 * also RUN/best. Then removes: all checkpoints but the `keep` (>= 1) newest and the best; checkpoints of
 * later steps than this one, left over from before a resume; leftovers of interrupted writes. On failure
 * the run folder still opens as before. `folder` [CLEAT_CHECKPOINT_PATH] (may be NULL) receives the path of
 * the checkpoint. */
cleat_status cleat_checkpoint_write(const char *run, const cleat_checkpoint_content *content, bool best, int64_t keep,
                                    char *folder, cleat_error *error);

/* An open checkpoint. The tensors stay on the disk until they are read (cleat_safetensors_read, _copy, _load). */
typedef struct cleat_checkpoint {
    char folder[CLEAT_CHECKPOINT_PATH];
    cleat_train_state state;
    cleat_checkpoint_files files; /* as state.json lists them */
    cleat_safetensors *model;
    cleat_safetensors *optim; /* NULL if it was opened for evaluation */
} cleat_checkpoint;

/* Opens one checkpoint folder, and checks size and hash of every file in it. The caller closes it. */
cleat_status cleat_checkpoint_open(const char *folder, cleat_checkpoint **checkpoint, cleat_error *error);
void cleat_checkpoint_close(cleat_checkpoint *checkpoint);

/* Opens the checkpoint that `last` names in the run folder, to resume from it. If that one is damaged or
 * missing, opens the newest intact checkpoint, with a warning. CLEAT_ERR_NOT_FOUND: the run has no
 * checkpoint. CLEAT_ERR_NOT_SUPPORTED: another version wrote one of them, which a save would remove. */
cleat_status cleat_checkpoint_open_last(const char *run, cleat_checkpoint **checkpoint, cleat_error *error);
/* Opens a checkpoint for evaluation, without the state of the optimizer, whose file is not checked.
 * `path`: a checkpoint folder, or a run folder, whose `best` is opened, or else `last`. */
cleat_status cleat_checkpoint_open_best(const char *path, cleat_checkpoint **checkpoint, cleat_error *error);
/* Opens a checkpoint to continue from in another run folder. `path`: a checkpoint folder, or a run folder,
 * whose `last` is opened. Nothing is written there. */
cleat_status cleat_checkpoint_open_source(const char *path, cleat_checkpoint **checkpoint, cleat_error *error);
/* Copies the checkpoint, and the best one of its run, into the run folder `run`, which exists and has none; `last`
 * and `best` then name the copies. A missing or damaged best one is only a warning. */
cleat_status cleat_checkpoint_copy(const cleat_checkpoint *checkpoint, const char *run, cleat_error *error);
/* The folder that contains the checkpoint's folder: its run. */
void cleat_checkpoint_run(const cleat_checkpoint *checkpoint, char run[CLEAT_CHECKPOINT_PATH]);
/* Finds the folder of the checkpoint that `path` names as for cleat_checkpoint_open_best. In a run folder
 * without `best` and `last` it is the newest. CLEAT_ERR_NOT_FOUND: there is no checkpoint. */
cleat_status cleat_checkpoint_find_folder(const char *path, char folder[CLEAT_CHECKPOINT_PATH], cleat_error *error);
/* Finds the profile of a checkpoint, named as for cleat_checkpoint_open_best: its profile.ini, or, for a
 * checkpoint of an earlier version, the resolved.ini of its run. CLEAT_ERR_NOT_FOUND: there is no checkpoint,
 * or neither file. */
cleat_status cleat_checkpoint_find_profile(const char *path, char file[CLEAT_CHECKPOINT_PATH], cleat_error *error);
/* Whether the run folder contains a checkpoint. */
bool cleat_checkpoint_exists(const char *run);

/* Settings of a model. */
typedef struct cleat_model_setting {
    const char *key, *value;
    const char *before; /* value for checkpoints older than the key; NULL: none is older */
} cleat_model_setting;
/* Checks that the model of the checkpoint was created with these settings [count]; the error lists each
 * difference. */
cleat_status cleat_checkpoint_expect_settings(const cleat_checkpoint *checkpoint, const cleat_model_setting *settings,
                                              size_t count, cleat_error *error);

#endif
