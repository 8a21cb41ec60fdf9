/* A run as its user meets it: folder and lock, log, progress, report. */
#ifndef CLEAT_SRC_RUN_H
#define CLEAT_SRC_RUN_H

#include "cleat/train.h"
#include "train/metrics_log.h"
#include "train/progress.h"

typedef struct cleat_run {
    const cleat_train_options *options;
    cleat_train_report *report;
    bool resume;             /* continue from the folder's last checkpoint */
    char folder[CLEAT_PATH]; /* empty before it is chosen */
    int lock;                /* of the folder, ... */
    bool is_locked;          /* ... while the run is open */
    cleat_metrics_log *log;  /* NULL before it is open */
    cleat_progress progress;
} cleat_run;

/* Chooses and makes the folder, and locks it against a second run. Opened again, it locks the same folder.
 * CLEAT_ERR_ARGUMENT: another run trains in it, or has trained in it, or the name does not fit. */
cleat_status cleat_run_open_folder(cleat_run *run, const cleat_profile *profile, cleat_error *error);
void cleat_run_close_folder(cleat_run *run);

/* A line for the user: above the progress bar, or in the log where no progress is shown. */
void cleat_run_print(cleat_run *run, const char *text);

#endif
