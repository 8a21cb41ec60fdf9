/* Many runs: what is known about each run folder below a folder, for a table. Reading changes nothing, and the runs
 * may be in progress. Threads: a list belongs to one thread at a time. */
#ifndef CLEAT_RUNS_H
#define CLEAT_RUNS_H

#include "cleat/history.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cleat_run_state {
    CLEAT_RUN_FINISHED, /* also by early stopping */
    CLEAT_RUN_RUNNING,
    CLEAT_RUN_STOPPED, /* interrupted, killed or out of time: --resume continues */
    CLEAT_RUN_FAILED,
} cleat_run_state;

typedef struct cleat_run_summary {
    char *folder;
    const char *name; /* of a list: the path relative to the folder that was searched, "." for itself; else `folder` */
    char model[64];   /* model.type; "": unknown */
    cleat_run_state state;
    char note[64];                 /* of the caller: shown in place of the state; "": none */
    double epochs, epochs_planned; /* whole epochs done, and those of the schedule; NaN: unknown */
    char metric[64];
    bool ascends;                    /* larger values are better */
    double best, best_epoch;         /* of the metric in the evaluations; NaN: none is finite */
    double seconds;                  /* of all processes of the run; NaN: unknown */
    cleat_history_setting *settings; /* of resolved.ini [n_settings] */
    size_t n_settings;
} cleat_run_summary;

typedef struct cleat_run_list {
    cleat_run_summary *items; /* [count] */
    size_t count, capacity;
    size_t others;     /* folders in which, and below which, there is no run */
    size_t damaged;    /* run folders that could not be read */
    char failure[512]; /* message of the first of these */
    char other[512];   /* the first of `others` */
} cleat_run_list;

/* Reads one run folder. `metric`: a metric of evaluations; NULL: run.metric of the run. Whether it ascends is looked up
 * in the metrics of the model's family. `until`: only evaluations up to this epoch count; 0: all. Errors as
 * cleat_history_read. The caller frees *summary with cleat_run_summary_free. */
CLEAT_API cleat_status cleat_run_summary_read(const char *folder, const char *metric, int64_t until,
                                              cleat_run_summary *summary, cleat_error *error);
CLEAT_API void cleat_run_summary_free(cleat_run_summary *summary);

/* Reads the runs in and below `folder`, by name; symbolic links are not followed. CLEAT_ERR_NOT_FOUND: there is no such
 * folder. The caller frees *list with cleat_run_list_free. */
CLEAT_API cleat_status cleat_run_list_read(const char *folder, const char *metric, cleat_run_list *list,
                                           cleat_error *error);
CLEAT_API void cleat_run_list_free(cleat_run_list *list);

/* Sorts the list by "name"; by "time", the shortest first; otherwise by the metric, the best first. Runs without a
 * value are the last, equal ones are in the order of their names. */
CLEAT_API void cleat_run_list_sort(cleat_run_list *list, const char *order);

/* The value of a setting in resolved.ini; NULL: not there. */
CLEAT_API const char *cleat_run_setting(const cleat_run_summary *summary, const char *section, const char *key);
/* The i-th setting whose values differ among the runs that have it, other than run.out and model.type; NULL past the
 * last one. */
CLEAT_API const cleat_history_setting *cleat_run_list_difference(const cleat_run_list *list, size_t i);

#ifdef __cplusplus
}
#endif
#endif
