/* Parameter averaging over epochs, on the host: the parameters are read from the device once per epoch. */
#include "train/average.h"

#include "core/memory.h"

cleat_status cleat_average_open(cleat_average *average, const cleat_session *session, double decay,
                                cleat_error *error) {
    *average = (cleat_average){.decay = decay, .elements = cleat_session_values(session)};
    if (decay <= 0) return CLEAT_OK;
    average->mean = cleat_alloc((size_t)average->elements, sizeof *average->mean);
    average->trained = cleat_alloc((size_t)average->elements, sizeof *average->trained);
    if (average->mean && average->trained) return CLEAT_OK;
    cleat_average_close(average);
    return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory to average %lld parameters", (long long)average->elements);
}

void cleat_average_close(cleat_average *average) {
    cleat_free(average->mean);
    cleat_free(average->trained);
    *average = (cleat_average){0};
}

cleat_status cleat_average_add(cleat_average *average, cleat_session *session, cleat_error *error) {
    if (!cleat_average_is_on(average)) return CLEAT_OK;
    cleat_status status = cleat_session_read_values(session, average->trained, error);
    if (status) return status;
    double n = (double)average->epochs, early = (1 + n) / (10 + n);
    double keep = average->epochs == 0 ? 0 : average->decay < early ? average->decay : early;
    for (int64_t i = 0; i < average->elements; ++i)
        average->mean[i] = (float)(keep * average->mean[i] + (1 - keep) * average->trained[i]);
    ++average->epochs;
    return CLEAT_OK;
}

cleat_status cleat_average_apply(cleat_average *average, cleat_session *session, cleat_error *error) {
    if (!cleat_average_is_on(average) || average->epochs == 0) return CLEAT_OK;
    cleat_status status = cleat_session_read_values(session, average->trained, error);
    return status ? status : cleat_session_write_values(session, average->mean, error);
}

cleat_status cleat_average_restore(cleat_average *average, cleat_session *session, cleat_error *error) {
    if (!cleat_average_is_on(average) || average->epochs == 0) return CLEAT_OK;
    return cleat_session_write_values(session, average->trained, error);
}
