/* The profiler of a training run: see profiling.h. */
#include "train/profiling.h"

#include "core/files.h"

#include <string.h>

cleat_status cleat_profiling_check(cleat_profiling *profiling, const cleat_profile *profile, cleat_error *error) {
    const char *text = profile->run.profile;
    profiling->is_wanted = strcmp(text, "none") != 0;
    if (!profiling->is_wanted) return CLEAT_OK;
    cleat_status status = cleat_profiler_schedule_parse(text, &profiling->schedule, error);
    return status ? cleat_fail_in(error, status, "run.profile") : CLEAT_OK;
}

bool cleat_profiling_makes_data(const cleat_profiling *profiling, const cleat_run *run, const cleat_profile *profile) {
    const char *path = profile->data->path;
    const bool exists = cleat_file_exists(path) || cleat_folder_exists(path);
    return !exists && run->options->profile_only && profiling->is_wanted;
}

cleat_status cleat_profiling_open_data(const cleat_profiling *profiling, const cleat_run *run, cleat_run_data *data,
                                       cleat_model *model, const cleat_profile *profile, const char *fitted,
                                       cleat_error *error) {
    if (!cleat_profiling_makes_data(profiling, run, profile))
        return cleat_run_data_open(data, model, profile, fitted, error);
    int64_t steps = cleat_profiler_schedule_last(&profiling->schedule, profiling->schedule.repeat - 1);
    return cleat_run_data_make(data, model, profile, (size_t)(steps * cleat_profile_effective_batch(profile)), error);
}

cleat_status cleat_profiling_open(cleat_profiling *profiling, const cleat_engine *engine, const cleat_run *run,
                                  int64_t before, cleat_error *error) {
    if (!profiling->is_wanted) return CLEAT_OK;
    if (engine->session->profile->run.check_finite)
        cleat_log(CLEAT_LOG_WARNING, "profiler: the kernels of run.check_finite are not recorded, and their time "
                                     "counts as idle time; profile without "
                                     "it");
    const cleat_profiler_setup setup = {.schedule = &profiling->schedule,
                                        .session = engine->session,
                                        .feed = engine->feed,
                                        .rates = engine->has_rates ? &engine->rates : NULL,
                                        .folder = run->folder,
                                        .before = before};
    return cleat_profiler_open(&setup, &profiling->profiler, error);
}

cleat_status cleat_profiling_begin_step(cleat_profiling *profiling, const cleat_batches *batches,
                                        const cleat_global_batch *global_batch, cleat_error *error) {
    if (!profiling->profiler) return CLEAT_OK;
    size_t bucket = cleat_batches_get(batches, global_batch->first)->bucket;
    return cleat_profiler_begin_step(profiling->profiler, bucket, global_batch->micro_batches, error);
}

cleat_status cleat_profiling_end_step(cleat_profiling *profiling, const cleat_run *run, cleat_error *error) {
    cleat_status status = cleat_profiler_end_step(profiling->profiler, error);
    if (status || !cleat_profiling_ends_run(profiling, run)) return status;
    return cleat_fail(error, CLEAT_ERR_INTERRUPTED, "all steps of the profile are recorded");
}

bool cleat_profiling_ends_run(const cleat_profiling *profiling, const cleat_run *run) {
    return run->options->profile_only && cleat_profiler_is_done(profiling->profiler);
}

void cleat_profiling_stop(cleat_profiling *profiling, cleat_run *run) {
    if (!profiling->profiler) return;
    run->report->profiles += cleat_profiler_written(profiling->profiler);
    cleat_profiler_stop(profiling->profiler);
}

void cleat_profiling_close(cleat_profiling *profiling) {
    cleat_profiler_close(profiling->profiler);
    profiling->profiler = NULL;
}
