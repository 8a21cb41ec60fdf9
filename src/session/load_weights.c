/* Starting from the weights of a file. */
#include "exec/copy.h"
#include "models/model.h"
#include "profile/adopt.h"
#include "session/session.h"

typedef struct destination {
    cleat_exec *exec;
    uint64_t seed;
} destination;

static cleat_status write(void *user, cleat_tensor *tensor, const float *values, cleat_error *error) {
    const destination *to = user;
    return cleat_exec_write_unchecked(to->exec, 0, tensor, values, error);
}

static cleat_status draw(void *user, cleat_tensor *tensor, cleat_error *error) {
    const destination *to = user;
    return cleat_exec_initialise_one(to->exec, tensor, to->seed, error);
}

cleat_status cleat_session_load_weights(cleat_session *session, const cleat_weights *weights, uint64_t seed,
                                        cleat_weight_report *report, cleat_error *error) {
    destination to = {.exec = session->exec, .seed = seed};
    const cleat_architecture *architecture = NULL;
    const cleat_model_origin *origin = NULL;
    cleat_status status = CLEAT_OK;
    if (cleat_weights_are_own(weights))
        origin = cleat_model_origin_of(session->model->type, cleat_weights_metadata(weights, "model.type"));
    else
        status = cleat_profile_architecture(session->profile, weights, &architecture, error);
    if (status) return status;
    const cleat_weight_target target = {.architecture = architecture,
                                        .shared = origin ? origin->shared : NULL,
                                        .model = session->model,
                                        .store = session->work->store,
                                        .prefix = "",
                                        .write = write,
                                        .draw = draw,
                                        .user = &to};
    return cleat_weights_load(weights, &target, report, error);
}
