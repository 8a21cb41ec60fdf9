/* How many loader threads a run should have: hill climbing on how often the device waited for a batch (a
 * dry hand-over, see cleat_loader_stats). The caller supplies the clock and makes the changes. The results
 * of a run do not depend on the number, so it may change between any two batches.
 *
 * Every 5 s of training: if more than 2 % of the hand-overs were dry, one thread is added (if more than
 * half were dry: half as many again). A raise is undone if training became slower, as happens if threads
 * and device share CPUs, or if it gained nothing. If no hand-over was dry for 60 s and the threads were
 * idle for more than half of this time, one thread is removed. After each reversal, the same direction is
 * blocked for a time that doubles with every reversal. */
#ifndef CLEAT_SRC_WORKER_TUNING_H
#define CLEAT_SRC_WORKER_TUNING_H

#include "cleat/core.h"

enum { CLEAT_WORKERS_TEXT = 192 };

/* The largest number of threads, and what limits it. */
typedef struct cleat_worker_bounds {
    int most;     /* at least 1 */
    char why[64]; /* "2 CPUs" */
} cleat_worker_bounds;

/* The memory of the batches that the threads prepare. */
typedef struct cleat_worker_memory {
    int64_t host_free;  /* bytes of host memory that are free without the slots; 0: unknown */
    int64_t slot_bytes; /* bytes of a slot */
    int prefetch;       /* slots of each thread */
    int held;           /* slots besides these */
    int most_slots;     /* maximum number of slots */
} cleat_worker_memory;

/* At most as many threads as CPUs; their slots take at most 1/8 of the free host memory. */
cleat_worker_bounds cleat_worker_bounds_find(int cpus, const cleat_worker_memory *memory);

/* Totals since the run began; none decreases. */
typedef struct cleat_worker_sample {
    double seconds;           /* of training: without evaluations and checkpoints */
    double fill_seconds;      /* the threads were filling, summed over threads */
    double work;              /* handed over: positions, padding included */
    uint64_t hand_overs, dry; /* see cleat_loader_stats */
} cleat_worker_sample;

typedef struct cleat_worker_tuning {
    int workers;
    cleat_worker_sample window; /* where the current window began */
    cleat_worker_sample calm;   /* where the time without a dry hand-over began */
    bool is_trial;              /* the last window began with a raise; before it: */
    int workers_before;
    double rate_before, dry_before;
    bool was_lowered;                /* the last change was a lowering */
    bool is_full;                    /* it was logged that the bounds forbid a raise */
    double raise_after, lower_after; /* seconds of training before which the direction is blocked */
    double back_off;                 /* seconds of the next such time */
} cleat_worker_tuning;

typedef struct cleat_worker_decision {
    int workers;                     /* the new number of threads */
    char reason[CLEAT_WORKERS_TEXT]; /* of a change, or why a change that is needed is impossible; "": neither */
} cleat_worker_decision;

void cleat_worker_tuning_start(cleat_worker_tuning *tuning, int workers);
/* Whether enough has happened for a decision. */
bool cleat_worker_tuning_is_due(const cleat_worker_tuning *tuning, const cleat_worker_sample *now);
/* Decides, and begins a new window. The caller makes the change. */
cleat_worker_decision cleat_worker_tuning_decide(cleat_worker_tuning *tuning, const cleat_worker_sample *now,
                                                 const cleat_worker_bounds *bounds);

#endif
