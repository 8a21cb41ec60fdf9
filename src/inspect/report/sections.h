/* Sections of the report. Each appends its HTML to `page`, and the data of its plots to `data`; a section for
 * which the runs have no files appends nothing. */
#ifndef CLEAT_SRC_REPORT_SECTIONS_H
#define CLEAT_SRC_REPORT_SECTIONS_H

#include "core/name_table.h"
#include "core/string.h"
#include "report/run.h"

/* verdict.c: the first screen of one run. */
void cleat_section_verdict(const cleat_report_run *run, cleat_string *page);
/* Chips: the outcome, what limits the speed, and whether a baseline without a model is at least as good. */
void cleat_add_outcome(const cleat_report_run *run, cleat_string *page);
void cleat_add_limit(const cleat_report_run *run, cleat_string *page);
void cleat_add_beaten(const cleat_report_run *run, cleat_string *page);
/* The headline, what ran and how it went, and what to run next. */
void cleat_add_verdict(const cleat_report_run *run, cleat_string *page);
/* Whole sentences with the figures. */
void cleat_trend_sentence(const cleat_report_run *run, cleat_string *page);

/* compare.c: the first screen of several runs: results side by side, settings that differ. */
void cleat_section_compare(const cleat_report_run *runs, size_t count, cleat_string *page);

/* curves.c: learning curves over steps, and figures of the system over time. */
void cleat_section_learning(const cleat_report_run *runs, size_t count, cleat_string *page, cleat_string *data);
void cleat_section_system_plots(const cleat_report_run *runs, size_t count, cleat_string *page, cleat_string *data);

/* speed.c: time of the device, forecasts and measurements, events; kernels.c; memory.c. */
void cleat_section_speed(const cleat_report_run *runs, size_t count, cleat_string *page, cleat_string *data);
void cleat_section_profile(const cleat_report_run *run, cleat_string *page);
void cleat_section_memory(const cleat_report_run *runs, size_t count, cleat_string *page, cleat_string *data);

/* examples.c, drawn.c, confusion.c: predictions beside the truth. */
void cleat_section_examples(const cleat_report_run *runs, size_t count, cleat_string *page);
void cleat_example_rna(const cJSON *example, cleat_string *page);
void cleat_example_series(const cJSON *example, bool is_small, cleat_string *page);
void cleat_confusion_table(const cJSON *confusion, cleat_string *page);
void cleat_score_table(const cJSON *examples, cleat_string *page);

/* drawing_files.c: writes an example that is a drawing to FOLDER/NAME.svg, with a name that is not in `taken`. */
cleat_status cleat_figure_write(const cJSON *example, const char *folder, cleat_name_table *taken, cleat_error *error);

/* csv.c: writes the train and eval records: step, epoch, time (seconds since 1970, interpolated between the
 * samples of system.jsonl; empty if unknown), split ("train", "eval"), then a column for each metric; null is
 * empty. */
cleat_status cleat_csv_write(const cleat_history *history, const char *path, cleat_error *error);
/* details.c: values of `auto`, settings, checkpoints, environment. */
void cleat_section_details(const cleat_report_run *run, cleat_string *page);

/* One segment of a bar, from label and value. */
typedef struct cleat_bar_part {
    const char *name, *shown; /* the value as text */
    double value;
    int colour;
} cleat_bar_part;
/* Appends a bar with its legend (stack.c); `whole`: value of its full width, 0: the sum. */
void cleat_stacked_bar(const cleat_bar_part *parts, size_t count, double whole, cleat_string *page);
/* Appends "<section id=..><h2>title</h2>". */
void cleat_section_begin(const char *id, const char *title, cleat_string *page);
/* A row of a table of two columns. */
void cleat_table_row(const char *name, const char *value, cleat_string *page);

#endif
