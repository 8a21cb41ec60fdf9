/* What a checkpoint says about a session. */
#include "train/model_tensors.h"

#include "core/memory.h"
#include "graph/store.h"

#include <string.h>

cleat_status cleat_model_settings(const cleat_profile *profile, cleat_settings *settings, cleat_error *error) {
    size_t i = 0;
    for (; i < CLEAT_SETTINGS && cleat_profile_shaping_key(profile, i, settings->keys[i], sizeof settings->keys[i]);
         ++i) {
        cleat_status status =
            cleat_profile_get(profile, settings->keys[i], settings->texts[i], sizeof settings->texts[i], error);
        if (status != CLEAT_OK) return status;
        settings->items[i] = (cleat_st_metadata){.key = settings->keys[i], .value = settings->texts[i]};
    }
    settings->count = i;
    return CLEAT_OK;
}

static cleat_st_tensor tensor_over(const cleat_tensor *tensor, float *values) {
    cleat_st_tensor made = {.name = tensor->name, .dtype = CLEAT_ST_F32, .rank = tensor->rank, .data = values};
    memcpy(made.shape, tensor->shape, (size_t)tensor->rank * sizeof tensor->shape[0]);
    return made;
}

cleat_status cleat_session_tensors(const cleat_session *session, float *values, bool buffers, cleat_st_tensor **tensors,
                                   size_t *count, cleat_error *error) {
    const cleat_store *store = session->work->store;
    size_t params = cleat_store_count(store), all = params + (buffers ? store->buffer_count : 0);
    cleat_st_tensor *made = cleat_alloc(all, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu tensors", all);
    for (size_t i = 0; i < params; ++i) {
        const cleat_tensor *param = cleat_store_param(store, i);
        made[i] = tensor_over(param, values + param->flat_offset);
    }
    for (size_t i = params; i < all; ++i) {
        const cleat_tensor *buffer = cleat_store_buffer(store, i - params);
        made[i] = tensor_over(buffer, values + cleat_session_flat(session) + buffer->flat_offset);
    }
    *tensors = made;
    *count = all;
    return CLEAT_OK;
}
