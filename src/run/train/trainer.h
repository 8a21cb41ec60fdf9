/* A training run as a whole. Only trainer.c (the loop) and setup.c (opening) access all its parts. */
#ifndef CLEAT_SRC_TRAINER_H
#define CLEAT_SRC_TRAINER_H

#include "checkpoint/checkpoint.h"
#include "train/anomaly.h"
#include "train/data_parallel.h"
#include "train/deadline.h"
#include "train/engine.h"
#include "train/oom_fallback.h"
#include "train/run.h"
#include "train/run_clock.h"
#include "train/run_data.h"
#include "train/run_examples.h"
#include "train/run_monitor.h"
#include "train/run_settings.h"
#include "train/run_tracer.h"
#include "train/schedule.h"
#include "verify/program_check.h"

typedef struct cleat_trainer {
    cleat_run run;
    cleat_run_settings settings;
    cleat_run_data data;
    cleat_engine engine;
    cleat_data_parallel parallel;
    int64_t
        *measured_shares; /* [ranks] with which the run is opened again, because its plan depends on them; NULL: none */
    int share_changes;    /* in this run */
    bool opens_again;
    cleat_program_check *program_check; /* the check of the run's programs on its own batches; NULL: none */
    bool measures_later; /* the device's speeds are measured, and the monitor begins, after the first step */
    cleat_schedule schedule;
    cleat_train_state state;
    int64_t ring_read; /* steps whose row in the device's ring has been logged */
    cleat_run_clock clock;
    cleat_deadline deadline;
    cleat_anomaly_detector anomaly;
    cleat_memory_limit memory;
    cleat_run_examples examples;
    cleat_run_monitor monitor;
    cleat_run_tracer tracing;
    cleat_string init_table;                          /* table of the weights taken from model.init, for resolved.ini */
    cleat_data_fingerprint fingerprint;               /* of the data; counts 0: synthetic samples */
    cleat_checkpoint *checkpoint;                     /* the checkpoint to resume; NULL once it is loaded */
    void (*opened)(void *user, cleat_device *device); /* test hook: a device has been opened; may be NULL */
    void *opened_user;
} cleat_trainer;

/* Opens the run, from the profile to a session with initial or resumed parameters (setup.c). The caller
 * has set run.options, run.report, run.resume, settings.profile and clock.started, and closes the trainer,
 * also after an error. */
cleat_status cleat_trainer_open(cleat_trainer *trainer, cleat_error *error);
/* Keeps what is needed to open the run again: folder, settings, clock, memory limit, and the journal, which
 * cleat_run_monitor_end closes. */
void cleat_trainer_close(cleat_trainer *trainer);
/* Measures the device's speeds and starts the monitor, if that was postponed until after the first step
 * (setup.c). */
cleat_status cleat_trainer_measure_later(cleat_trainer *trainer, cleat_error *error);
/* Loads trainer->checkpoint, and closes it (setup.c). */
cleat_status cleat_trainer_resume(cleat_trainer *trainer, cleat_error *error);

/* cleat_train with a test hook: `opened` (may be NULL) is called with each device that is opened
 * (trainer.c). */
cleat_status cleat_train_with_callback(const cleat_profile *profile, const cleat_train_options *options,
                                       void (*opened)(void *user, cleat_device *device), void *user,
                                       cleat_train_report *report, cleat_error *error);
/* Whether this process writes the run folder and decides by its clock: rank 0, or a run of one process. */
bool cleat_trainer_leads(const cleat_trainer *trainer);
/* Whether the caller of the run has asked it to stop (options->stop). */
bool cleat_trainer_must_stop(const cleat_trainer *trainer);
/* All epochs are done, or early stopping was triggered. */
bool cleat_trainer_has_ended(const cleat_trainer *trainer);
/* Writes the current training state as a checkpoint. */
cleat_status cleat_trainer_save(cleat_trainer *trainer, bool best, cleat_error *error);
/* The same within an epoch: logs all steps first; CLEAT_ERR_NAN if one of them was not finite. */
cleat_status cleat_trainer_save_within_epoch(cleat_trainer *trainer, cleat_error *error);

#endif
