/* The inside of a training run: everything open while it runs. */
#ifndef CLEAT_SRC_TRAINER_H
#define CLEAT_SRC_TRAINER_H

#include "core/clock.h"
#include "train/average.h"
#include "train/checkpoint.h"
#include "train/feed.h"
#include "train/metrics_log.h"
#include "train/progress.h"
#include "train/restore.h"
#include "train/schedule.h"

enum { CLEAT_UPDATE_STAGINGS = 8 };

typedef struct cleat_trainer {
    const cleat_profile *profile;
    cleat_profile resolved; /* what `auto` became */
    const cleat_train_options *options;
    cleat_train_report *report;
    char folder[CLEAT_PATH];

    cleat_device *device;
    cleat_model *model;
    cleat_dataset *dataset;
    uint32_t *train, *val;
    size_t train_count, val_count;
    cleat_session *session;
    cleat_feed *feed;
    cleat_staging *updates[CLEAT_UPDATE_STAGINGS]; /* inputs of the update graph, in turn */

    int64_t accumulation;    /* micro-batches an optimizer step */
    int64_t batches;         /* micro-batches an epoch: the same in every epoch */
    int64_t steps_per_epoch; /* optimizer steps; the last window may be shorter */
    cleat_schedule schedule;
    cleat_train_state state;
    cleat_average average;
    int64_t ring_read; /* steps whose figures have been taken from the ring */
    cleat_metrics_log *log;
    cleat_progress progress;
    double started, last_checkpoint; /* seconds */
    double resumed_time;             /* time_used of earlier processes */
} cleat_trainer;

/* Opens everything, from the profile to a session with its starting or resumed parameters (setup.c). */
cleat_status cleat_trainer_open(cleat_trainer *trainer, cleat_error *error);
void cleat_trainer_close(cleat_trainer *trainer);

/* Writes the state of training as a checkpoint (save.c). */
cleat_status cleat_trainer_save(cleat_trainer *trainer, bool best, cleat_error *error);
/* Brings the last checkpoint of the run's folder back. */
cleat_status cleat_trainer_resume(cleat_trainer *trainer, cleat_error *error);

#endif
