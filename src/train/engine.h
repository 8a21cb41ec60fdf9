/* What trains: a device, the session of the model on it, and what feeds and surrounds the session. */
#ifndef CLEAT_SRC_ENGINE_H
#define CLEAT_SRC_ENGINE_H

#include "session/feed.h"
#include "train/average.h"
#include "train/run_data.h"

enum { CLEAT_UPDATE_STAGINGS = 8 };

typedef struct cleat_engine {
    cleat_device *device;
    cleat_model *model;
    cleat_session *session;
    cleat_feed *feed;
    cleat_staging *updates[CLEAT_UPDATE_STAGINGS]; /* inputs of the update graph, in turn */
    cleat_average average;                         /* of the session's parameters */
    bool is_savable; /* the device's parameters, moments and buffers are those of the train state */
} cleat_engine;

/* Opens what surrounds a session: loader threads on `dataset`, memory for the inputs of updates, the average
 * (`average_decay` 0: none). */
cleat_status cleat_engine_bind(cleat_engine *engine, const cleat_dataset *dataset, double average_decay,
                               cleat_error *error);
/* Closes all of it, the device too. */
void cleat_engine_close(cleat_engine *engine);

/* The loader continues at the first micro-batch of global batch `position` of the epoch in progress. */
cleat_status cleat_engine_start_at(cleat_engine *engine, const cleat_run_data *data, int64_t position,
                                   cleat_error *error);

#endif
