/* Writes the files of a checkpoint. The order makes interruption safe at every moment: files and folder are
 * synced under a temporary name, and read back; one rename creates the checkpoint; then `best`, then `last`
 * point at it; only then are older checkpoints removed, each renamed to a temporary name first. `best` is
 * replaced before `last`: a run killed between the two resumes from the older checkpoint and writes this one
 * again. */
#include "checkpoint/write.h"
#include "checkpoint/checkpoint.h"
#include "platform/files.h"

#include "core/files.h"
#include "core/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define REMOVED_PREFIX ".tmp-old-"

/* --- removing ------------------------------------------------------------------------------------------------- */

/* A failure is only a warning, because the next write tries again. */
static void remove_entry(const char *run, const char *name) {
    cleat_error error = {0};
    const cleat_status status = cleat_remove_inside(run, name, &error);
    if (status && status != CLEAT_ERR_NOT_FOUND) cleat_log(CLEAT_LOG_WARNING, "%s", error.text);
}

static bool starts_with(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* The temporary files of a report are not the training's, and may be in use. */
static bool is_leftover(const char *name) {
    static const char *const files[] = {"last.",          "best.",         "resolved.ini.", "examples.json.",
                                        "metrics.jsonl.", "system.jsonl.", "profile-S"};
    if (strcmp(name, CLEAT_CHECKPOINT_TEMPORARY) == 0 || starts_with(name, REMOVED_PREFIX "ckpt-")) return true;
    bool is_training = false;
    for (size_t i = 0; i < sizeof files / sizeof *files; ++i) is_training |= starts_with(name, files[i]);
    return is_training && cleat_is_temporary(name);
}

void cleat_checkpoint_remove_leftovers(const char *run) {
    const struct dirent *entry;
    DIR *folder = opendir(run);
    while (folder && (entry = readdir(folder)))
        if (is_leftover(entry->d_name)) remove_entry(run, entry->d_name);
    if (folder) closedir(folder);
}

/* Removes a checkpoint under a temporary name, so that a half-removed checkpoint is never visible. */
static void remove_checkpoint(const char *run, const char *name) {
    char from[CLEAT_CHECKPOINT_PATH], to[CLEAT_CHECKPOINT_PATH], hidden[CLEAT_CHECKPOINT_NAME + 16];
    snprintf(hidden, sizeof hidden, REMOVED_PREFIX "%s", name);
    if (cleat_checkpoint_path(run, name, from, NULL) != CLEAT_OK) return;
    if (cleat_checkpoint_path(run, hidden, to, NULL) != CLEAT_OK) return;
    if (rename(from, to) == 0)
        remove_entry(run, hidden);
    else
        cleat_log(CLEAT_LOG_WARNING, "%s: cannot rename: %s", from, strerror(errno));
}

void cleat_checkpoint_remove_all(const char *run) {
    cleat_checkpoint_name *names = NULL;
    size_t count = 0;
    remove_entry(run, "last");
    remove_entry(run, "best");
    if (cleat_checkpoint_list(run, &names, &count, NULL)) return;
    for (size_t i = 0; i < count; ++i) remove_checkpoint(run, names[i].text);
    cleat_free(names);
}

/* Keeps `current`, the best checkpoint, and the newest ones up to `keep`; removes the others, and all with
 * later steps than `current`. */
static void prune(const char *run, const cleat_checkpoint_name *current, int64_t keep) {
    cleat_checkpoint_name *names, best;
    size_t count;
    int64_t kept = 0;
    cleat_error error = {0};
    bool has_best = cleat_checkpoint_pointer(run, "best", &best);
    if (cleat_checkpoint_list(run, &names, &count, &error) != CLEAT_OK) {
        cleat_log(CLEAT_LOG_WARNING, "%s", error.text);
        return;
    }
    for (size_t i = 0; i < count; ++i) {
        bool is_current = strcmp(names[i].text, current->text) == 0;
        bool is_older = names[i].step < current->step;
        if (is_current || (is_older && kept < keep)) {
            ++kept;
            continue;
        }
        if (has_best && strcmp(names[i].text, best.text) == 0) continue;
        remove_checkpoint(run, names[i].text);
    }
    cleat_free(names);
}

/* --- writing -------------------------------------------------------------------------------------------------- */

static cleat_status record_file(cleat_checkpoint_files *files, const char *name, const char *hash, size_t size,
                                cleat_error *error) {
    if (files->count == CLEAT_CHECKPOINT_FILES || strlen(name) >= CLEAT_CHECKPOINT_NAME)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "too many files in a checkpoint: no room for '%.100s'", name);
    cleat_checkpoint_file *file = &files->items[files->count++];
    snprintf(file->name, sizeof file->name, "%s", name);
    snprintf(file->hash, sizeof file->hash, "%s", hash);
    file->size = size;
    return CLEAT_OK;
}

static cleat_status write_tensors(const char *folder, const cleat_st_tensor *tensors, size_t count,
                                  const cleat_st_source *source, const cleat_st_metadata *metadata,
                                  size_t metadata_count, const char *name, cleat_checkpoint_files *files,
                                  cleat_error *error) {
    char path[CLEAT_CHECKPOINT_PATH];
    cleat_st_digest written;
    cleat_status status = cleat_checkpoint_path(folder, name, path, error);
    if (!status)
        status = cleat_safetensors_write_from(path, tensors, count, source, metadata, metadata_count, &written, error);
    return status ? status : record_file(files, name, written.hash, written.size, error);
}

static cleat_status write_profile(const char *folder, const char *text, cleat_checkpoint_files *files,
                                  cleat_error *error) {
    char path[CLEAT_CHECKPOINT_PATH], hash[33];
    cleat_hash_text(text, strlen(text), hash);
    cleat_status status = cleat_checkpoint_path(folder, CLEAT_PROFILE_FILE, path, error);
    if (!status) status = record_file(files, CLEAT_PROFILE_FILE, hash, strlen(text), error);
    return status ? status : cleat_file_write(path, text, strlen(text), error);
}

/* Records a file that the dataset wrote, as it is on disk. */
static cleat_status record_written(const char *folder, const char *name, cleat_checkpoint_files *files,
                                   cleat_error *error) {
    char path[CLEAT_CHECKPOINT_PATH], hash[33];
    size_t size;
    if (cleat_checkpoint_find(files, name)) return CLEAT_OK;
    cleat_status status = cleat_checkpoint_path(folder, name, path, error);
    if (!status) status = cleat_file_hash(path, &size, hash, error);
    return status ? status : record_file(files, name, hash, size, error);
}

/* Writes the fitted preprocessing of the dataset. */
static cleat_status write_fitted(const char *folder, const cleat_dataset *dataset, cleat_checkpoint_files *files,
                                 cleat_error *error) {
    cleat_name_list listing = {0};
    cleat_status status = cleat_dataset_save(dataset, folder, error);
    if (!status) status = cleat_listing_read(folder, NULL, &listing, error);
    for (size_t i = 0; i < listing.count && !status; ++i)
        status = record_written(folder, listing.names[i], files, error);
    cleat_name_list_free(&listing);
    return status;
}

static cleat_status write_state(const char *folder, const cleat_train_state *state, const cleat_checkpoint_files *files,
                                cleat_error *error) {
    char path[CLEAT_CHECKPOINT_PATH], *text;
    cleat_status status = cleat_checkpoint_path(folder, CLEAT_STATE_FILE, path, error);
    if (!status) status = cleat_state_encode(state, files, &text, error);
    if (status) return status;
    status = cleat_file_write(path, text, strlen(text), error);
    cleat_free(text);
    return status;
}

static cleat_status write_content(const char *folder, const cleat_checkpoint_content *content, cleat_error *error) {
    cleat_checkpoint_files files = {.count = 0};
    cleat_status status = cleat_folder_create(folder, error);
    if (!status)
        status = write_tensors(folder, content->model, content->model_count, content->model_data, content->settings,
                               content->settings_count, CLEAT_MODEL_FILE, &files, error);
    if (!status)
        status = write_tensors(folder, content->optim, content->optim_count, content->optim_data, NULL, 0,
                               CLEAT_OPTIM_FILE, &files, error);
    if (!status && content->profile) status = write_profile(folder, content->profile, &files, error);
    if (!status && content->dataset) status = write_fitted(folder, content->dataset, &files, error);
    if (!status) status = write_state(folder, content->state, &files, error);
    if (!status) status = cleat_folder_sync(folder, error);
    return status;
}

/* A checkpoint counts once all its files can be read, and hold what was written. */
static cleat_status read_back(const char *folder, cleat_error *error) {
    cleat_checkpoint *written = NULL;
    cleat_status status = cleat_checkpoint_open(folder, &written, error);
    cleat_checkpoint_close(written);
    return status ? cleat_fail_in(error, status, "the new checkpoint cannot be read back") : CLEAT_OK;
}

/* Finds the first unused name for this epoch and step: a resumed run may reach the same step again. */
static cleat_status free_name(const char *run, const cleat_train_state *state, cleat_checkpoint_name *name,
                              char path[CLEAT_CHECKPOINT_PATH], cleat_error *error) {
    for (int64_t copy = 0;; ++copy) {
        cleat_checkpoint_name_make(state->epoch, state->step, copy, name);
        cleat_status status = cleat_checkpoint_path(run, name->text, path, error);
        struct stat about;
        if (status || lstat(path, &about) != 0) return status;
    }
}

cleat_status cleat_checkpoint_point_at(const char *run, const char *pointer, const char *name, cleat_error *error) {
    char path[CLEAT_CHECKPOINT_PATH], line[CLEAT_CHECKPOINT_NAME + 2];
    cleat_status status = cleat_checkpoint_path(run, pointer, path, error);
    if (status) return status;
    int size = snprintf(line, sizeof line, "%s\n", name);
    return cleat_file_write(path, line, (size_t)size, error);
}

cleat_status cleat_checkpoint_publish(const char *run, const char *temporary, const char *path, cleat_error *error) {
    if (rename(temporary, path) != 0)
        return cleat_fail(error, CLEAT_ERR_IO, "%s: cannot rename to %s: %s", temporary, path, strerror(errno));
    return cleat_folder_sync(run, error);
}

static size_t bytes_of(const cleat_st_tensor *tensors, size_t count) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; ++i) bytes += cleat_st_bytes(&tensors[i]);
    return bytes;
}

/* Adds to the error the size of the checkpoint, and whether an earlier one remains for a resume. */
static cleat_status not_written(const char *run, const cleat_checkpoint_content *content, cleat_status status,
                                cleat_error *error) {
    cleat_checkpoint_name *names = NULL;
    size_t count = 0;
    (void)cleat_checkpoint_list(run, &names, &count, NULL);
    cleat_free(names);
    return cleat_fail_in(error, status, "a checkpoint of %zu bytes is not written%s",
                         bytes_of(content->model, content->model_count) +
                             bytes_of(content->optim, content->optim_count),
                         count ? "; the older one is intact, --resume continues from it" : "");
}

cleat_status cleat_checkpoint_write(const char *run, const cleat_checkpoint_content *content, bool best, int64_t keep,
                                    char *folder, cleat_error *error) {
    char temporary[CLEAT_CHECKPOINT_PATH], path[CLEAT_CHECKPOINT_PATH];
    cleat_checkpoint_name name;
    cleat_status status = cleat_folder_make(run, error);
    if (!status) status = cleat_checkpoint_path(run, CLEAT_CHECKPOINT_TEMPORARY, temporary, error);
    if (status) return status;
    cleat_checkpoint_remove_leftovers(run);
    status = free_name(run, content->state, &name, path, error);
    if (!status) status = write_content(temporary, content, error);
    if (!status) status = read_back(temporary, error);
    if (!status) status = cleat_checkpoint_publish(run, temporary, path, error);
    if (status) {
        remove_entry(run, CLEAT_CHECKPOINT_TEMPORARY);
        return status == CLEAT_ERR_IO ? not_written(run, content, status, error) : status;
    }
    if (best) status = cleat_checkpoint_point_at(run, "best", name.text, error);
    if (!status) status = cleat_checkpoint_point_at(run, "last", name.text, error);
    if (status) return status;
    prune(run, &name, keep);
    if (folder) memcpy(folder, path, sizeof path);
    return CLEAT_OK;
}
