/* Names of checkpoint folders, of the files in them, and of the pointer files in a run folder. */
#ifndef CLEAT_SRC_CHECKPOINT_FORMAT_H
#define CLEAT_SRC_CHECKPOINT_FORMAT_H

#include "cleat/core.h"

#define CLEAT_MODEL_FILE "model.safetensors"
#define CLEAT_OPTIM_FILE "optim.safetensors"
#define CLEAT_STATE_FILE "state.json"
#define CLEAT_PROFILE_FILE "profile.ini"

enum { CLEAT_CHECKPOINT_NAME = 64, CLEAT_CHECKPOINT_PATH = 1280 };

/* Name of a checkpoint folder: "ckpt-E005-S000123", with the suffix ".1", ".2", ... if a resumed run
 * reached the same step again. */
typedef struct cleat_checkpoint_name {
    int64_t epoch, step, copy;
    char text[CLEAT_CHECKPOINT_NAME];
} cleat_checkpoint_name;

void cleat_checkpoint_name_make(int64_t epoch, int64_t step, int64_t copy, cleat_checkpoint_name *name);
bool cleat_checkpoint_name_parse(const char *text, cleat_checkpoint_name *name);

/* Lists the checkpoint folders of a run, newest (largest step) first. The caller frees *names
 * (cleat_free). The list of a missing run folder is empty. */
cleat_status cleat_checkpoint_list(const char *run, cleat_checkpoint_name **names, size_t *count, cleat_error *error);
/* Reads the name in RUN/`pointer` ("last", "best"); false if the file does not exist or names no
 * checkpoint folder. */
bool cleat_checkpoint_pointer(const char *run, const char *pointer, cleat_checkpoint_name *name);
/* Writes "FOLDER/NAME" to `path` [CLEAT_CHECKPOINT_PATH]. */
cleat_status cleat_checkpoint_path(const char *folder, const char *name, char *path, cleat_error *error);

/* A file of a checkpoint, as recorded in state.json. */
typedef struct cleat_checkpoint_file {
    char name[CLEAT_CHECKPOINT_NAME];
    size_t size;
    char hash[33];
} cleat_checkpoint_file;

enum { CLEAT_CHECKPOINT_FILES = 16 };

/* All files but state.json. */
typedef struct cleat_checkpoint_files {
    cleat_checkpoint_file items[CLEAT_CHECKPOINT_FILES];
    size_t count;
} cleat_checkpoint_files;

/* NULL if the file is not in the list. */
const cleat_checkpoint_file *cleat_checkpoint_find(const cleat_checkpoint_files *files, const char *name);

#endif
