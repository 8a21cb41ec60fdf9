/* Copying a checkpoint into another run folder. */
#include "checkpoint/checkpoint.h"
#include "checkpoint/write.h"

#include "core/files.h"

#include <stdio.h>
#include <string.h>

/* Copies the files that state.json lists, but not links; the copy appears complete or not at all. */
static cleat_status copy_folder(const cleat_checkpoint *checkpoint, const char *run, const char *name,
                                cleat_error *error) {
    char temporary[CLEAT_CHECKPOINT_PATH], path[CLEAT_CHECKPOINT_PATH];
    cleat_status status = cleat_checkpoint_path(run, CLEAT_CHECKPOINT_TEMPORARY, temporary, error);
    if (!status) status = cleat_checkpoint_path(run, name, path, error);
    if (!status) status = cleat_folder_create(temporary, error);
    for (size_t i = 0; i < checkpoint->files.count && !status; ++i)
        status = cleat_file_copy(checkpoint->folder, temporary, checkpoint->files.items[i].name, false, error);
    if (!status) status = cleat_file_copy(checkpoint->folder, temporary, CLEAT_STATE_FILE, false, error);
    if (!status) status = cleat_folder_sync(temporary, error);
    if (!status) status = cleat_checkpoint_publish(run, temporary, path, error);
    return status;
}

void cleat_checkpoint_run(const cleat_checkpoint *checkpoint, char run[CLEAT_CHECKPOINT_PATH]) {
    snprintf(run, CLEAT_CHECKPOINT_PATH, "%s", checkpoint->folder);
    char *slash = strrchr(run, '/');
    if (!slash)
        snprintf(run, CLEAT_CHECKPOINT_PATH, ".");
    else
        slash[slash == run] = 0;
}

/* Copies the best checkpoint beside `checkpoint`, unless a later process wrote it. */
static cleat_status copy_best(const cleat_checkpoint *checkpoint, const cleat_checkpoint_name *last, const char *run,
                              cleat_error *error) {
    char from[CLEAT_CHECKPOINT_PATH], folder[CLEAT_CHECKPOINT_PATH];
    cleat_checkpoint_name best;
    cleat_checkpoint *opened = NULL;
    cleat_error why = {0};
    if (!checkpoint->state.has_best) return CLEAT_OK;
    if (checkpoint->state.best_step == checkpoint->state.step)
        return cleat_checkpoint_point_at(run, "best", last->text, error);
    cleat_checkpoint_run(checkpoint, from);
    if (!cleat_checkpoint_pointer(from, "best", &best) || best.step != checkpoint->state.best_step) {
        cleat_log(
            CLEAT_LOG_WARNING,
            "%s: the best checkpoint so far, of step %lld, is not in %s; the copy has none until an evaluation is "
            "better",
            checkpoint->folder, (long long)checkpoint->state.best_step, from);
        return CLEAT_OK;
    }
    cleat_status status = cleat_checkpoint_path(from, best.text, folder, error);
    if (status) return status;
    status = cleat_refuse_link(folder, &why);
    if (!status) status = cleat_checkpoint_open(folder, &opened, &why); /* checks its hashes */
    if (status) {
        cleat_log(CLEAT_LOG_WARNING, "the best checkpoint is not copied: %s", why.text);
        return status == CLEAT_ERR_MEMORY ? cleat_fail(error, status, "%s", why.text) : CLEAT_OK;
    }
    status = copy_folder(opened, run, best.text, error);
    cleat_checkpoint_close(opened);
    return status ? status : cleat_checkpoint_point_at(run, "best", best.text, error);
}

cleat_status cleat_checkpoint_copy(const cleat_checkpoint *checkpoint, const char *run, cleat_error *error) {
    cleat_checkpoint_name name;
    const char *slash = strrchr(checkpoint->folder, '/');
    if (!cleat_checkpoint_name_parse(slash ? slash + 1 : checkpoint->folder, &name)) /* it was renamed */
        cleat_checkpoint_name_make(checkpoint->state.epoch, checkpoint->state.step, 0, &name);
    cleat_checkpoint_remove_leftovers(run);
    cleat_status status = copy_best(checkpoint, &name, run, error);
    if (!status) status = copy_folder(checkpoint, run, name.text, error);
    return status ? status : cleat_checkpoint_point_at(run, "last", name.text, error);
}
