/* The data that a training run passes to its monitor: the device and its speed, steps, activity of the
 * training thread, events, the end. Everything is recorded in system.jsonl of the run folder;
 * metrics.jsonl stays free of times. */
#ifndef CLEAT_SRC_RUN_MONITOR_H
#define CLEAT_SRC_RUN_MONITOR_H

#include "fit/estimate.h"
#include "monitor/monitor.h"
#include "monitor/routes.h"
#include "train/engine.h"
#include "train/run.h"
#include "train/run_settings.h"
#include "train/schedule.h"

typedef struct cleat_run_monitor {
    cleat_device *device;
    /* Called with each line of system.jsonl (cleat_journal_observe); set before opening, NULL: not called. */
    void (*recorded)(void *user, const char *line);
    void *recorded_user;
    cleat_journal *journal; /* NULL until the start record is due, and after the end record */
    cleat_routes *routes;   /* NULL while no thread runs, as `monitor` */
    cleat_monitor *monitor;
    cleat_gauge gauges[CLEAT_ROUTE_FIGURES];
    char profile[CLEAT_PATH + 32], options[512]; /* for the commands of hints: path, and options */
    bool has_rates;                              /* as of the engine */
    /* Of the training graph of each bucket, and of the update; zero without rates. */
    cleat_roofline train[CLEAT_BUCKETS], update;
    cleat_monitor_totals totals;
} cleat_run_monitor;

/* The parts of a run that the records describe; all borrowed. */
typedef struct cleat_run_parts {
    const cleat_run *run;
    const cleat_run_settings *settings;
    const cleat_run_data *data;
    const cleat_engine *engine;
    const cleat_schedule *schedule;
    int64_t step;   /* optimizer steps so far */
    int64_t before; /* those before this process */
} cleat_run_parts;

/* Opens system.jsonl, appends the start record, and starts the thread. Does nothing without run.monitor. */
cleat_status cleat_run_monitor_open(cleat_run_monitor *monitor, const cleat_run_parts *parts, cleat_error *error);
/* Ends the thread, before the device is closed; more records may follow. */
void cleat_run_monitor_stop(cleat_run_monitor *monitor);
/* Stops, and appends the end record of a run that was opened. `text`: the message of the error, or "". */
void cleat_run_monitor_end(cleat_run_monitor *monitor, int64_t step, cleat_status status, const char *text,
                           double seconds);

/* Sets the activity of the training thread; returns the previous one. */
cleat_activity cleat_run_monitor_set(cleat_run_monitor *monitor, cleat_activity activity);
/* A micro-batch of bucket `bucket` was handed over, and is enqueued next. */
void cleat_run_monitor_micro_batch(cleat_run_monitor *monitor, size_t bucket);
/* Step number `step` (the first is 1) of `samples` samples was enqueued. */
void cleat_run_monitor_step(cleat_run_monitor *monitor, const cleat_engine *engine, int64_t step, int64_t samples);
/* Prints the hints that were found since the last call. */
void cleat_run_monitor_show_hints(cleat_run_monitor *monitor, cleat_run *run);
/* Appends an event (cleat_monitor_write_event), and prints nothing. */
void cleat_run_monitor_event(cleat_run_monitor *monitor, const char *what, const char *name, const char *text);
/* The schedule has become shorter than `before` steps: an event that also has the member "schedule" of the
 * start record. */
void cleat_run_monitor_schedule(cleat_run_monitor *monitor, const cleat_schedule *schedule, int64_t before);

#endif
