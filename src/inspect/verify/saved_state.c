/* Saving, disturbing and restoring the state around a check. */
#include "verify/saved_state.h"

#include "core/memory.h"
#include "core/philox.h"
#include "exec/copy.h"
#include "exec/exec.h"
#include "graph/store.h"

#include <math.h>
#include <string.h>

/* Larger parameters are not changed; noise repeats after NOISE. */
enum { LARGE = 1 << 22, NOISE = 4099 };

static cleat_status save(cleat_session *session, const cleat_tensor *tensor, cleat_saved_state *saved,
                         cleat_error *error) {
    if (cleat_tensor_bytes(tensor) == 0) return CLEAT_OK;
    cleat_status status = cleat_grow(&saved->items, saved->count, &saved->capacity, error);
    if (status) return status;
    void *values = cleat_alloc((size_t)cleat_tensor_bytes(tensor), 1);
    if (!values) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a copy of '%s'", tensor->name);
    status = cleat_exec_read_unchecked(session->exec, 0, tensor, values, error);
    if (status)
        cleat_free(values);
    else
        saved->items[saved->count++] = (cleat_saved_tensor){.tensor = tensor, .values = values};
    return status;
}

/* Biases, gains, and matrices that are zero at the start: behind a head of zeros every gradient is zero,
 * whatever the kernels do. */
static bool is_uniform(const cleat_tensor *param) {
    const bool drawn = param->init.kind == CLEAT_INIT_UNIFORM || param->init.kind == CLEAT_INIT_NORMAL;
    return !param->half_only && (param->rank == 1 || !drawn) && cleat_tensor_elements(param) <= LARGE;
}

static cleat_status save_uniform_parameters(cleat_session *session, cleat_saved_state *saved, cleat_error *error) {
    const cleat_store *store = session->work->store;
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < store->count && !status; ++i) {
        const cleat_tensor *param = store->params[i];
        if (is_uniform(param)) status = save(session, param, saved, error);
    }
    return status;
}

cleat_status cleat_saved_state_take(cleat_session *session, bool update, cleat_saved_state *saved, cleat_error *error) {
    const cleat_plan *plan = session->exec->plan;
    cleat_status status = CLEAT_OK;
    for (int flat = 0; flat < CLEAT_FLATS && !status; ++flat)
        if (plan->flat[flat].slab >= 0 && (update || flat == CLEAT_FLAT_GRADIENTS))
            status = save(session, &plan->store->flat[flat], saved, error);
    for (size_t i = 0; i < plan->state_count && !status; ++i)
        status = save(session, plan->store->states[i], saved, error);
    return status || update ? status : save_uniform_parameters(session, saved, error);
}

void cleat_saved_state_free(cleat_saved_state *saved) {
    for (size_t i = 0; i < saved->count; ++i) cleat_free(saved->items[i].values);
    cleat_free(saved->items);
    *saved = (cleat_saved_state){0};
}

cleat_status cleat_saved_state_restore(cleat_session *session, const cleat_saved_state *saved, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < saved->count && !status; ++i)
        status = cleat_exec_write_unchecked(session->exec, 0, saved->items[i].tensor, saved->items[i].values, error);
    return status;
}

/* The changed value of element i. A head of zeros needs a larger change, for losses that only a large error
 * activates: bonds that are too long, atoms that overlap. Second moments are squares; every other gradient
 * keeps its value. */
static float other_value(const cleat_tensor *tensor, float value, float noise, int64_t i, bool infinite) {
    switch (tensor->role) {
    case CLEAT_ROLE_PARAMETER:
        return value + (tensor->rank > 1 ? 0.3f : 0.05f) * noise;
    case CLEAT_ROLE_GRADIENT:
        return infinite && i == 0 ? INFINITY : i % 2 ? value : value + 0.01f * noise;
    case CLEAT_ROLE_MOMENT1:
        return value + 0.01f * noise;
    case CLEAT_ROLE_MOMENT2:
        return value + 1e-4f * noise * noise;
    default:
        return value;
    }
}

static cleat_status disturb(cleat_session *session, const cleat_saved_tensor *item, const float noise[NOISE],
                            bool infinite, cleat_error *error) {
    const int64_t count = cleat_tensor_elements(item->tensor);
    const float *values = item->values;
    float *changed = cleat_alloc((size_t)count, sizeof *changed);
    if (!changed) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for other values of '%s'", item->tensor->name);
    for (int64_t i = 0; i < count; ++i)
        changed[i] = other_value(item->tensor, values[i], noise[i % NOISE], i, infinite);
    const cleat_status status = cleat_exec_write_unchecked(session->exec, 0, item->tensor, changed, error);
    cleat_free(changed);
    return status;
}

/* The update keeps the parameters, since not all of them are zero. */
cleat_status cleat_saved_state_disturb(cleat_session *session, bool update, bool infinite,
                                       const cleat_saved_state *saved, cleat_error *error) {
    float noise[NOISE];
    cleat_status status = CLEAT_OK;
    cleat_random random = cleat_random_stream(21, 0, 1);
    for (int i = 0; i < NOISE; ++i) noise[i] = (float)(2 * cleat_random_uniform(&random) - 1);
    for (size_t i = 0; i < saved->count && !status; ++i) {
        const cleat_role role = saved->items[i].tensor->role;
        const bool is_moment = role == CLEAT_ROLE_MOMENT1 || role == CLEAT_ROLE_MOMENT2;
        if (role == CLEAT_ROLE_GRADIENT || is_moment || (role == CLEAT_ROLE_PARAMETER && !update))
            status = disturb(session, &saved->items[i], noise, infinite, error);
    }
    return status;
}
