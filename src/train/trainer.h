/* The inside of a training run: everything open while it runs. */
#ifndef CLEAT_SRC_TRAINER_H
#define CLEAT_SRC_TRAINER_H

#include "checkpoint/checkpoint.h"
#include "cleat/train.h"
#include "core/clock.h"
#include "session/feed.h"
#include "train/anomaly.h"
#include "train/average.h"
#include "train/budget.h"
#include "train/load_model.h"
#include "train/metrics_log.h"
#include "train/progress.h"
#include "train/schedule.h"

enum { CLEAT_UPDATE_STAGINGS = 8 };

typedef struct cleat_trainer cleat_trainer;

struct cleat_trainer {
    const cleat_profile *profile;
    cleat_profile shortened; /* `profile` points here once sequences had to be cut, ... */
    bool cut;                /* ... which this process decided */
    cleat_profile resolved;  /* what `auto` became */
    const cleat_train_options *options;
    cleat_train_report *report;
    char folder[CLEAT_PATH];
    int lock;            /* of the folder, ... */
    bool is_locked;      /* ... while the trainer is open */
    bool resume;         /* go on from the folder's last checkpoint */
    int64_t limit;       /* bytes to plan with at most, once the device had less than it said; 0: the profile's */
    cleat_error refused; /* what the device said then */
    void (*opened)(void *user, cleat_device *device); /* tests: a device has been opened; may be NULL */
    void *opened_user;

    cleat_checkpoint *checkpoint; /* what is resumed, until it has been */
    cleat_device *device;
    cleat_model *model;
    cleat_dataset *dataset;
    uint32_t *train, *val;
    size_t train_count, val_count;
    cleat_lengths lengths; /* buckets, and the training samples of each */
    cleat_session *session;
    cleat_feed *feed;
    cleat_staging *updates[CLEAT_UPDATE_STAGINGS]; /* inputs of the update graph, in turn */
    const cleat_batches *pass;                     /* of the epoch under way; NULL between two */
    cleat_rng_key rng_key;                         /* of that epoch */
    cleat_anomaly_state anomaly;

    int64_t steps_per_epoch; /* windows, an optimizer step each: the same in every epoch */
    int64_t epochs;          /* of the schedule: the profile's, or fewer (deadline.c) */
    cleat_schedule schedule;
    cleat_train_state state;
    cleat_average average;
    int64_t ring_read; /* steps whose figures have been taken from the ring */
    cleat_metrics_log *log;
    cleat_progress progress;
    bool is_savable; /* the device's parameters, moments and buffers are those of `state`: they can be saved */
    double started;  /* seconds: the call */
    double lap;      /* seconds: the end of the last part of the start that was told (startup_timing.c) */
    double waited;   /* seconds that the session had waited for programs then */
    double last_checkpoint;
    double resumed_time; /* time_used of earlier processes */
    bool resumed_once;   /* it is known: the trainer has been opened once */
    cleat_budget budget;
    double synced; /* when the host last waited for the device, or last did something else than training */
    bool planned;  /* the forecast was made */
};

/* Opens everything, from the profile to a session with its starting or resumed parameters (setup.c). */
cleat_status cleat_trainer_open(cleat_trainer *trainer, cleat_error *error);
void cleat_trainer_close(cleat_trainer *trainer);

/* The run's folder, in which no other run trains until it is left (folder.c). CLEAT_ERR_ARGUMENT: another run does, or has, or the name
 * does not fit. */
cleat_status cleat_trainer_open_folder(cleat_trainer *trainer, cleat_error *error);
void cleat_trainer_close_folder(cleat_trainer *trainer);

/* The start, part by part (startup_timing.c). Adds the time since the last part to *part, of trainer->report->start, and what of it was waiting for
 * programs to its `kernels`. */
void cleat_startup_lap(cleat_trainer *trainer, double *part);
/* The device has done the first step: completes the figures, says and logs them. */
cleat_status cleat_startup_done(cleat_trainer *trainer, cleat_error *error);

/* After CLEAT_ERR_DEVICE_MEMORY or CLEAT_ERR_FIT in `error`: keeps what was computed, closes the trainer, and leaves it ready to
 * be opened again with less: smaller micro-batches, recomputed activations, or shorter sequences where the profile
 * allows that. False, with the error completed and nothing closed, where nothing less is left (oom_fallback.c). */
bool cleat_trainer_oom_fallback(cleat_trainer *trainer, cleat_error *error);

/* A line for the user, above the progress bar; in the log where no progress is shown. */
void cleat_trainer_log(cleat_trainer *trainer, const char *text);

/* cleat_train; `opened` (may be NULL) sees each device that is opened, for tests. */
cleat_status cleat_train_with_callback(const cleat_profile *profile, const cleat_train_options *options,
                                       void (*opened)(void *user, cleat_device *device), void *user,
                                       cleat_train_report *report, cleat_error *error);

/* No epoch is left, or patience is out: after cleat_deadline_open (trainer.c). */
bool cleat_trainer_has_ended(const cleat_trainer *trainer);

/* Between two epochs' ends: first takes the figures of all steps, so that none of them is a bad one (trainer.c). */
cleat_status cleat_trainer_save_within_epoch(cleat_trainer *trainer, cleat_error *error);

/* The loader goes on at the first micro-batch of the window that is next in the pass (trainer.c). */
cleat_status cleat_trainer_start_at_position(cleat_trainer *trainer, cleat_error *error);

/* Writes the state of training as a checkpoint (checkpointing.c). */
cleat_status cleat_trainer_save(cleat_trainer *trainer, bool best, cleat_error *error);
/* Brings trainer->checkpoint back. */
cleat_status cleat_trainer_resume(cleat_trainer *trainer, cleat_error *error);

/* The time budget (deadline.c). Seconds that all processes of this run used. */
double cleat_trainer_time_used(const cleat_trainer *trainer);
/* The budget, the work of an epoch and the number of epochs: after the starting or resumed state. */
void cleat_deadline_open(cleat_trainer *trainer);
/* CLEAT_ERR_TIME_UP where earlier processes left no time for a step. */
cleat_status cleat_deadline_check_resumed(const cleat_trainer *trainer, cleat_error *error);
/* The window's optimizer step was enqueued; waits for it while steps are measured one by one. */
cleat_status cleat_deadline_queued(cleat_trainer *trainer, const cleat_batches *batches,
                                   const cleat_global_batch *global_batch, cleat_error *error);
/* The device has done what was enqueued, or is about to train after something else. */
void cleat_deadline_synced(cleat_trainer *trainer);
/* Says what the run will take, and shortens its schedule where that is wanted. The figures of all steps have been taken. */
cleat_status cleat_deadline_plan(cleat_trainer *trainer, cleat_error *error);
/* Whether the window's step, and the evaluation after it, could pass the budget: then the run is to stop before it. */
cleat_status cleat_deadline_is_near(cleat_trainer *trainer, const cleat_batches *batches,
                                    const cleat_global_batch *global_batch, bool evaluation, bool *near,
                                    cleat_error *error);
void cleat_deadline_report(const cleat_trainer *trainer, cleat_train_report *report);

#endif
