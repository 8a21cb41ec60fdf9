/* Opening and closing the engine: the parts around a session. */
#include "train/engine.h"

#include "session/rates.h"

#include <string.h>

static cleat_status open_update_stagings(cleat_engine *engine, cleat_error *error) {
    cleat_session *session = engine->session;
    int64_t bytes = cleat_exec_input_bytes(session->exec, session->work->update.index);
    for (int i = 0; i < CLEAT_UPDATE_STAGINGS; ++i) {
        cleat_status status = cleat_staging_create(session->exec, bytes, true, &engine->updates[i], error);
        if (status) return status;
    }
    return CLEAT_OK;
}

/* A device that cannot be measured is not an error. */
static cleat_status measure(cleat_engine *engine, cleat_device *device, cleat_error *error) {
    cleat_error why = {0};
    cleat_status status = cleat_rates_measure(device, &engine->rates, &why);
    engine->has_rates = !status;
    if (status == CLEAT_ERR_MEMORY) return cleat_fail(error, status, "%s", why.text);
    if (status)
        cleat_log(CLEAT_LOG_WARNING,
                  "the speed of the device could not be measured, so nothing is compared with it: %s", why.text);
    return CLEAT_OK;
}

static bool has_tracer(const cleat_profile *profile) {
    return strcmp(profile->run.trace, "none") != 0;
}

cleat_status cleat_engine_measures_later(const cleat_engine *engine, const cleat_profile *profile, bool *later,
                                         cleat_error *error) {
    char path[1024];
    cleat_error why = {0};
    cleat_rates known;
    *later = false;
    if (profile->run.monitor <= 0 || has_tracer(profile)) return CLEAT_OK;
    if (cleat_device_get_facts(engine->device)->kind != CLEAT_DEVICE_CPU) return CLEAT_OK;
    cleat_status status = cleat_rates_path(engine->device, path, sizeof path, &why);
    if (status == CLEAT_ERR_MEMORY) return cleat_fail(error, status, "%s", why.text);
    *later = !status && !cleat_rates_read(path, &known);
    return CLEAT_OK;
}

cleat_status cleat_engine_measure(cleat_engine *engine, const cleat_profile *profile, cleat_error *error) {
    if (profile->run.monitor <= 0 && !has_tracer(profile)) return CLEAT_OK;
    return measure(engine, engine->device, error);
}

cleat_status cleat_engine_measure_apart(cleat_engine *engine, const cleat_profile *profile, cleat_error *error) {
    cleat_device *apart;
    cleat_status status = cleat_device_open(profile->run.device, &apart, error);
    if (status) return status;
    status = measure(engine, apart, error);
    cleat_device_close(apart);
    return status;
}

cleat_status cleat_engine_bind(cleat_engine *engine, const cleat_dataset *dataset, double average_decay,
                               cleat_error *error) {
    cleat_status status = cleat_feed_open(engine->session, dataset, &engine->feed, error);
    if (!status) status = open_update_stagings(engine, error);
    if (!status) status = cleat_average_open(&engine->average, engine->session, average_decay, error);
    return status;
}

void cleat_engine_close(cleat_engine *engine) {
    cleat_average_close(&engine->average);
    cleat_feed_close(engine->feed);
    for (int i = 0; i < CLEAT_UPDATE_STAGINGS; ++i) cleat_staging_destroy(engine->updates[i]);
    cleat_session_destroy(engine->session);
    cleat_device_close(engine->device);
    cleat_model_destroy(engine->model);
    *engine = (cleat_engine){0};
}

cleat_status cleat_engine_start_at(cleat_engine *engine, const cleat_run_data *data, int64_t position,
                                   cleat_error *error) {
    cleat_global_batch next = {.first = cleat_batches_count(data->pass)};
    cleat_batches_global_batch(data->pass, (size_t)position, &next);
    return cleat_feed_start(engine->feed, data->pass, next.first, &data->rng_key, error);
}
