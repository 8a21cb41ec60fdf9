/* A run in the report: facts from its history, and conclusions. */
#ifndef CLEAT_SRC_REPORT_RUN_H
#define CLEAT_SRC_REPORT_RUN_H

#include "cleat/history.h"

#include <cjson/cJSON.h>

typedef enum cleat_report_outcome {
    CLEAT_REPORT_FINISHED,
    CLEAT_REPORT_RUNNING,
    CLEAT_REPORT_INTERRUPTED, /* by the user, or by its time budget */
    CLEAT_REPORT_KILLED,      /* no end was recorded */
    CLEAT_REPORT_DIVERGED,    /* stopped on a value that is not finite */
    CLEAT_REPORT_FAILED,
    CLEAT_REPORT_UNKNOWN, /* an older version recorded no end */
} cleat_report_outcome;

typedef enum cleat_report_trend {
    CLEAT_REPORT_TREND_UNKNOWN, /* too few evaluations */
    CLEAT_REPORT_TREND_IMPROVING,
    CLEAT_REPORT_TREND_LEVEL,
    CLEAT_REPORT_TREND_DECAYED, /* level, but so is any run whose learning rate ends near 0 */
    CLEAT_REPORT_TREND_OVERFIT,
    CLEAT_REPORT_TREND_WORSE, /* the training loss rose again as well */
} cleat_report_trend;

typedef enum cleat_report_limit {
    CLEAT_REPORT_LIMIT_UNKNOWN, /* no figures of the system */
    CLEAT_REPORT_LIMIT_SHORT,   /* the run was too short to judge */
    CLEAT_REPORT_LIMIT_NONE,    /* the device had work, and used its speed */
    CLEAT_REPORT_LIMIT_LOADER,
    CLEAT_REPORT_LIMIT_LAUNCH, /* many short kernels */
    CLEAT_REPORT_LIMIT_EVALUATE,
    CLEAT_REPORT_LIMIT_CHECKPOINT,
    CLEAT_REPORT_LIMIT_OTHER, /* the device was idle for other reasons */
    CLEAT_REPORT_LIMIT_SLOW,  /* the device had work, but is far from its speed */
    /* The same, with a cause that the run logged as a hint. */
    CLEAT_REPORT_LIMIT_SPILLING,
    CLEAT_REPORT_LIMIT_QUOTA,
    CLEAT_REPORT_LIMIT_SHARED,
    CLEAT_REPORT_LIMIT_HEAT,
    CLEAT_REPORT_LIMIT_POWER,
} cleat_report_limit;
enum { CLEAT_REPORT_LIMITS = CLEAT_REPORT_LIMIT_POWER + 1 };

/* A hint that the run logged, or that the report derived from its figures. */
typedef struct cleat_report_hint {
    const char *name, *text, *command;
    double step; /* until which its figures were measured; NaN: unknown */
} cleat_report_hint;

enum { CLEAT_REPORT_HINTS = 16, CLEAT_REPORT_TEXT = 2048 };

typedef struct cleat_report_run {
    const cleat_history *history;
    const cleat_history_table *train, *eval, *samples; /* NULL: none */
    cJSON *start, *end, *examples, *profile;           /* NULL: none; `start` is the last one */
    cJSON **events;
    size_t n_events;

    char metric[64]; /* the metric that selects checkpoints; "" if unknown */
    bool ascends;
    double best, best_step, best_epoch, last; /* of that metric in the evaluations; NaN: none */
    double baseline;                          /* what a prediction without a model reaches; NaN: unknown */
    char baseline_text[256];
    const char
        *anchor;      /* data.anchor of the better of the last values and those one season before; NULL: not a series */
    bool is_beaten;   /* the best evaluation is not better than the baseline, or only by chance */
    bool is_chance;   /* it is better by less than the standard error of an accuracy */
    const char *only; /* the class that all predictions are; NULL: several, or unknown */

    cleat_report_outcome outcome;
    const char *end_text;                    /* "" if there is none */
    double step, epoch, total_steps, epochs; /* NaN: unknown */
    double seconds;                          /* all processes of the run together */
    double *elapsed;                         /* [samples->rows] seconds since the start, without pauses */
    size_t n_sessions;                       /* processes that ran it: 1 + resumes */

    cleat_report_trend trend;
    double trend_epoch; /* since when it overfits or gets worse */
    cleat_report_limit limit;
    double dry, dry_loader, dry_evaluate, dry_checkpoint, dry_read, dry_other; /* means; NaN: unknown */
    double roofline, samples_per_second, step_seconds;
    double foreign; /* share of the time in which the device worked for other processes; 0: or unknown */
    double cost[CLEAT_REPORT_LIMITS];            /* share of the time that each limit took */
    cleat_report_hint hints[CLEAT_REPORT_HINTS]; /* strongest first */
    size_t n_hints;
    char next_command[CLEAT_REPORT_TEXT]; /* the command to run next; "" if there is nothing to do */
    char next_text[CLEAT_REPORT_TEXT];    /* why */
    char profile_path[CLEAT_REPORT_TEXT]; /* for commands */
    char profile_options[512];            /* other options of the run; "" or " --set ..." */
} cleat_report_run;

/* Collects the facts; the history must outlive the run. Free it with cleat_report_run_free in any case. */
cleat_status cleat_report_run_open(const cleat_history *history, cleat_report_run *run, cleat_error *error);
void cleat_report_run_free(cleat_report_run *run);

/* Mean of a column of the samples without the first tenth; NaN: unknown. */
double cleat_report_mean(const cleat_report_run *run, const char *name);
/* Last finite value of a column of the samples; NaN: none. */
double cleat_report_last(const cleat_report_run *run, const char *name);
/* Number of the last start record: run->start, "plan", "bytes" by ("plan", "bytes"). NaN: unknown. */
double cleat_report_start_number(const cleat_report_run *run, const char *group, const char *name);
const char *cleat_report_start_text(const cleat_report_run *run, const char *group, const char *name);
/* A setting of resolved.ini as a number; NaN: none. */
double cleat_report_setting(const cleat_report_run *run, const char *section, const char *key);

/* The device is the CPU: its memory is that of the host, and every process of the host uses it. */
bool cleat_report_is_on_cpu(const cleat_report_run *run);

/* Parts of cleat_report_run_open (trend.c, limit.c). */
void cleat_report_detect_trend(cleat_report_run *run);
void cleat_report_detect_limit(cleat_report_run *run);
void cleat_report_choose_next(cleat_report_run *run);

#endif
