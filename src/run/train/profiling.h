/* The profiler of a training run: its schedule from run.profile, and the end of a run that only profiles. */
#ifndef CLEAT_SRC_PROFILING_H
#define CLEAT_SRC_PROFILING_H

#include "cleat/profiler.h"
#include "profiler/profiler.h"
#include "train/engine.h"
#include "train/run.h"

typedef struct cleat_profiling {
    bool is_wanted;
    cleat_profiler_schedule schedule;
    cleat_profiler *profiler; /* NULL: nothing is profiled; see profiler.h */
} cleat_profiling;

/* Parses run.profile: before the device is opened. */
cleat_status cleat_profiling_check(cleat_profiling *profiling, const cleat_profile *profile, cleat_error *error);
/* Whether the run takes synthetic samples, because it only profiles and data.path does not exist. */
bool cleat_profiling_makes_data(const cleat_profiling *profiling, const cleat_run *run, const cleat_profile *profile);
/* Opens the data of the run. A run that only profiles generates synthetic samples if data.path does not exist. */
cleat_status cleat_profiling_open_data(const cleat_profiling *profiling, const cleat_run *run, cleat_run_data *data,
                                       cleat_model *model, const cleat_profile *profile, const char *fitted,
                                       cleat_error *error);
/* Opens the profiler after the engine is bound; `before`: steps of the run before this process. */
cleat_status cleat_profiling_open(cleat_profiling *profiling, const cleat_engine *engine, const cleat_run *run,
                                  int64_t before, cleat_error *error);

/* Around each optimizer step. */
cleat_status cleat_profiling_begin_step(cleat_profiling *profiling, const cleat_batches *batches,
                                        const cleat_global_batch *global_batch, cleat_error *error);
/* CLEAT_ERR_INTERRUPTED after the last cycle of a run that only profiles; see cleat_profiling_ends_run. */
cleat_status cleat_profiling_end_step(cleat_profiling *profiling, const cleat_run *run, cleat_error *error);
/* Whether all cycles of a run that only profiles are recorded: its end is then no failure. */
bool cleat_profiling_ends_run(const cleat_profiling *profiling, const cleat_run *run);

/* Before and after the engine is closed. */
void cleat_profiling_stop(cleat_profiling *profiling, cleat_run *run);
void cleat_profiling_close(cleat_profiling *profiling);

#endif
