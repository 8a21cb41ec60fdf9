/* Starting a run folder from a checkpoint of another one: everything is copied, and the run resumes in place. */
#include "train/resume_from.h"

#include "checkpoint/checkpoint.h"
#include "checkpoint/write.h"
#include "core/files.h"
#include "core/memory.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

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

cleat_status cleat_resume_from(const char *source, const char *folder, cleat_error *error) {
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

void cleat_resume_from_undo(const char *folder) {
    static const char *const files[] = {"resolved.ini", "examples.json", "metrics.jsonl", "system.jsonl"};
    char path[CLEAT_CHECKPOINT_PATH];
    cleat_checkpoint_remove_leftovers(folder);
    cleat_checkpoint_remove_all(folder);
    for (size_t i = 0; i < sizeof files / sizeof *files; ++i)
        if (cleat_checkpoint_path(folder, files[i], path, NULL) == CLEAT_OK && unlink(path) != 0 && errno != ENOENT)
            cleat_log(CLEAT_LOG_WARNING, "cannot remove %s: %s", path, strerror(errno));
}
