/* Hints about a run's profile or machine, derived from its figures: a sentence with the numbers, and a command. One
 * table; a pure function of the figures. */
#ifndef CLEAT_SRC_HINTS_H
#define CLEAT_SRC_HINTS_H

#include "cleat/core.h"

enum { CLEAT_HINT_TEXT = 384, CLEAT_HINT_COMMAND = 1536, CLEAT_HINTS_MAX = 32 };

/* Facts of a run before its first step. */
typedef struct cleat_hint_facts {
    const char *profile; /* its path, for commands; borrowed */
    const char *options; /* follow it in commands: words of a shell, each after a space; NULL: none; borrowed */
    const char *folder;  /* the run folder; borrowed */
    double min_seconds;  /* of measured steps before a hint is given; 0: 30 s */
    bool is_gpu;
    double launches;                           /* kernel launches of a mean step; NaN: unknown */
    double launch_seconds;                     /* overhead of one; NaN: unknown */
    int64_t micro_batch, global_batch, length; /* of the longest bucket */
    int64_t planned, usable;                   /* bytes */
    int64_t larger_micro_batch, larger_bytes;  /* a larger micro-batch that fits, and about what it needs; 0: none */
} cleat_hint_facts;

/* Means over the training steps so far; NaN: unknown. Shares are 0 to 1. */
typedef struct cleat_hint_stats {
    double seconds; /* of training steps measured so far */
    double step_seconds, roofline_share, dry_share, dry_loader;
    double workers;
    double busy_device, busy_own;
    double thermal, power_limit; /* share of samples in which the driver reported this limit */
    double quota_throttled;
    double gtt_before, gtt_now;   /* bytes of system memory that stand in for device memory: first and last samples */
    double step_before, step_now; /* seconds of a step at the same times */
} cleat_hint_stats;

typedef struct cleat_hint {
    const char *name; /* static */
    char text[CLEAT_HINT_TEXT], command[CLEAT_HINT_COMMAND];
} cleat_hint;

/* Number of rows of the table. */
size_t cleat_hint_count(void);

/* Fills `hint` if row `row` applies to the figures; false: it does not, or too little time was measured. */
bool cleat_hint_check(size_t row, const cleat_hint_facts *facts, const cleat_hint_stats *stats, cleat_hint *hint);

#endif
