/* The tracer of a training run: see run_tracer.h. */
#include "train/run_tracer.h"

#include "core/files.h"

#include <string.h>

cleat_status cleat_run_tracer_check(cleat_run_tracer *tracing, const cleat_profile *profile, cleat_error *error) {
    const char *text = profile->run.trace;
    tracing->is_wanted = strcmp(text, "none") != 0;
    if (!tracing->is_wanted) return CLEAT_OK;
    cleat_status status = cleat_tracer_schedule_parse(text, &tracing->schedule, error);
    return status ? cleat_fail_in(error, status, "run.trace") : CLEAT_OK;
}

bool cleat_run_tracer_makes_data(const cleat_run_tracer *tracing, const cleat_run *run, const cleat_profile *profile) {
    const char *path = profile->data->path;
    const bool exists = cleat_file_exists(path) || cleat_folder_exists(path);
    return !exists && run->options->trace_only && tracing->is_wanted;
}

cleat_status cleat_run_tracer_open_data(const cleat_run_tracer *tracing, const cleat_run *run, cleat_run_data *data,
                                        cleat_model *model, const cleat_profile *profile, const char *fitted,
                                        cleat_error *error) {
    if (!cleat_run_tracer_makes_data(tracing, run, profile))
        return cleat_run_data_open(data, model, profile, fitted, error);
    int64_t steps = cleat_tracer_schedule_last(&tracing->schedule, tracing->schedule.repeat - 1);
    return cleat_run_data_make(data, model, profile, (size_t)(steps * cleat_profile_effective_batch(profile)), error);
}

cleat_status cleat_run_tracer_open(cleat_run_tracer *tracing, const cleat_engine *engine, const cleat_run *run,
                                   int64_t before, cleat_error *error) {
    if (!tracing->is_wanted) return CLEAT_OK;
    if (engine->session->profile->run.check_finite)
        cleat_log(CLEAT_LOG_WARNING, "trace: the kernels of run.check_finite are not recorded, and their time "
                                     "counts as idle time; trace without it");
    const cleat_tracer_setup setup = {.schedule = &tracing->schedule,
                                      .session = engine->session,
                                      .feed = engine->feed,
                                      .rates = engine->has_rates ? &engine->rates : NULL,
                                      .folder = run->folder,
                                      .before = before};
    return cleat_tracer_open(&setup, &tracing->tracer, error);
}

cleat_status cleat_run_tracer_begin_step(cleat_run_tracer *tracing, const cleat_batches *batches,
                                         const cleat_global_batch *global_batch, cleat_error *error) {
    if (!tracing->tracer) return CLEAT_OK;
    size_t bucket = cleat_batches_get(batches, global_batch->first)->bucket;
    return cleat_tracer_begin_step(tracing->tracer, bucket, global_batch->micro_batches, error);
}

cleat_status cleat_run_tracer_end_step(cleat_run_tracer *tracing, const cleat_run *run, cleat_error *error) {
    cleat_status status = cleat_tracer_end_step(tracing->tracer, error);
    if (status || !cleat_run_tracer_ends_run(tracing, run)) return status;
    return cleat_fail(error, CLEAT_ERR_INTERRUPTED, "all steps of the schedule are recorded");
}

bool cleat_run_tracer_ends_run(const cleat_run_tracer *tracing, const cleat_run *run) {
    return run->options->trace_only && cleat_tracer_is_done(tracing->tracer);
}

void cleat_run_tracer_stop(cleat_run_tracer *tracing, cleat_run *run) {
    if (!tracing->tracer) return;
    run->report->traces += cleat_tracer_written(tracing->tracer);
    cleat_tracer_stop(tracing->tracer);
}

void cleat_run_tracer_close(cleat_run_tracer *tracing) {
    cleat_tracer_close(tracing->tracer);
    tracing->tracer = NULL;
}
