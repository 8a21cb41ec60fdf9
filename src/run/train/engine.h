/* The training engine: a device, the session of the model on it, and the loader, staging buffers and
 * average around it. The engine owns all its members. */
#ifndef CLEAT_SRC_ENGINE_H
#define CLEAT_SRC_ENGINE_H

#include "cleat/rates.h"
#include "session/feed.h"
#include "train/average.h"
#include "train/run_data.h"

enum { CLEAT_UPDATE_STAGINGS = 8 };

typedef struct cleat_engine {
    cleat_device *device;
    cleat_model *model;
    cleat_session *session;
    cleat_feed *feed;
    cleat_staging *updates[CLEAT_UPDATE_STAGINGS]; /* inputs of the update graph, used in turn */
    cleat_average average;                         /* average of the session's parameters */
    bool has_rates;    /* false: the device could not be measured, or nothing asks for its speed */
    cleat_rates rates; /* measured speeds of the device */
    bool is_savable;   /* parameters, moments and buffers on the device match the train state */
} cleat_engine;

/* Opens the parts around the session: loader threads on `dataset`, staging buffers for the update graph,
 * the average (`average_decay` 0: none). */
cleat_status cleat_engine_bind(cleat_engine *engine, const cleat_dataset *dataset, double average_decay,
                               cleat_error *error);
/* Measures the speeds of the device (cleat_rates_measure) if the profile has a monitor or a tracer: before
 * memory is allocated. A device that cannot be measured is only logged. CLEAT_ERR_MEMORY. */
cleat_status cleat_engine_measure(cleat_engine *engine, const cleat_profile *profile, cleat_error *error);
/* Whether the speeds can be measured after the first step, which then starts earlier: they are unknown,
 * there is no tracer, and the device is a CPU, which has enough memory and compiles kernels slowly. */
cleat_status cleat_engine_measures_later(const cleat_engine *engine, const cleat_profile *profile, bool *later,
                                         cleat_error *error);
/* As cleat_engine_measure, later: beside the memory of the session, on a separate device. */
cleat_status cleat_engine_measure_apart(cleat_engine *engine, const cleat_profile *profile, cleat_error *error);
/* Closes all members, including the device. */
void cleat_engine_close(cleat_engine *engine);

/* Starts the loader at the first micro-batch of global batch `position` of the epoch in progress. */
cleat_status cleat_engine_start_at(cleat_engine *engine, const cleat_run_data *data, int64_t position,
                                   cleat_error *error);

#endif
