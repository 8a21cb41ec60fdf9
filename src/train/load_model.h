/* A trained model: device, data, and a session with the parameters and buffers of a checkpoint. */
#ifndef CLEAT_SRC_LOAD_MODEL_H
#define CLEAT_SRC_LOAD_MODEL_H

#include "cleat/train.h"
#include "session/session.h"

typedef struct cleat_loaded_model {
    cleat_device *device;
    cleat_model *model;
    cleat_dataset *dataset;
    cleat_session *session;
    int64_t step, epoch; /* of the checkpoint */
} cleat_loaded_model;

/* `checkpoint`: a checkpoint folder, or a run folder, of which the best checkpoint is loaded. `data`: the
 * data to evaluate or predict. */
cleat_status cleat_load_model(const cleat_profile *profile, const char *checkpoint, const char *data,
                              cleat_purpose purpose, cleat_loaded_model *loaded, cleat_error *error);
void cleat_loaded_model_close(cleat_loaded_model *loaded);

#endif
