/* The tracer of a training run: its schedule from run.trace, and the end of a run that only traces. */
#ifndef CLEAT_SRC_RUN_TRACER_H
#define CLEAT_SRC_RUN_TRACER_H

#include "cleat/tracer.h"
#include "trace/tracer.h"
#include "train/engine.h"
#include "train/run.h"

typedef struct cleat_run_tracer {
    bool is_wanted;
    cleat_tracer_schedule schedule;
    cleat_tracer *tracer; /* NULL: nothing is traced; see tracer.h */
} cleat_run_tracer;

/* Parses run.trace: before the device is opened. */
cleat_status cleat_run_tracer_check(cleat_run_tracer *tracing, const cleat_profile *profile, cleat_error *error);
/* Whether the run uses synthetic samples, because it only profiles and data.path does not exist. */
bool cleat_run_tracer_makes_data(const cleat_run_tracer *tracing, const cleat_run *run, const cleat_profile *profile);
/* Opens the data of the run. A run that only traces generates synthetic samples if data.path does not exist. */
cleat_status cleat_run_tracer_open_data(const cleat_run_tracer *tracing, const cleat_run *run, cleat_run_data *data,
                                        cleat_model *model, const cleat_profile *profile, const char *fitted,
                                        cleat_error *error);
/* Opens the tracer after the engine is bound; `before`: steps of the run before this process. */
cleat_status cleat_run_tracer_open(cleat_run_tracer *tracing, const cleat_engine *engine, const cleat_run *run,
                                   int64_t before, cleat_error *error);

/* Around each optimizer step. */
cleat_status cleat_run_tracer_begin_step(cleat_run_tracer *tracing, const cleat_batches *batches,
                                         const cleat_global_batch *global_batch, cleat_error *error);
/* CLEAT_ERR_INTERRUPTED after the last cycle of a run that only traces; see cleat_run_tracer_ends_run. */
cleat_status cleat_run_tracer_end_step(cleat_run_tracer *tracing, const cleat_run *run, cleat_error *error);
/* Whether all cycles of a run that only traces are recorded: its end is then not a failure. */
bool cleat_run_tracer_ends_run(const cleat_run_tracer *tracing, const cleat_run *run);

/* Before and after the engine is closed. */
void cleat_run_tracer_stop(cleat_run_tracer *tracing, cleat_run *run);
void cleat_run_tracer_close(cleat_run_tracer *tracing);

#endif
