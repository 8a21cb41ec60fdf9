/* A recording: the data of the steps of one cycle, before they are analysed. */
#ifndef CLEAT_SRC_TRACE_RECORDING_H
#define CLEAT_SRC_TRACE_RECORDING_H

#include "core/span_log.h"
#include "device/recorder.h"
#include "session/session.h"

/* One optimizer step. */
typedef struct cleat_traced_step {
    int64_t step; /* number in the run, counted from 1 */
    size_t bucket;
    size_t first_command, last_command; /* commands [first, last) of the recorder */
    double begin, end;                  /* host: seconds of cleat_seconds */
    /* Other work of the trainer (an evaluation, a checkpoint, a new epoch) came between the step before and
     * this one. */
    bool interrupted;
    bool active; /* false: a warm-up step */
} cleat_traced_step;

/* Borrows everything. */
typedef struct cleat_recording {
    const cleat_session *session;
    const cleat_rates *rates; /* NULL: unknown */
    const cleat_recorder *recorder;
    const cleat_traced_step *steps; /* [n_steps] warm-up and active steps of the cycle, in order */
    size_t n_steps;
    const cleat_span *spans; /* [n_spans] of the host */
    size_t n_spans, lost_spans;
    cleat_clock_pair clocks[2]; /* at the begin and at the end of the cycle */
    uint64_t resolution;        /* of the device's timer, nanoseconds */
    double unprofiled_seconds;  /* of a step like the active ones without recording; NaN: unknown */
} cleat_recording;

/* Nanoseconds from clocks[0] on the scale of the device's timer. */
int64_t cleat_recording_device_time(const cleat_recording *recording, uint64_t device);
int64_t cleat_recording_host_time(const cleat_recording *recording, double host);

enum { CLEAT_TRACER_FOLDER = 1280 };
/* Analyses the recording and writes FOLDER/profile-SNNNNNN.txt, .csv, .json and .trace.json.gz, each
 * atomically; logs the path and what the trace lacks (files.c). */
cleat_status cleat_profile_files_write(const cleat_recording *recording, const char *folder, cleat_error *error);

#endif
