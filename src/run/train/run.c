/* The run folder, its lock against a second run, and lines for the user. */
#include "train/run.h"

#include "checkpoint/checkpoint.h"
#include "checkpoint/write.h"
#include "core/files.h"
#include "core/lock.h"
#include "core/memory.h"
#include "core/shell.h"
#include "platform/files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Seconds to wait for a process that is about to end. */
static const double PATIENCE = 1;

/* Length of the longest part of a path that is a folder. */
static size_t existing_part(const char *path) {
    char part[CLEAT_PATH];
    size_t length = strlen(path);
    for (snprintf(part, sizeof part, "%s", path); length > 0 && !cleat_folder_exists(part); part[length] = 0) do
            --length;
        while (length > 0 && path[length] != '/');
    return length;
}

cleat_status cleat_run_name(const cleat_profile *profile, char name[CLEAT_RUN_NAME], cleat_error *error) {
    char stamp[32], type[64];
    time_t now = time(NULL);
    struct tm local;
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&now, &local));
    cleat_status status = cleat_profile_get(profile, "model.type", type, sizeof type, error);
    if (!status) snprintf(name, CLEAT_RUN_NAME, "runs/%s-%s", type, stamp);
    return status;
}

/* Creates runs/TYPE-DATE-TIME, with the suffix "-2", "-3", ... if another run started in the same second. */
static cleat_status create_new(cleat_run *run, const cleat_profile *profile, cleat_error *error) {
    char name[CLEAT_RUN_NAME];
    cleat_status status = cleat_run_name(profile, name, error);
    run->existing = existing_part("runs");
    if (!status) status = cleat_folder_make("runs", error);
    if (status) return status;
    snprintf(run->folder, sizeof run->folder, "%s", name);
    for (int copy = 2; mkdir(run->folder, 0755) != 0; ++copy) {
        if (errno != EEXIST)
            return cleat_fail(error, CLEAT_ERR_IO, "%s: cannot create the folder: %s", run->folder, strerror(errno));
        snprintf(run->folder, sizeof run->folder, "%s-%d", name, copy);
    }
    return CLEAT_OK;
}

static cleat_status choose(cleat_run *run, const cleat_profile *profile, cleat_error *error) {
    const char *wanted = run->options->out ? run->options->out : profile->run.out;
    if (!*wanted || strcmp(wanted, "auto") == 0) {
        if (!run->resume) return create_new(run, profile, error);
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "--resume requires the run folder: set --out or run.out");
    }
    if (strlen(wanted) >= sizeof run->folder)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "the run folder (--out): path too long: %.200s...", wanted);
    snprintf(run->folder, sizeof run->folder, "%s", wanted);
    run->existing = existing_part(wanted);
    return cleat_folder_make(run->folder, error);
}

/* Two runs in the same folder would truncate each other's log and remove each other's checkpoints. */
static cleat_status lock(cleat_run *run, cleat_error *error) {
    char path[CLEAT_PATH + 32], word[2 * CLEAT_PATH];
    cleat_error why = {0};
    snprintf(path, sizeof path, "%s/.train", run->folder);
    cleat_status status = cleat_lock(path, PATIENCE, &run->lock, &why);
    run->is_locked = !status;
    if (status == CLEAT_ERR_TIME_UP)
        return cleat_fail(
            error, CLEAT_ERR_ARGUMENT,
            "another process is training in %s: wait until it ends, or start a separate run with another --out",
            run->folder);
    if (status == CLEAT_ERR_NOT_SUPPORTED) {
        cleat_log(CLEAT_LOG_WARNING, "%s; the folder is not protected against a second run", why.text);
        return CLEAT_OK;
    }
    if (status == CLEAT_ERR_IO && run->resume)
        return cleat_fail(error, status, "%s. If %s is read-only, use --resume-from %s with another --out", why.text,
                          run->folder, cleat_shell_path(run->folder, word, sizeof word));
    return status ? cleat_fail(error, status, "%s", why.text) : status;
}

/* --resume of a folder without a checkpoint: a new run, as scripts that are started again and again expect,
 * unless the folder is evidently not the one that was meant. */
static cleat_status check_nothing_to_resume(const cleat_run *run, bool existed, cleat_error *error) {
    char path[CLEAT_CHECKPOINT_PATH], word[2 * CLEAT_PATH], runs[256];
    cleat_status status = cleat_checkpoint_path(run->folder, CLEAT_STATE_FILE, path, error);
    if (status) return status;
    if (cleat_file_exists(path))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "--resume: %s is a checkpoint; give the run folder that contains it as --out, or start a new "
                          "folder with --resume-from %s",
                          run->folder, cleat_shell_path(run->folder, word, sizeof word));
    if (*cleat_listing_hint(run->folder, "last", runs))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "--resume: %s contains no checkpoint (ckpt-*)%s", run->folder,
                          runs);
    cleat_log(CLEAT_LOG_WARNING, "--resume: nothing to resume, %s %s: a new run starts", run->folder,
              existed ? "contains no checkpoint (ckpt-*)" : "did not exist");
    return CLEAT_OK;
}

/* Bytes of the first `lines` complete lines. */
static size_t size_of_lines(const char *text, size_t size, int64_t lines) {
    const char *at = text, *end = text + size, *stop;
    while (lines-- > 0 && (stop = memchr(at, '\n', (size_t)(end - at)))) at = stop + 1;
    return (size_t)(at - text);
}

enum { WHOLE = -1 };

/* Copies the first `lines` complete lines of a file, or all of it; the file may be missing. */
static cleat_status copy_lines(const char *from, const char *to, const char *name, int64_t lines, cleat_error *error) {
    char source[CLEAT_CHECKPOINT_PATH], target[CLEAT_CHECKPOINT_PATH], *text;
    size_t size;
    cleat_status status = cleat_checkpoint_path(from, name, source, error);
    if (!status) status = cleat_checkpoint_path(to, name, target, error);
    if (!status) status = cleat_refuse_link(source, error);
    if (status || !cleat_file_exists(source)) return status;
    status = cleat_file_read(source, &text, &size, error);
    if (status) return status;
    status = cleat_file_write(target, text, lines == WHOLE ? size : size_of_lines(text, size, lines), error);
    cleat_free(text);
    return status;
}

/* Copies the last checkpoint of `source`, a run folder (or `source` itself, a checkpoint folder), into the
 * run folder `folder`, together with what a resume there needs: the best checkpoint, resolved.ini, the
 * records of metrics.jsonl up to the checkpoint, system.jsonl and examples.json. `source` is only read: no
 * lock, no file. If it is killed half-way, --resume also continues from the folder, which then has no
 * checkpoint or only the best one. */
static cleat_status resume_from(const char *source, const char *folder, cleat_error *error) {
    char run[CLEAT_CHECKPOINT_PATH];
    cleat_checkpoint *checkpoint = NULL;
    cleat_status status = cleat_checkpoint_open_source(source, &checkpoint, error);
    if (status) return cleat_fail_in(error, status, "--resume-from");
    cleat_checkpoint_run(checkpoint, run);
    status = copy_lines(run, folder, "resolved.ini", WHOLE, error);
    if (!status) status = copy_lines(run, folder, "examples.json", WHOLE, error);
    if (!status) status = copy_lines(run, folder, "metrics.jsonl", checkpoint->state.metrics_records, error);
    if (!status) status = copy_lines(run, folder, "system.jsonl", INT64_MAX, error);
    if (!status) status = cleat_checkpoint_copy(checkpoint, folder, error);
    if (!status)
        cleat_log(CLEAT_LOG_INFO, "copied %s to %s, and its best checkpoint and its log", checkpoint->folder, folder);
    cleat_checkpoint_close(checkpoint);
    return status;
}

/* Removes what resume_from copied, for a run that was refused: the same command with other settings can then
 * use the folder. A failure is only a warning. */
static void undo_resume_from(const char *folder) {
    static const char *const files[] = {"resolved.ini", "examples.json", "metrics.jsonl", "system.jsonl"};
    char path[CLEAT_CHECKPOINT_PATH];
    cleat_checkpoint_remove_leftovers(folder);
    cleat_checkpoint_remove_all(folder);
    for (size_t i = 0; i < sizeof files / sizeof *files; ++i)
        if (cleat_checkpoint_path(folder, files[i], path, NULL) == CLEAT_OK && unlink(path) != 0 && errno != ENOENT)
            cleat_log(CLEAT_LOG_WARNING, "cannot remove %s: %s", path, strerror(errno));
}

cleat_status cleat_run_open_folder(cleat_run *run, const cleat_profile *profile, cleat_error *error) {
    const bool again = run->folder[0] != 0;
    if (run->options->resume && run->options->resume_from)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "--resume continues the run in its own folder, --resume-from starts a new folder: give only "
                          "one of them");
    const char *wanted = run->options->out ? run->options->out : profile->run.out;
    const bool existed = again || cleat_folder_exists(wanted);
    cleat_status status = again ? CLEAT_OK : choose(run, profile, error);
    if (!status && (status = lock(run, error)) != CLEAT_OK)
        run->existing = strlen(run->folder); /* another run, perhaps started at the same time, may be using it */
    if (run->is_locked) cleat_checkpoint_remove_leftovers(run->folder);
    if (!status && !again && run->resume && !cleat_checkpoint_exists(run->folder))
        status = check_nothing_to_resume(run, existed, error);
    if (status || again || run->resume) return status;
    if (cleat_checkpoint_exists(run->folder))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "%s already contains a run: continue it with --resume, or start a new one with another --out",
                          run->folder);
    if (!run->options->resume_from) return CLEAT_OK;
    run->resume = run->is_copy = true;
    return resume_from(run->options->resume_from, run->folder, error);
}

void cleat_run_close_folder(cleat_run *run) {
    if (run->is_locked) cleat_unlock(run->lock);
    run->is_locked = false;
}

void cleat_run_discard_folder(cleat_run *run) {
    char path[CLEAT_PATH + 32];
    cleat_name_list files = {0};
    if (run->is_copy) undo_resume_from(run->folder);
    if (strlen(run->folder) <= run->existing || cleat_listing_read(run->folder, NULL, &files, NULL)) return;
    const size_t count = files.count;
    cleat_name_list_free(&files);
    if (count > 0) return;
    snprintf(path, sizeof path, "%s/.train.lock", run->folder);
    unlink(path);
    snprintf(path, sizeof path, "%s", run->folder);
    while (strlen(path) > run->existing && rmdir(path) == 0) {
        char *slash = strrchr(path, '/');
        if (!slash) break;
        *slash = 0;
    }
}

void cleat_run_print(cleat_run *run, const char *text) {
    if (run->options->print)
        cleat_progress_line(&run->progress, text);
    else
        cleat_log(CLEAT_LOG_INFO, "%s", text);
}
