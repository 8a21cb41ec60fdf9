/* The run's folder: its name, and the lock that keeps a second run out of it. */
#include "core/files.h"
#include "core/lock.h"
#include "train/trainer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* Seconds to wait for a process that is just ending. */
static const double PATIENCE = 1;

/* runs/TYPE-DATE-TIME, with "-2", "-3", ... behind it where another run began in the same second. */
static cleat_status create_new(cleat_trainer *trainer, cleat_error *error) {
    char stamp[32], type[64], name[128];
    time_t now = time(NULL);
    struct tm local;
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&now, &local));
    cleat_status status = cleat_profile_get(trainer->profile, "model.type", type, sizeof type, error);
    if (status == CLEAT_OK) status = cleat_folder_make("runs", error);
    if (status != CLEAT_OK) return status;
    snprintf(name, sizeof name, "runs/%s-%s", type, stamp);
    snprintf(trainer->folder, sizeof trainer->folder, "%s", name);
    for (int run = 2; mkdir(trainer->folder, 0755) != 0; ++run) {
        if (errno != EEXIST)
            return cleat_fail(error, CLEAT_ERR_IO, "%s: cannot create the folder: %s", trainer->folder,
                              strerror(errno));
        snprintf(trainer->folder, sizeof trainer->folder, "%s-%d", name, run);
    }
    return CLEAT_OK;
}

static cleat_status choose(cleat_trainer *trainer, cleat_error *error) {
    const char *wanted = trainer->options->out ? trainer->options->out : trainer->profile->run.out;
    if (!*wanted || strcmp(wanted, "auto") == 0) {
        if (!trainer->resume) return create_new(trainer, error);
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "--resume requires the run folder: set --out or run.out");
    }
    if (strlen(wanted) >= sizeof trainer->folder)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "the run folder (--out): path too long: %.200s...", wanted);
    snprintf(trainer->folder, sizeof trainer->folder, "%s", wanted);
    return cleat_folder_make(trainer->folder, error);
}

/* Two runs in one folder would cut each other's log and remove each other's checkpoints. */
static cleat_status lock(cleat_trainer *trainer, cleat_error *error) {
    char path[CLEAT_PATH + 32];
    cleat_error why = {0};
    snprintf(path, sizeof path, "%s/.train", trainer->folder);
    cleat_status status = cleat_lock(path, PATIENCE, &trainer->lock, &why);
    trainer->is_locked = status == CLEAT_OK;
    if (status == CLEAT_ERR_TIME_UP)
        return cleat_fail(
            error, CLEAT_ERR_ARGUMENT,
            "another process is training in %s: wait until it ends, or start a separate run with another --out",
            trainer->folder);
    if (status == CLEAT_ERR_NOT_SUPPORTED) {
        cleat_log(CLEAT_LOG_WARNING, "%s; the folder is not protected against a second run", why.text);
        return CLEAT_OK;
    }
    return status == CLEAT_OK ? status : cleat_fail(error, status, "%s", why.text);
}

cleat_status cleat_trainer_open_folder(cleat_trainer *trainer, cleat_error *error) {
    const bool again = trainer->folder[0] != 0;
    cleat_status status = again ? CLEAT_OK : choose(trainer, error);
    if (status == CLEAT_OK) status = lock(trainer, error);
    if (status != CLEAT_OK || again || trainer->resume || !cleat_checkpoint_exists(trainer->folder)) return status;
    return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                      "%s already contains a run: continue it with --resume, or start a new one with another --out",
                      trainer->folder);
}

void cleat_trainer_close_folder(cleat_trainer *trainer) {
    if (trainer->is_locked) cleat_unlock(trainer->lock);
    trainer->is_locked = false;
}
