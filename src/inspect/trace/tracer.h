/* The tracer of a training run: records the steps of a schedule and writes the files of each cycle.
 *
 * The trainer's thread calls all functions. Outside of warm-up and active steps tracing is free: the queues
 * keep no times, and no events are collected. A NULL tracer is allowed everywhere and does nothing. */
#ifndef CLEAT_SRC_TRACE_PROFILER_H
#define CLEAT_SRC_TRACE_PROFILER_H

#include "cleat/tracer.h"
#include "session/feed.h"

typedef struct cleat_tracer cleat_tracer;

/* Everything is borrowed: until cleat_tracer_stop; the feed until it is closed. */
typedef struct cleat_tracer_setup {
    const cleat_tracer_schedule *schedule; /* copied */
    cleat_session *session;
    cleat_feed *feed;
    const cleat_rates *rates; /* copied; NULL: unknown */
    const char *folder;       /* of the run */
    int64_t before;           /* steps of the run before this process */
} cleat_tracer_setup;

cleat_status cleat_tracer_open(const cleat_tracer_setup *setup, cleat_tracer **tracer, cleat_error *error);
/* At the end of the steps, while the session is open: swaps the queues back if a cycle was under way, whose
 * files are not written, and logs what was not recorded. */
void cleat_tracer_stop(cleat_tracer *tracer);
/* After cleat_tracer_stop, and after the feed was closed: its threads log spans. */
void cleat_tracer_close(cleat_tracer *tracer);

/* Around each optimizer step: `bucket` and `micro_batches` are those of its global batch. At the end of a
 * cycle, end_step waits for the device and writes profile-S000008.trace.json.gz, .json, .txt and .csv,
 * numbered by the first active step. A driver without times, and files that cannot be written, are logged as
 * warnings: the run continues. */
cleat_status cleat_tracer_begin_step(cleat_tracer *tracer, size_t bucket, size_t micro_batches, cleat_error *error);
cleat_status cleat_tracer_end_step(cleat_tracer *tracer, cleat_error *error);

/* Whether the step under way must not be waited for individually: it is recorded, or compared with recorded ones. */
bool cleat_tracer_wants_flow(const cleat_tracer *tracer);
/* Whether all cycles are recorded, or the device turned out not to time its commands. */
bool cleat_tracer_is_done(const cleat_tracer *tracer);
/* Number of cycles whose files were written. */
int64_t cleat_tracer_written(const cleat_tracer *tracer);

/* Spans of the trainer: `start` = cleat_tracer_now before, end_span after. */
double cleat_tracer_now(const cleat_tracer *tracer);
void cleat_tracer_end_span(cleat_tracer *tracer, const char *name, double start);
/* As end_span, for work that is not part of a step (an evaluation, a checkpoint, the start of an epoch): its
 * time is left out of the steps. */
void cleat_tracer_end_interruption(cleat_tracer *tracer, const char *name, double start);

#endif
