/* The running average of the parameters over epochs (Polyak & Juditsky 1992): what is evaluated and saved as the model, while training goes
 * on from the parameters as they are. It smooths out what the last batches happened to be. Buffers (running statistics) are averaged as
 * parameters are: an averaged network is evaluated with the averaged statistics. */
#ifndef CLEAT_SRC_AVERAGE_H
#define CLEAT_SRC_AVERAGE_H

#include "session/session.h"

typedef struct cleat_average {
    double decay; /* 0: off */
    float *mean;  /* [cleat_session_values]; NULL when off */
    float
        *trained; /* [cleat_session_values] the parameters and buffers as they are, while the session holds the mean */
    int64_t elements;
    int64_t epochs; /* that went into the mean; 0: it is not defined yet */
} cleat_average;

cleat_status cleat_average_open(cleat_average *average, const cleat_session *session, double decay, cleat_error *error);
void cleat_average_close(cleat_average *average);
static inline bool cleat_average_is_on(const cleat_average *average) {
    return average->mean != NULL;
}

/* After an epoch: mean = d * mean + (1 - d) * parameters, d = min(decay, (1 + n) / (10 + n)) after n epochs, so that the first ones do not
 * weigh forever. Reads the parameters from the device. Nothing when off. */
cleat_status cleat_average_add(cleat_average *average, cleat_session *session, cleat_error *error);

/* Puts the mean into the session, and the trained parameters back. Nothing when off or not defined yet. */
cleat_status cleat_average_apply(cleat_average *average, cleat_session *session, cleat_error *error);
cleat_status cleat_average_restore(cleat_average *average, cleat_session *session, cleat_error *error);

#endif
