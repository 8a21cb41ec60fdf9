/* The TensorBoard file of a run, written while it trains (run.tensorboard). */
#ifndef CLEAT_SRC_TRAIN_RUN_BOARD_H
#define CLEAT_SRC_TRAIN_RUN_BOARD_H

#include "train/run.h"

/* Opens a file in the run folder, if run.tensorboard of the resolved profile is set. run->log must be
 * open. The file begins a session at `step`, the steps done so far: readers drop the steps that will be
 * repeated. Records of the folder's files for `step` itself, or for all steps if there is no earlier event
 * file, are written again. */
cleat_status cleat_run_board_open(cleat_run *run, const cleat_profile *resolved, int64_t step, cleat_error *error);
void cleat_run_board_close(cleat_run *run);

/* Adds a line of metrics.jsonl; does nothing without a file. */
void cleat_run_board_metrics(cleat_run *run, const char *line);
/* Adds a line of system.jsonl; does nothing without a file. `run`: the cleat_run. May be called from any thread, but
 * not during open and close. */
void cleat_run_board_system(void *run, const char *line);

#endif
