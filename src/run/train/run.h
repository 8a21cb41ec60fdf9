/* The user's side of a run: folder and lock, log, progress, report. */
#ifndef CLEAT_SRC_RUN_H
#define CLEAT_SRC_RUN_H

#include "cleat/train.h"
#include "train/metrics_log.h"
#include "train/progress.h"

typedef struct cleat_run {
    const cleat_train_options *options;
    cleat_train_report *report;
    bool resume;                     /* continue from the folder's last checkpoint */
    char folder[CLEAT_PATH];         /* empty until it is chosen */
    bool is_copy;                    /* its files so far were copied by options->resume_from */
    size_t existing;                 /* length of the part of its path that this run did not create */
    int lock;                        /* lock of the folder, ... */
    bool is_locked;                  /* ... held while the run is open */
    cleat_metrics_log *log;          /* NULL until it is opened */
    struct cleat_tensorboard *board; /* its event file; NULL without run.tensorboard */
    cleat_progress progress;
} cleat_run;

/* Chooses and creates the folder, and locks it against a second run. A second call locks the same folder
 * again. With options->resume_from the folder begins as a copy of that run, to be resumed. CLEAT_ERR_ARGUMENT: the
 * folder is in use by another run, already contains a run, or its path is
 * too long. */
cleat_status cleat_run_open_folder(cleat_run *run, const cleat_profile *profile, cleat_error *error);
void cleat_run_close_folder(cleat_run *run);
/* After a run that could not start: removes what options->resume_from copied, then the folder, and the folders above
 * it, if this run created them and wrote nothing. Call it after cleat_run_close_folder. */
void cleat_run_discard_folder(cleat_run *run);

/* Prints a line for the user: above the progress bar, or to the log if no progress is shown. */
void cleat_run_print(cleat_run *run, const char *text);

#endif
