/* One model, one batch, steps on demand. */
#include "train/trajectory.h"

#include "graph/graph.h"

cleat_status cleat_trajectory_open(const char *device, const char *config, const cleat_reference *reference,
                                   cleat_trajectory *trajectory, cleat_error *error) {
    cleat_trajectory made = {0};
    cleat_bucket bucket = {.length = reference->length, .batch = reference->batch};
    cleat_status status = cleat_model_from_reference(config, &made.model, error);
    if (status == CLEAT_OK) status = cleat_profile_create(&made.profile, error);
    if (status == CLEAT_OK) status = cleat_device_open(device, &made.device, error);
    if (status == CLEAT_OK)
        status = cleat_session_create(made.device, made.profile, made.model, CLEAT_FOR_TRAINING, &bucket, 1, 0,
                                      &made.session, error);
    if (status == CLEAT_OK) status = cleat_session_initialise(made.session, 1, error);
    if (status == CLEAT_OK)
        status =
            cleat_staging_create(made.session->exec, cleat_session_input_bytes(made.session), true, &made.batch, error);
    if (status == CLEAT_OK)
        status = cleat_staging_create(made.session->exec,
                                      cleat_exec_input_bytes(made.session->exec, made.session->update.index), true,
                                      &made.update, error);
    if (status != CLEAT_OK) {
        cleat_trajectory_close(&made);
        return status;
    }
    const cleat_session_graph *train = &made.session->train[0];
    char *bytes = cleat_staging_data(made.batch);
    for (size_t i = 0; i < train->graph->tensor_count; ++i) {
        const cleat_tensor *tensor = train->graph->tensors[i];
        if (tensor->role != CLEAT_ROLE_INPUT) continue;
        int64_t offset = cleat_exec_input_offset(made.session->exec, train->index, tensor);
        cleat_model_reference_input(made.model, reference, tensor->name, bytes + offset);
    }
    *(float *)(void *)(bytes + train->seed_offset) = 1.0f;
    *trajectory = made;
    return CLEAT_OK;
}

void cleat_trajectory_close(cleat_trajectory *trajectory) {
    cleat_staging_destroy(trajectory->batch);
    cleat_staging_destroy(trajectory->update);
    cleat_session_destroy(trajectory->session);
    cleat_device_close(trajectory->device);
    cleat_profile_destroy(trajectory->profile);
    cleat_model_destroy(trajectory->model);
    *trajectory = (cleat_trajectory){0};
}

cleat_status cleat_trajectory_forward_backward(cleat_trajectory *trajectory, cleat_error *error) {
    cleat_session *session = trajectory->session;
    size_t index = session->train[0].index;
    cleat_status status = cleat_exec_upload(session->exec, index, trajectory->batch, error);
    return status == CLEAT_OK ? cleat_exec_run(session->exec, index, error) : status;
}

cleat_status cleat_trajectory_update(cleat_trajectory *trajectory, cleat_error *error) {
    cleat_session *session = trajectory->session;
    cleat_status status = cleat_staging_wait(trajectory->update, error);
    if (status != CLEAT_OK) return status;
    cleat_session_prepare_update(session, cleat_staging_data(trajectory->update),
                                 trajectory->profile->train.learning_rate, trajectory->step++);
    status = cleat_exec_upload(session->exec, session->update.index, trajectory->update, error);
    return status == CLEAT_OK ? cleat_exec_run(session->exec, session->update.index, error) : status;
}

cleat_status cleat_trajectory_loss(cleat_trajectory *trajectory, double *loss, cleat_error *error) {
    const cleat_session_graph *train = &trajectory->session->train[0];
    float value;
    cleat_status status = cleat_exec_read(trajectory->session->exec, train->index, train->built.loss, &value, error);
    if (status == CLEAT_OK) *loss = value;
    return status;
}
