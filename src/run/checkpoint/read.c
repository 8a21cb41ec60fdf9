/* Reading checkpoints: finding them, and checking all hashes before anything is used. */
#include "checkpoint/checkpoint.h"
#include "platform/text.h"

#include "core/files.h"
#include "core/memory.h"
#include "core/string.h"

#include <stdio.h>
#include <string.h>

/* --- one checkpoint ------------------------------------------------------------------------------------------- */

static cleat_status open_state(const char *folder, cleat_train_state *state, cleat_checkpoint_files *files,
                               cleat_error *error) {
    char path[CLEAT_CHECKPOINT_PATH], *text;
    size_t size;
    cleat_status status = cleat_checkpoint_path(folder, CLEAT_STATE_FILE, path, error);
    if (!status) status = cleat_file_read(path, &text, &size, error);
    if (status) return status;
    status = cleat_state_decode(path, text, size, state, files, error);
    cleat_free(text);
    return status;
}

/* Checks a file against its recorded size and hash. */
static cleat_status check_intact(const char *path, const cleat_checkpoint_file *file, cleat_error *error) {
    char hash[33];
    size_t size;
    cleat_status status = cleat_file_hash(path, &size, hash, error);
    if (status) return status;
    if (size != file->size)
        return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: damaged file: %zu bytes of the %zu that were written", path,
                          size, file->size);
    if (strcmp(hash, file->hash) == 0) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_FORMAT, "%s: damaged file: its checksum does not match what was written", path);
}

/* Opens the files of the model and the optimizer; the other files are only checked. */
static cleat_status open_file(cleat_checkpoint *checkpoint, const cleat_checkpoint_file *file, bool training,
                              cleat_error *error) {
    char path[CLEAT_CHECKPOINT_PATH];
    const bool is_model = strcmp(file->name, CLEAT_MODEL_FILE) == 0,
               is_optim = strcmp(file->name, CLEAT_OPTIM_FILE) == 0;
    if (is_optim && !training) return CLEAT_OK;
    cleat_status status = cleat_checkpoint_path(checkpoint->folder, file->name, path, error);
    if (!status) status = check_intact(path, file, error);
    if (status || !(is_model || is_optim)) return status;
    return cleat_safetensors_open_headers(path, is_model ? &checkpoint->model : &checkpoint->optim, error);
}

/* `training`: with the optimizer's file. */
static cleat_status open_folder(const char *folder, bool training, cleat_checkpoint **checkpoint, cleat_error *error) {
    if (strlen(folder) >= CLEAT_CHECKPOINT_PATH)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "path too long: %.200s...", folder);
    cleat_checkpoint *made = cleat_alloc(1, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", folder);
    snprintf(made->folder, sizeof made->folder, "%s", folder);
    cleat_status status = open_state(folder, &made->state, &made->files, error);
    for (size_t i = 0; i < made->files.count && !status; ++i)
        status = open_file(made, &made->files.items[i], training, error);
    if (status) {
        cleat_checkpoint_close(made);
        return status;
    }
    *checkpoint = made;
    return CLEAT_OK;
}

cleat_status cleat_checkpoint_open(const char *folder, cleat_checkpoint **checkpoint, cleat_error *error) {
    return open_folder(folder, true, checkpoint, error);
}

void cleat_checkpoint_close(cleat_checkpoint *checkpoint) {
    if (!checkpoint) return;
    cleat_safetensors_close(checkpoint->model);
    cleat_safetensors_close(checkpoint->optim);
    cleat_free(checkpoint);
}

/* --- choosing one --------------------------------------------------------------------------------------------- */

static cleat_status open_named(const char *run, const char *name, bool training, cleat_checkpoint **checkpoint,
                               cleat_error *error) {
    char folder[CLEAT_CHECKPOINT_PATH];
    cleat_status status = cleat_checkpoint_path(run, name, folder, error);
    return status ? status : open_folder(folder, training, checkpoint, error);
}

/* Fails if another version wrote a checkpoint of the run: a save would remove it. */
static cleat_status refuse_other_versions(const char *run, cleat_error *error) {
    char folder[CLEAT_CHECKPOINT_PATH];
    cleat_checkpoint_name *names;
    cleat_train_state state;
    cleat_checkpoint_files files;
    size_t count = 0;
    cleat_status status = cleat_checkpoint_list(run, &names, &count, error);
    if (status) return status;
    for (size_t i = 0; i < count && status != CLEAT_ERR_NOT_SUPPORTED; ++i) {
        cleat_error why = {0};
        status = cleat_checkpoint_path(run, names[i].text, folder, &why);
        if (!status) status = open_state(folder, &state, &files, &why);
        if (status == CLEAT_ERR_NOT_SUPPORTED && error) *error = why;
    }
    cleat_free(names);
    return status == CLEAT_ERR_NOT_SUPPORTED ? status : CLEAT_OK;
}

/* Opens the newest intact checkpoint other than `tried` (may be NULL), whose failure is in `error`. */
static cleat_status open_newest(const char *run, const char *tried, bool training, cleat_checkpoint **checkpoint,
                                cleat_error *error) {
    cleat_checkpoint_name *names;
    cleat_error next = {0};
    size_t count;
    cleat_status status = cleat_checkpoint_list(run, &names, &count, &next);
    if (status) return cleat_fail(error, status, "%s", next.text);
    status = CLEAT_ERR_NOT_FOUND;
    for (size_t i = 0; i < count && status && status != CLEAT_ERR_MEMORY; ++i) {
        if (tried && strcmp(names[i].text, tried) == 0) continue;
        status = open_named(run, names[i].text, training, checkpoint, &next);
        if (!status)
            cleat_log(CLEAT_LOG_WARNING, "%s: continuing from %s instead", run, names[i].text);
        else
            cleat_log(CLEAT_LOG_WARNING, "%s", next.text);
    }
    cleat_free(names);
    if (!status || status == CLEAT_ERR_MEMORY) return status ? cleat_fail(error, status, "%s", next.text) : status;
    if (count == 0 && !tried)
        return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "%s: the folder contains no checkpoint", run);
    if (!tried) cleat_fail(error, CLEAT_ERR_FORMAT, "%s", next.text);
    if (error) error->status = CLEAT_ERR_FORMAT;
    return cleat_fail_in(error, CLEAT_ERR_FORMAT, "%s: the folder contains no intact checkpoint", run);
}

static cleat_status open_last(const char *run, bool training, cleat_checkpoint **checkpoint, cleat_error *error) {
    cleat_checkpoint_name last;
    cleat_error why = {0};
    cleat_status status = refuse_other_versions(run, error);
    if (status) return status;
    if (!cleat_checkpoint_pointer(run, "last", &last)) {
        if (cleat_checkpoint_exists(run))
            cleat_log(CLEAT_LOG_WARNING, "%s: no file 'last' that names a checkpoint", run);
        return open_newest(run, NULL, training, checkpoint, error);
    }
    status = open_named(run, last.text, training, checkpoint, &why);
    if (!status) return status;
    if (error) *error = why;
    if (status == CLEAT_ERR_MEMORY) return status;
    cleat_log(CLEAT_LOG_WARNING, "%s", why.text);
    return open_newest(run, last.text, training, checkpoint, error);
}

cleat_status cleat_checkpoint_open_last(const char *run, cleat_checkpoint **checkpoint, cleat_error *error) {
    return open_last(run, true, checkpoint, error);
}

/* Accepts "RUN/best" and "RUN/last" as well. */
static bool names_a_pointer(const char *path, char run[CLEAT_CHECKPOINT_PATH], cleat_checkpoint_name *name) {
    const char *pointer = cleat_file_exists(path) ? cleat_path_split(path, run, CLEAT_CHECKPOINT_PATH) : NULL;
    return pointer && cleat_checkpoint_pointer(run, pointer, name);
}

/* Finds the folder of the checkpoint that `path` names, unless it is a run folder: then `is_run` is set. */
static cleat_status find_unless_run(const char *path, bool *is_run, char folder[CLEAT_CHECKPOINT_PATH],
                                    cleat_error *error) {
    char run[CLEAT_CHECKPOINT_PATH];
    cleat_checkpoint_name name;
    *is_run = false;
    if (names_a_pointer(path, run, &name)) return cleat_checkpoint_path(run, name.text, folder, error);
    cleat_status status = cleat_checkpoint_path(path, CLEAT_STATE_FILE, folder, error);
    if (status) return status;
    if (!cleat_file_exists(folder) && !cleat_folder_exists(path))
        return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "%s: no such checkpoint or run folder", path);
    *is_run = !cleat_file_exists(folder);
    snprintf(folder, CLEAT_CHECKPOINT_PATH, "%s", path);
    return CLEAT_OK;
}

cleat_status cleat_checkpoint_open_source(const char *path, cleat_checkpoint **checkpoint, cleat_error *error) {
    char folder[CLEAT_CHECKPOINT_PATH];
    char trimmed[CLEAT_CHECKPOINT_PATH]; /* without slashes at the end: the run is found by the last one */
    bool is_run;
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/') --size;
    if (size >= sizeof trimmed) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "path too long: %.200s...", path);
    snprintf(trimmed, sizeof trimmed, "%.*s", (int)size, path);
    cleat_checkpoint *opened = NULL;
    cleat_status status = find_unless_run(trimmed, &is_run, folder, error);
    if (!status) status = is_run ? open_last(trimmed, true, &opened, error) : open_folder(folder, true, &opened, error);
    if (!status && strcmp(opened->folder, trimmed) != 0) status = cleat_refuse_link(opened->folder, error);
    if (!status)
        *checkpoint = opened;
    else
        cleat_checkpoint_close(opened);
    return status;
}

cleat_status cleat_checkpoint_open_best(const char *path, cleat_checkpoint **checkpoint, cleat_error *error) {
    cleat_checkpoint_name name;
    cleat_error why = {0};
    bool is_run;
    char folder[CLEAT_CHECKPOINT_PATH];
    cleat_status status = find_unless_run(path, &is_run, folder, error);
    if (status) return status;
    if (!is_run) return open_folder(folder, false, checkpoint, error);
    if (!cleat_checkpoint_pointer(path, "best", &name)) return open_last(path, false, checkpoint, error);
    status = open_named(path, name.text, false, checkpoint, &why);
    if (!status) return status;
    if (status == CLEAT_ERR_MEMORY || status == CLEAT_ERR_NOT_SUPPORTED)
        return cleat_fail(error, status, "%s", why.text);
    cleat_log(CLEAT_LOG_WARNING, "the best checkpoint cannot be opened, taking the last: %s", why.text);
    return open_last(path, false, checkpoint, error);
}

/* --- its profile ---------------------------------------------------------------------------------------------- */

cleat_status cleat_checkpoint_find_folder(const char *path, char folder[CLEAT_CHECKPOINT_PATH], cleat_error *error) {
    cleat_checkpoint_name name, *names;
    size_t count = 0;
    char runs[256];
    bool is_run;
    cleat_status status = find_unless_run(path, &is_run, folder, error);
    if (status || !is_run) return status;
    if (cleat_checkpoint_pointer(path, "best", &name) || cleat_checkpoint_pointer(path, "last", &name))
        return cleat_checkpoint_path(path, name.text, folder, error);
    status = cleat_checkpoint_list(path, &names, &count, error);
    if (status) return status;
    status = count ? cleat_checkpoint_path(path, names[0].text, folder, error)
                   : cleat_fail(error, CLEAT_ERR_NOT_FOUND,
                                "%s: neither a checkpoint (state.json) nor a run folder with one (ckpt-*)%s", path,
                                cleat_listing_hint(path, "last", runs));
    cleat_free(names);
    return status;
}

/* The folder that contains `folder`. */
static cleat_status find_parent(const char *folder, char parent[CLEAT_CHECKPOINT_PATH], cleat_error *error) {
    size_t size = strlen(folder);
    while (size > 1 && folder[size - 1] == '/') --size;
    const char *slash = memrchr(folder, '/', size), *name = slash ? slash + 1 : folder;
    if (*name == '.') return cleat_checkpoint_path(folder, "..", parent, error); /* "." or ".." */
    if (size >= CLEAT_CHECKPOINT_PATH) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "path too long: %.200s...", folder);
    if (slash)
        snprintf(parent, CLEAT_CHECKPOINT_PATH, "%.*s", (int)(slash > folder ? slash - folder : 1), folder);
    else
        snprintf(parent, CLEAT_CHECKPOINT_PATH, ".");
    return CLEAT_OK;
}

cleat_status cleat_checkpoint_find_profile(const char *path, char file[CLEAT_CHECKPOINT_PATH], cleat_error *error) {
    char folder[CLEAT_CHECKPOINT_PATH], run[CLEAT_CHECKPOINT_PATH];
    cleat_status status = cleat_checkpoint_find_folder(path, folder, error);
    if (!status) status = cleat_checkpoint_path(folder, CLEAT_PROFILE_FILE, file, error);
    if (status || cleat_file_exists(file)) return status;
    status = find_parent(folder, run, error);
    if (!status) status = cleat_checkpoint_path(run, "resolved.ini", file, error);
    if (status || cleat_file_exists(file)) return status;
    return cleat_fail(error, CLEAT_ERR_NOT_FOUND,
                      "%s: no profile.ini: the checkpoint was written by an earlier version, and is not in its run "
                      "folder, whose resolved.ini would do; give the profile of the training",
                      folder);
}

/* --- contents -------------------------------------------------------------------------------------------------- */

cleat_status cleat_checkpoint_expect_settings(const cleat_checkpoint *checkpoint, const cleat_model_setting *settings,
                                              size_t count, cleat_error *error) {
    cleat_string wrong = {0};
    for (size_t i = 0; i < count; ++i) {
        const char *there = cleat_safetensors_metadata(checkpoint->model, settings[i].key);
        if (!there) there = settings[i].before;
        if (there && strcmp(there, settings[i].value) == 0) continue;
        cleat_string_add(&wrong, "%s%s is %s in the checkpoint, %s in the profile", wrong.size ? "; " : "",
                         settings[i].key, there ? there : "absent", settings[i].value);
    }
    cleat_status status = CLEAT_OK;
    if (wrong.failed)
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "%s: out of memory", checkpoint->folder);
    else if (wrong.size)
        status = cleat_fail(error, CLEAT_ERR_PROFILE, "%s: checkpoint of a different model: %s", checkpoint->folder,
                            wrong.data);
    cleat_string_free(&wrong);
    return status;
}
