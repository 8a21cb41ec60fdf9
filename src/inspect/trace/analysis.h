/* The analysis of a recording: every command with the work it did, and the sums of the table. */
#ifndef CLEAT_SRC_TRACE_ANALYSIS_H
#define CLEAT_SRC_TRACE_ANALYSIS_H

#include "core/string.h"
#include "graph/launch.h"
#include "graph/memory_profile.h"
#include "trace/recording.h"

/* Parts of a step. */
typedef enum cleat_step_part {
    CLEAT_PART_FORWARD,
    CLEAT_PART_BACKWARD,
    CLEAT_PART_RECOMPUTE,
    CLEAT_PART_UPDATE,
    CLEAT_PART_COPIES, /* on the compute queue: of inputs to their place, and to the host */
    CLEAT_PART_IDLE,
    CLEAT_PARTS,
} cleat_step_part;
const char *cleat_step_part_name(cleat_step_part part); /* "forward", ... */

/* A command of an active step. */
typedef struct cleat_trace_slice {
    const cleat_command *command;
    const cleat_launch *launch; /* NULL: a copy */
    cleat_step_part part;
    size_t step;        /* index in recording->steps */
    int64_t start, end; /* nanoseconds, see cleat_recording_device_time */
    /* The part of its node's work: the cost of a node is divided among its launches by their time. */
    double flops, bytes;
    double compute_roof, memory_roof; /* seconds for flops, and for bytes, at the measured rates; 0 without rates */
} cleat_trace_slice;

/* A row of the table; all sums are over the active steps. */
typedef struct cleat_profile_row {
    char name[CLEAT_NAME + 32];
    int64_t calls;
    double seconds, flops, bytes;
    double compute_roof, memory_roof, roof; /* roof: sum of the larger one of each call */
    double launch_seconds;                  /* of all calls, at the measured rate */
} cleat_profile_row;

typedef struct cleat_profile_rows {
    cleat_profile_row *rows; /* [count] */
    size_t count, capacity;
} cleat_profile_rows;

/* Seconds that would be saved if the kernel reached the roofline; 0 without rates. */
double cleat_profile_row_saves(const cleat_profile_row *row);
/* "compute", "memory", "launch" (the work takes less time than a launch); NULL: rates or work are unknown. */
const char *cleat_profile_row_bound(const cleat_profile_row *row);

/* A time in a step in which no command of the compute queue ran. */
typedef struct cleat_gap {
    int64_t start, end;            /* nanoseconds */
    const cleat_trace_slice *next; /* the command that ended it */
    const char *host; /* what the trainer did for the largest part of it, or that the command was in the queue */
} cleat_gap;

enum { CLEAT_GAPS = 5 };

/* Live bytes of the arena while a node runs. */
typedef struct cleat_memory_point {
    int64_t start; /* nanoseconds: begin of the node's first kernel */
    size_t step;   /* index in recording->steps */
    int64_t parts[CLEAT_PEAK_PARTS_COUNT];
} cleat_memory_point;

typedef struct cleat_analysis {
    const cleat_recording *recording;
    size_t active; /* number of active steps */
    int64_t first_step, last_step;
    cleat_trace_slice *slices; /* [n_slices] in the order in which they were enqueued */
    size_t n_slices;
    double seconds; /* of all active steps, by the device's timer */
    double parts[CLEAT_PARTS];
    int64_t begin;                           /* nanoseconds: begin of the first active step */
    cleat_profile_rows kernels, ops, layers; /* kernels: sorted by what they would save; others by seconds */
    cleat_gap gaps[CLEAT_GAPS];              /* the longest, in descending order */
    size_t n_gaps;
    size_t unknown; /* commands of active steps without times */
    /* Memory of the arena, of the bucket of the first active step. */
    cleat_memory_profile memory;
    int64_t evaluation_peak;    /* live bytes at most of the graph without a backward part */
    cleat_memory_point *points; /* [n_points] of all active steps */
    size_t n_points, points_capacity;
} cleat_analysis;

/* CLEAT_ERR_DEVICE: the driver reported no times at all. On success, release it with cleat_analysis_clear. */
cleat_status cleat_analysis_create(const cleat_recording *recording, cleat_analysis *analysis, cleat_error *error);
void cleat_analysis_clear(cleat_analysis *analysis);

/* memory_points.c: fills points, memory and evaluation_peak. */
cleat_status cleat_analysis_find_memory(cleat_analysis *analysis, cleat_error *error);
/* idle.c: fills parts[CLEAT_PART_IDLE], seconds, begin and gaps. */
void cleat_analysis_find_idle(cleat_analysis *analysis);

/* The layout of the graph in which a command ran. */
const cleat_layout *cleat_slice_layout(const cleat_analysis *analysis, const cleat_trace_slice *slice);
/* Whether the command ran on the compute queue. */
static inline bool cleat_slice_computes(const cleat_trace_slice *slice) {
    return slice->command->kind != CLEAT_COMMAND_UPLOAD;
}
/* Name of the kernel; "upload", "copy of inputs", "read", "write" for copies. */
const char *cleat_slice_name(const cleat_trace_slice *slice);

/* The tables: text for people, CSV and JSON for programs (table_text.c, table_files.c). Each appends one
 * document to `text`. Seconds, calls, FLOP and bytes are per step. */
void cleat_table_text(const cleat_analysis *analysis, cleat_string *text);
void cleat_table_csv(const cleat_analysis *analysis, cleat_string *text);
void cleat_table_json(const cleat_analysis *analysis, cleat_string *text);

static inline double cleat_per_step(const cleat_analysis *analysis, double sum) {
    return sum / (double)analysis->active;
}
/* The share of the active steps' time. */
static inline double cleat_share(const cleat_analysis *analysis, double seconds) {
    return analysis->seconds > 0 ? seconds / analysis->seconds : 0;
}

#endif
