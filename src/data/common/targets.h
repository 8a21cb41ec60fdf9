/* Targets of samples that have no single class: several labels, or numbers, which a table gives in columns.
 *
 * Numbers: one in each column of data.label_column. Labels: 0 or 1 (true, false) in each column, which has the name of
 * the label; or one column, with a list of labels in each cell. The targets of empty cells of several columns are
 * unknown. */
#ifndef CLEAT_SRC_TARGETS_H
#define CLEAT_SRC_TARGETS_H

#include "core/name_list.h"
#include "core/name_table.h"
#include "data/common/csv.h"
#include "data/dataset.h"

enum { CLEAT_TARGETS_MOST = 4096 };
#define CLEAT_TARGETS_FILE "targets.json"

extern const char *const cleat_problem_names[], *const cleat_label_separator_names[]; /* in settings; end in NULL */

typedef struct cleat_target {
    char *name;       /* the label, or the column of numbers */
    int64_t samples;  /* of the training part: known numbers, or samples with the label */
    double mean, std; /* of numbers of the training part */
    double threshold; /* a label is predicted if its probability is at least this */
    int32_t number;   /* in the order in which labels were found */
} cleat_target;

typedef struct cleat_target_entry {
    int32_t target;
    float value; /* a number, 1, or NaN: it is unknown whether the sample has the label */
} cleat_target_entry;

typedef struct cleat_targets {
    cleat_target_options options;
    cleat_target *all; /* [count] */
    size_t count, capacity;
    cleat_name_table index;
    bool named, fitted; /* the names are given, and the rest of `all` */
    int *columns;       /* [n_columns] fields of the table that is read, in the order of `all` */
    size_t n_columns;
    bool is_list, was_split; /* one column with lists; a cell had several labels */
    /* Of sample s: entries starts[s] to starts[s + 1]; others are 0, or of numbers missing. */
    cleat_target_entry *entries;
    size_t *starts, rows, n_entries, entries_capacity, starts_capacity;
    uint32_t *slots; /* [samples] places in the metric state, UINT32_MAX: none; NULL: those of the samples */
} cleat_targets;

/* Appends the names in `text`, words or in double quotes. CLEAT_ERR_FORMAT, after `setting`: an empty name or an open
 * quote. */
cleat_status cleat_names_split(const char *text, const char *setting, cleat_name_list *names, cleat_error *error);

/* Starts with the labels of data.labels, or with the state in the folder `fitted`; both may be "". The caller frees
 * *targets in any case. */
cleat_status cleat_targets_open(const cleat_target_options *options, const char *labels, const char *fitted,
                                cleat_targets *targets, cleat_error *error);
void cleat_targets_free(cleat_targets *targets);
/* Finds the columns that data.label_column names in the header, the current record. */
cleat_status cleat_targets_find(cleat_targets *targets, const cleat_csv *csv, const char *label_column,
                                cleat_error *error);
/* Appends a sample with the targets of the current record. After an error there is none. */
cleat_status cleat_targets_add(cleat_targets *targets, const cleat_csv *csv, cleat_error *error);
/* After the last sample, all of which are samples of `dataset`: sorts labels that were found, and fits to the training
 * part unless that is done. `path` is for messages. */
cleat_status cleat_targets_fit(cleat_targets *targets, const cleat_dataset *dataset, const char *path,
                               cleat_error *error);
/* values [count] of a sample, NaN where unknown; returns the number of known ones. */
size_t cleat_targets_get(const cleat_targets *targets, size_t sample, float *values);
/* cleat_dataset_class.items: the number of known ones, since the loss is the mean over them. */
int64_t cleat_targets_items(const cleat_dataset *dataset, size_t sample);
/* A value of the network in the unit of the numbers is value * scale + shift. */
double cleat_targets_scale(const cleat_targets *targets, size_t target);
double cleat_targets_shift(const cleat_targets *targets, size_t target);
/* The field "target" [count, 1], and its values: standardised numbers, unknown ones 0. */
cleat_field cleat_targets_field(const cleat_targets *targets);
void cleat_targets_fill(const cleat_targets *targets, size_t sample, float *slot);
/* The file CLEAT_TARGETS_FILE of a folder. */
cleat_status cleat_targets_save(const cleat_targets *targets, const char *folder, cleat_error *error);
cleat_status cleat_targets_read(const char *folder, cleat_targets *targets, cleat_error *error);

#endif
