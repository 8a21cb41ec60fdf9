/* Description of a session in checkpoints: the settings of the model, and its tensors by name. */
#ifndef CLEAT_SRC_MODEL_TENSORS_H
#define CLEAT_SRC_MODEL_TENSORS_H

#include "core/safetensors.h"
#include "session/session.h"

/* Settings that a checkpoint's parameters depend on: `settings` [CLEAT_SETTINGS], with their strings in
 * `texts`. */
enum { CLEAT_SETTINGS = 16 };
typedef struct cleat_settings {
    cleat_st_metadata items[CLEAT_SETTINGS];
    char keys[CLEAT_SETTINGS][64], texts[CLEAT_SETTINGS][64];
    size_t count;
} cleat_settings;
cleat_status cleat_model_settings(const cleat_profile *profile, cleat_settings *settings, cleat_error *error);

/* One of the moments as checkpoint tensors over `values`, a host copy of the flat buffer [cleat_session_trained]; or,
 * with `buffers`, the session's parameters, frozen ones included, and the store's buffers: `values` is then
 * [cleat_session_values]. The caller frees *tensors [*count] (cleat_free). */
cleat_status cleat_session_tensors(const cleat_session *session, float *values, bool buffers, cleat_st_tensor **tensors,
                                   size_t *count, cleat_error *error);

#endif
