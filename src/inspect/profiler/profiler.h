/* The profiler of a training run: records the steps of a schedule and writes the files of each cycle.
 *
 * The trainer's thread calls all functions. Outside of warm-up and active steps nothing is paid: the queues keep no times,
 * and no events are collected. A NULL profiler is allowed everywhere and does nothing. */
#ifndef CLEAT_SRC_PROFILER_PROFILER_H
#define CLEAT_SRC_PROFILER_PROFILER_H

#include "cleat/profiler.h"
#include "session/feed.h"

typedef struct cleat_profiler cleat_profiler;

/* Everything is borrowed: until cleat_profiler_stop; the feed until it is closed. */
typedef struct cleat_profiler_setup {
    const cleat_profiler_schedule *schedule; /* copied */
    cleat_session *session;
    cleat_feed *feed;
    const cleat_rates *rates; /* copied; NULL: unknown */
    const char *folder;       /* of the run */
    int64_t before;           /* steps of the run before this process */
} cleat_profiler_setup;

cleat_status cleat_profiler_open(const cleat_profiler_setup *setup, cleat_profiler **profiler, cleat_error *error);
/* At the end of the steps, while the session is open: swaps the queues back if a cycle was under way, whose files are not
 * written, and logs what was not recorded. */
void cleat_profiler_stop(cleat_profiler *profiler);
/* After cleat_profiler_stop, and after the feed was closed: its threads log spans. */
void cleat_profiler_close(cleat_profiler *profiler);

/* Around each optimizer step: `bucket` and `micro_batches` are those of its global batch. At the end of a cycle, end_step
 * waits for the device and writes profile-S000008.trace.json.gz, .json, .txt and .csv, numbered by the first active step. A
 * driver that gives no times, and files that cannot be written, are logged as warnings, since the run itself can go on. */
cleat_status cleat_profiler_begin_step(cleat_profiler *profiler, size_t bucket, size_t micro_batches,
                                       cleat_error *error);
cleat_status cleat_profiler_end_step(cleat_profiler *profiler, cleat_error *error);

/* Whether the step under way must not be waited for individually: it is recorded, or compared with recorded ones. */
bool cleat_profiler_wants_flow(const cleat_profiler *profiler);
/* Whether all cycles are recorded, or the device turned out not to time its commands. */
bool cleat_profiler_is_done(const cleat_profiler *profiler);
/* Number of cycles whose files were written. */
int64_t cleat_profiler_written(const cleat_profiler *profiler);

/* Spans of the trainer: `start` = cleat_profiler_now before, end_span after. */
double cleat_profiler_now(const cleat_profiler *profiler);
void cleat_profiler_end_span(cleat_profiler *profiler, const char *name, double start);
/* As end_span, for work that is not part of a step (an evaluation, a checkpoint, the start of an epoch): its time is left
 * out of the steps. */
void cleat_profiler_end_interruption(cleat_profiler *profiler, const char *name, double start);

#endif
