/* Description of a session in checkpoints: the settings of the model, and its tensors by name. */
#ifndef CLEAT_SRC_MODEL_TENSORS_H
#define CLEAT_SRC_MODEL_TENSORS_H

#include "checkpoint/checkpoint.h"
#include "core/safetensors.h"
#include "session/session.h"

/* Settings that a checkpoint's parameters depend on: `items` [count], with their strings in `keys` and
 * `texts`. Those that checkpoints store are `stored` [n_stored]: a key that is newer than checkpoints is
 * stored unless it has its default, so files are the same as those of earlier versions. */
enum { CLEAT_SETTINGS = 48, CLEAT_SETTING_TEXT = 160 };
typedef struct cleat_settings {
    cleat_model_setting items[CLEAT_SETTINGS];
    cleat_st_metadata stored[CLEAT_SETTINGS];
    char keys[CLEAT_SETTINGS][64], texts[CLEAT_SETTINGS][CLEAT_SETTING_TEXT];
    size_t count, n_stored;
} cleat_settings;
cleat_status cleat_model_settings(const cleat_profile *profile, cleat_settings *settings, cleat_error *error);

/* One of the moments as checkpoint tensors over `values`, a host copy of the flat buffer
 * [cleat_session_trained]; or, with `buffers`, the session's parameters, frozen ones included, and the
 * store's buffers: `values` is then [cleat_session_values]. NULL: the tensors have no data. The caller frees
 * *tensors [*count] (cleat_free). */
cleat_status cleat_session_tensors(const cleat_session *session, float *values, bool buffers, cleat_st_tensor **tensors,
                                   size_t *count, cleat_error *error);

#endif
