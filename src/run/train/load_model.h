/* A trained model: device, data, and a session with the parameters and buffers of a checkpoint. */
#ifndef CLEAT_SRC_LOAD_MODEL_H
#define CLEAT_SRC_LOAD_MODEL_H

#include "checkpoint/checkpoint.h"
#include "cleat/train.h"
#include "session/session.h"
#include "train/data_parallel.h"
#include "verify/program_check.h"

typedef struct cleat_loaded_model {
    cleat_device *device;
    cleat_model *model;
    cleat_dataset *dataset;
    cleat_session *session;
    cleat_program_check *check;
    bool dropout;   /* set before loading: cleat_model_options.dropout_in_prediction */
    bool next_only; /* and the others of predictions */
    const char *drawings;
    double flops;        /* set before loading: the device's speed for all ranks; 0: it is measured */
    int64_t step, epoch; /* of the checkpoint */
    char folder[CLEAT_CHECKPOINT_PATH];
    cleat_checkpoint_files files;
    cleat_data_parallel parallel; /* what the ranks divide the work by; without ranks if the process is alone */
} cleat_loaded_model;

/* `checkpoint`: a checkpoint folder, or a run folder, of which the best checkpoint is loaded; NULL: the weights of the
 * profile's model.init. `data`: the
 * data to evaluate or predict. `ranks` (NULL: alone) is borrowed; all ranks call it, and all of them get the
 * error of one, also CLEAT_ERR_ARGUMENT if they read other data or another checkpoint. */
cleat_status cleat_load_model(const cleat_profile *profile, const char *checkpoint, const char *data,
                              cleat_purpose purpose, cleat_ranks *ranks, cleat_loaded_model *loaded,
                              cleat_error *error);
/* Writes the parameters and buffers of a checkpoint of the session's model to the device. */
cleat_status cleat_load_values(cleat_session *session, const cleat_checkpoint *checkpoint, cleat_error *error);
/* The same of published weights; CLEAT_ERR_FORMAT: they lack tensors of the network. */
cleat_status cleat_load_published(cleat_session *session, const char *init, cleat_error *error);
/* The numbers from `first` on, *samples [count], which the caller frees (cleat_free). */
cleat_status cleat_list_samples(size_t first, size_t count, uint32_t **samples, cleat_error *error);
void cleat_loaded_model_close(cleat_loaded_model *loaded);

#endif
