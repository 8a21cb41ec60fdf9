/* The device state that outlives a run of a graph: saved before a check, restored after it. */
#ifndef CLEAT_SRC_SAVED_STATE_H
#define CLEAT_SRC_SAVED_STATE_H

#include "session/session.h"

typedef struct cleat_saved_tensor {
    const cleat_tensor *tensor;
    void *values;
} cleat_saved_tensor;

/* Host copies. Zero at the start; free it also after an error. */
typedef struct cleat_saved_state {
    cleat_saved_tensor *items;
    size_t count, capacity;
} cleat_saved_state;

/* Saves what the graph may change. A training graph: gradients, states, and the parameters that are equal
 * numbers at the start (biases, gains, heads of zeros), which cleat_saved_state_disturb changes. The update:
 * all flat buffers and the states. */
cleat_status cleat_saved_state_take(cleat_session *session, bool update, cleat_saved_state *saved, cleat_error *error);
/* Writes other values: these parameters are moved a little, every second gradient is no longer zero (`infinite`: the
 * first is infinite), and the update finds moments. */
cleat_status cleat_saved_state_disturb(cleat_session *session, bool update, bool infinite,
                                       const cleat_saved_state *saved, cleat_error *error);
cleat_status cleat_saved_state_restore(cleat_session *session, const cleat_saved_state *saved, cleat_error *error);
void cleat_saved_state_free(cleat_saved_state *saved);

#endif
