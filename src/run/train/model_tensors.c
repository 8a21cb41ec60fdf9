/* Description of a session in checkpoints: settings and named tensors. */
#include "train/model_tensors.h"

#include "core/memory.h"
#include "graph/store.h"
#include "profile/schema.h"

#include <stdio.h>
#include <string.h>

cleat_status cleat_model_settings(const cleat_profile *profile, cleat_settings *settings, cleat_error *error) {
    char name[sizeof settings->keys[0]];
    settings->count = settings->n_stored = 0;
    for (size_t i = 0; cleat_profile_shaping_key(profile, i, name, sizeof name); ++i) {
        if (i == CLEAT_SETTINGS)
            return cleat_fail(error, CLEAT_ERR_NOT_SUPPORTED, "more than %d settings shape the model", CLEAT_SETTINGS);
        char *key = settings->keys[i], *text = settings->texts[i];
        memcpy(key, name, sizeof name);
        cleat_status status = cleat_profile_get(profile, key, text, CLEAT_SETTING_TEXT, error);
        if (status) return status;
        const char *before = cleat_profile_later_default(profile, key);
        settings->items[settings->count++] = (cleat_model_setting){key, text, before};
        if (!before || strcmp(before, text) != 0)
            settings->stored[settings->n_stored++] = (cleat_st_metadata){.key = key, .value = text};
    }
    return CLEAT_OK;
}

static cleat_st_tensor tensor_over(const cleat_tensor *tensor, float *values) {
    cleat_st_tensor made = {.name = tensor->name, .dtype = CLEAT_ST_F32, .rank = tensor->rank, .data = values};
    memcpy(made.shape, tensor->shape, (size_t)tensor->rank * sizeof tensor->shape[0]);
    return made;
}

/* PREFIX_mean [C] followed by PREFIX_var [C] is stored as PREFIX [2, C]. The file format predates the
 * separate tensors, so older checkpoints load here, and older versions load new ones. */
static bool is_pair(const cleat_tensor *mean, const cleat_tensor *var, size_t *prefix) {
    const size_t length = strlen(mean->name), tail = sizeof "_mean" - 1;
    if (length < tail || strcmp(mean->name + length - tail, "_mean") != 0) return false;
    if (mean->rank != 1 || !cleat_same_shape(mean, var)) return false;
    *prefix = length - tail;
    return strncmp(mean->name, var->name, *prefix) == 0 && strcmp(var->name + *prefix, "_var") == 0 &&
           var->flat_offset == mean->flat_offset + mean->shape[0];
}

cleat_status cleat_session_tensors(const cleat_session *session, float *values, bool buffers, cleat_st_tensor **tensors,
                                   size_t *count, cleat_error *error) {
    const cleat_store *store = session->work->store;
    const cleat_tensor *buffer, *next;
    size_t most = cleat_store_count(store) + store->buffer_count, made = 0, prefix;
    /* names of pairs follow the tensors in the same allocation */
    cleat_st_tensor *all = cleat_alloc(most, sizeof *all + CLEAT_NAME);
    if (!all) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu tensors", most);
    char(*names)[CLEAT_NAME] = (char(*)[CLEAT_NAME])(all + most);
    for (size_t i = 0; i < cleat_store_count(store); ++i) {
        const cleat_tensor *param = cleat_store_param(store, i), *blocks = cleat_store_blocks_of(store, param);
        if (!buffers && param->rule.frozen) continue;
        all[made] = tensor_over(param, values && !blocks ? values + param->flat_offset : NULL);
        all[made++].blocks = blocks ? blocks->dtype : CLEAT_F32;
    }
    for (size_t i = 0; buffers && (buffer = cleat_store_buffer(store, i)); ++i, ++made) {
        const int64_t at = cleat_session_flat(session) + buffer->flat_offset;
        all[made] = tensor_over(buffer, values ? values + at : NULL);
        next = cleat_store_buffer(store, i + 1);
        if (!next || !is_pair(buffer, next, &prefix)) continue;
        snprintf(names[made], CLEAT_NAME, "%.*s", (int)prefix, buffer->name);
        all[made].name = names[made];
        all[made].rank = 2;
        all[made].shape[0] = 2;
        all[made].shape[1] = buffer->shape[0];
        ++i;
    }
    *tensors = all;
    *count = made;
    return CLEAT_OK;
}
