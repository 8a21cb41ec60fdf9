/* The metrics of a run as CSV. */
#ifndef CLEAT_SRC_REPORT_CSV_H
#define CLEAT_SRC_REPORT_CSV_H

#include "cleat/history.h"

/* Writes the train and eval records: step, epoch, time (seconds since 1970, interpolated between the samples of
 * system.jsonl; empty where unknown), split ("train", "eval"), then a column for each metric; null is empty. */
cleat_status cleat_csv_write(const cleat_history *history, const char *path, cleat_error *error);

#endif
