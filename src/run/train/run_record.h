/* The start record of a run in system.jsonl: the model, the machine, the plan, and the figures that will
 * be recorded. */
#ifndef CLEAT_SRC_RUN_RECORD_H
#define CLEAT_SRC_RUN_RECORD_H

#include "train/run_monitor.h"

/* Expected time and launches of a mean step of the schedule; NaN: unknown. */
typedef struct cleat_step_forecast {
    double seconds; /* cleat_estimate_graph over the steps of an epoch */
    double launches;
} cleat_step_forecast;

cleat_status cleat_run_forecast(const cleat_run_monitor *monitor, const cleat_run_parts *parts,
                                cleat_step_forecast *forecast, cleat_error *error);

/* Appends the record to an empty text, without a newline. */
void cleat_run_start_record(const cleat_run_monitor *monitor, const cleat_run_parts *parts,
                            const cleat_step_forecast *forecast, cleat_string *text);
/* Appends the member "schedule" to an object. */
void cleat_run_record_schedule(const cleat_schedule *schedule, cleat_string *text);

#endif
