/* A trained model brought back: device, data, session, with a checkpoint's parameters and buffers. */
#ifndef CLEAT_SRC_LOAD_MODEL_H
#define CLEAT_SRC_LOAD_MODEL_H

#include "checkpoint/checkpoint.h"
#include "cleat/train.h"
#include "session/session.h"

typedef struct cleat_loaded_model {
    cleat_device *device;
    cleat_model *model;
    cleat_dataset *dataset;
    cleat_session *session;
} cleat_loaded_model;

/* `checkpoint`: a checkpoint folder, or a run folder, of which the best is taken. `data`: what to evaluate or
 * predict. */
cleat_status cleat_load_model(const cleat_profile *profile, const char *checkpoint, const char *data,
                              cleat_purpose purpose, cleat_loaded_model *loaded, cleat_error *error);
void cleat_loaded_model_close(cleat_loaded_model *loaded);

/* The settings a checkpoint's parameters depend on; `settings` [CLEAT_SETTINGS], texts in `texts`. */
enum { CLEAT_SETTINGS = 16 };
typedef struct cleat_settings {
    cleat_st_metadata items[CLEAT_SETTINGS];
    char keys[CLEAT_SETTINGS][64], texts[CLEAT_SETTINGS][64];
    size_t count;
} cleat_settings;
cleat_status cleat_model_settings(const cleat_profile *profile, cleat_settings *settings, cleat_error *error);

/* The session's parameters (or one of their moments) as checkpoint tensors over a host copy of the flat buffer; with `buffers` also
 * the store's buffers, over [cleat_session_values]. The caller frees *tensors [*count] (cleat_free). */
cleat_status cleat_session_tensors(const cleat_session *session, float *values, bool buffers, cleat_st_tensor **tensors,
                                   size_t *count, cleat_error *error);

#endif
