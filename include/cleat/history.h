/* Reads the folder of a run: its logs, settings and checkpoints.
 *
 * Every file may be missing, cut off by a kill, or of an older version: unreadable files are treated as
 * absent, and incomplete records are counted. Reading opens no device and changes nothing in the folder; the
 * run may be in progress. Threads: a history belongs to one thread at a time. */
#ifndef CLEAT_HISTORY_H
#define CLEAT_HISTORY_H

#include "cleat/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Values of one name in the records of one kind. */
typedef struct cleat_history_column {
    char *name;
    double *values; /* [rows of the table]; NaN: null in the file, or absent in this record */
} cleat_history_column;

/* All records of one kind ("train", "eval", ... of metrics.jsonl, "sample" of system.jsonl). The numbers of
 * a record, also those of an object in it ("values"), are its columns: "step", "epoch", "loss", ... */
typedef struct cleat_history_table {
    char kind[32];
    size_t rows, columns;
    cleat_history_column *items; /* [columns], in order of first appearance */
} cleat_history_table;

/* JSON objects, one text each, in the order of the file. */
typedef struct cleat_history_records {
    char **items;
    size_t count, capacity;
} cleat_history_records;

typedef struct cleat_history_setting {
    char *section, *key, *value;
} cleat_history_setting;

typedef struct cleat_history_checkpoint {
    char name[64];
    int64_t epoch, step;
    bool is_best, is_last; /* named by the run's file "best" or "last" */
    /* From state.json; hash empty, numbers NaN where it cannot be read. */
    char model_hash[33];
    double model_bytes, best_metric, best_step, time_used;
} cleat_history_checkpoint;

/* State of the run, according to its last process. */
typedef enum cleat_history_phase {
    CLEAT_HISTORY_UNKNOWN, /* no records: run.monitor = none, or an older version */
    CLEAT_HISTORY_RUNNING,
    CLEAT_HISTORY_ENDED,
    CLEAT_HISTORY_KILLED, /* no end record, and no process holds the lock of the folder */
} cleat_history_phase;

typedef struct cleat_history {
    char *folder;
    char *name; /* last part of the folder's path */
    cleat_history_table *tables;
    size_t n_tables;
    cleat_history_records starts, events, ends; /* of system.jsonl */
    cleat_history_setting *settings;            /* resolved.ini */
    size_t n_settings;
    cleat_history_checkpoint *checkpoints; /* by step */
    size_t n_checkpoints;
    char *examples, *profile; /* JSON text of examples.json and of the newest profile-S*.json; NULL: none */
    int64_t damaged_lines;    /* complete log lines that are not records */
    bool is_running;          /* a process holds the lock of the folder */
    cleat_history_phase phase;
    /* Start record of the last process, with the schedule as its time budget shortened it; NULL: none. */
    char *last_start;
    const char *last_end; /* end record of that process; NULL: none */
} cleat_history;

/* Reads the folder. CLEAT_ERR_NOT_FOUND: it does not exist, or contains no file of a run. The caller frees
 * *history with cleat_history_free. */
CLEAT_API cleat_status cleat_history_read(const char *folder, cleat_history **history, cleat_error *error);
CLEAT_API void cleat_history_free(cleat_history *history);

/* The records of a kind; NULL: none. In tables of metrics.jsonl, steps ascend: if a resumed run repeats
 * steps, the later records replace the earlier ones. */
CLEAT_API const cleat_history_table *cleat_history_find(const cleat_history *history, const char *kind);
/* The values [rows] of a column; NULL: the table (may be NULL) has no such column. */
CLEAT_API const double *cleat_history_values(const cleat_history_table *table, const char *name);
/* The text of a setting in resolved.ini, e.g. "train", "epochs"; NULL: not set. */
CLEAT_API const char *cleat_history_setting_of(const cleat_history *history, const char *section, const char *key);

#ifdef __cplusplus
}
#endif
#endif
