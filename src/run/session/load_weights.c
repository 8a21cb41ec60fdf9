/* Starting from the weights of a file. */
#include "exec/copy.h"
#include "profile/adopt.h"
#include "session/session.h"

typedef struct destination {
    cleat_exec *exec;
    uint64_t seed;
} destination;

static cleat_status write(void *user, cleat_tensor *tensor, int64_t first, int64_t count, const float *values,
                          cleat_error *error) {
    const destination *to = user;
    return cleat_exec_write_part(to->exec, 0, tensor, first, count, values, error);
}

static cleat_status write_stored(void *user, cleat_tensor *tensor, int64_t first, int64_t count, cleat_gguf_type type,
                                 const void *stored, cleat_error *error) {
    const destination *to = user;
    return cleat_exec_write_stored(to->exec, tensor, first, count, type, stored, error);
}

static cleat_status draw(void *user, cleat_tensor *tensor, cleat_error *error) {
    const destination *to = user;
    return cleat_exec_initialise_one(to->exec, tensor, to->seed, error);
}

cleat_status cleat_session_load_weights(cleat_session *session, const cleat_weights *weights, uint64_t seed,
                                        const char *other_labels, cleat_weight_report *report, cleat_error *error) {
    destination to = {.exec = session->exec, .seed = seed};
    cleat_weight_target target = {.store = session->work->store,
                                  .other_labels = other_labels,
                                  .write = write,
                                  .write_stored = write_stored,
                                  .draw = draw,
                                  .user = &to};
    cleat_status status = cleat_profile_find_parameters(session->profile, session->model, weights, &target, error);
    return status ? status : cleat_weights_load(weights, &target, report, error);
}
