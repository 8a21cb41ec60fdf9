/* Parts of `cleat sweep` and `cleat runs`. */
#ifndef CLEAT_TOOLS_SWEEP_H
#define CLEAT_TOOLS_SWEEP_H

#include "launch.h"

#include <cleat/runs.h>
#include <cleat/sweep.h>

/* cmd_runs.c: prints a row for each run, in the order of the list, with the settings that differ. */
cleat_status runs_print(const cleat_run_list *list, cleat_error *error);
/* "1.2345"; "-" if it is not finite. */
const char *runs_number(double value, char text[CLI_SHORT]);

typedef struct sweep_run {
    const cleat_sweep_point *point;
    char folder[CLEAT_PATH];
    pid_t process;           /* that trains it; 0: none */
    bool is_over;            /* in this round it is trained, or need not be */
    bool is_failed, is_late; /* late: out of run.time_budget */
    int64_t halved;          /* epoch after which halving stopped it; 0: it did not */
} sweep_run;

typedef struct sweep {
    char out[CLEAT_PATH];
    const char *metric;  /* run.metric */
    launch_words train;  /* command line of all runs: "cleat", "train", profile, settings */
    launch_ranks *ranks; /* each trains one run at a time; NULL: one run at a time, on the profile's device */
    sweep_run *runs;     /* [count] */
    size_t count;
} sweep;

/* sweep_train.c: trains the runs with is_in [count] up to the epoch `until`, or to their end (0), unless they have come
 * so far, and prints a line for each. Returns whether the user has stopped the sweep; the runs are then saved. */
bool sweep_train(sweep *s, const bool *is_in, int64_t until);

#endif
