/* The monitor of a run: a thread that samples, 50 times a second, whether the device has work and what the training
 * thread is doing, and appends a `sample` record to the journal once a period. It also looks for hints.
 *
 * Rates are those of steps that the device has completed, not of steps that were enqueued: the host runs up to 64
 * steps ahead. They are measured from one completed step to another, in time that excludes evaluations and
 * checkpoints. */
#ifndef CLEAT_SRC_MONITOR_H
#define CLEAT_SRC_MONITOR_H

#include "monitor/hints.h"
#include "monitor/journal.h"

/* What the training thread is doing: the reason if the device is idle. */
typedef enum cleat_activity {
    CLEAT_DOING_OTHER,
    CLEAT_DOING_ENQUEUE, /* forward and backward */
    CLEAT_DOING_UPDATE,  /* enqueueing the update */
    CLEAT_DOING_LOADER,  /* waiting for a batch, or filling one */
    CLEAT_DOING_READ,    /* reading results of steps, and writing them to the log */
    CLEAT_DOING_EPOCH,   /* starting the loader for an epoch */
    CLEAT_DOING_EVALUATE,
    CLEAT_DOING_CHECKPOINT,
    CLEAT_ACTIVITIES
} cleat_activity;

/* A number that the monitor records. All texts are borrowed and outlive the monitor. */
typedef struct cleat_gauge {
    const char *name, *unit;
    const char *source; /* NULL: no source on this machine; null in every record */
    const char *meaning;
} cleat_gauge;

/* cleat's own figures, all computed by the monitor. */
enum {
    CLEAT_OWN_STEPS_PER_SECOND,
    CLEAT_OWN_SAMPLES_PER_SECOND,
    CLEAT_OWN_STEP_SECONDS,
    CLEAT_OWN_ROOFLINE_SHARE,
    CLEAT_OWN_DRY_SHARE,
    CLEAT_OWN_DRY_LOADER,
    CLEAT_OWN_DRY_EVALUATE,
    CLEAT_OWN_DRY_CHECKPOINT,
    CLEAT_OWN_DRY_READ,
    CLEAT_OWN_DRY_OTHER,
    CLEAT_OWN_DRY_HANDOVERS,
    CLEAT_OWN_WORKERS,
    CLEAT_OWN_LOADER_FILL,
    CLEAT_OWN_MEMORY_PLANNED,
    CLEAT_OWN_MEMORY_ALLOCATED,
    CLEAT_OWN_GAUGES
};
extern const cleat_gauge cleat_own_gauges[CLEAT_OWN_GAUGES];

enum { CLEAT_MAX_GAUGES = 32 };

/* The monitor's sources, called from its thread unless noted. */
typedef struct cleat_monitor_calls {
    bool (*is_idle)(void *user);                /* the device has no work */
    void (*mark)(void *user, int64_t number);   /* cleat_device_mark; called by the training thread */
    int64_t (*marked)(void *user);              /* cleat_device_marked */
    void (*read)(void *user, double *values);   /* the gauges [n_gauges]; NaN: unknown now */
    void (*distrust)(void *user, size_t gauge); /* the gauge is NaN from now on */
} cleat_monitor_calls;

typedef struct cleat_monitor_config {
    double period;           /* seconds between two records */
    cleat_journal *journal;  /* borrowed, as all that follows */
    double distrust_seconds; /* time after which a driver's load that contradicts cleat's own is dropped; 0: 10 s */
    int64_t step;            /* steps of the run so far */
    double steps_per_epoch;
    double memory_planned;     /* bytes */
    cleat_hint_facts facts;    /* copied; its texts are borrowed */
    const cleat_gauge *gauges; /* [n_gauges] of drivers and host, in addition to cleat's own */
    size_t n_gauges;           /* at most CLEAT_MAX_GAUGES */
    cleat_monitor_calls calls;
    void *user;
} cleat_monitor_config;

/* Sums since the start of this process, after a step; NaN: unknown. */
typedef struct cleat_monitor_totals {
    int64_t step;        /* of the run */
    double samples;      /* samples of all steps */
    double roof_seconds; /* seconds that their work takes at the device's measured rates */
    double hand_overs, dry_hand_overs;
    double fill_seconds;
    double workers, memory_allocated; /* now */
} cleat_monitor_totals;

typedef struct cleat_monitor cleat_monitor;

/* Starts the thread. The caller stops it before anything that it borrows is closed. */
cleat_status cleat_monitor_start(const cleat_monitor_config *config, cleat_monitor **monitor, cleat_error *error);
/* Writes a last sample, ends the thread and frees the monitor. NULL is allowed, here and below. */
void cleat_monitor_stop(cleat_monitor *monitor);

/* Sets what the training thread does; returns the previous activity. */
cleat_activity cleat_monitor_set_activity(cleat_monitor *monitor, cleat_activity activity);
/* The training thread has enqueued a step. */
void cleat_monitor_step(cleat_monitor *monitor, const cleat_monitor_totals *totals);
/* Takes a hint that was found and recorded but not yet shown; false: there is none. */
bool cleat_monitor_take_hint(cleat_monitor *monitor, cleat_hint *hint);

/* Appends an `event` record. `what`: "hint", "workers", "memory", "checkpoint", "resume", "profile", "note". */
void cleat_monitor_write_event(cleat_journal *journal, int64_t step, const char *what, const char *name,
                               const char *text, const char *command);
/* The same without the closing brace, for an event with more members. */
void cleat_monitor_begin_event(cleat_string *record, int64_t step, const char *what, const char *name, const char *text,
                               const char *command);

#endif
