/* Running average of the parameters over epochs (Polyak & Juditsky 1992). The mean is evaluated and saved
 * as the model, while training continues from the parameters themselves: it smooths out the noise of the
 * last batches. Buffers (running statistics) are averaged like parameters, because an averaged network is
 * evaluated with the averaged statistics. */
#ifndef CLEAT_SRC_AVERAGE_H
#define CLEAT_SRC_AVERAGE_H

#include "session/session.h"

typedef struct cleat_average {
    double decay; /* 0: off */
    float *mean;  /* [cleat_session_values]; NULL when off */
    /* [cleat_session_values] parameters and buffers of training, saved while the session holds the mean */
    float *trained;
    int64_t elements;
    int64_t epochs; /* epochs in the mean; 0: the mean is not defined yet */
} cleat_average;

cleat_status cleat_average_open(cleat_average *average, const cleat_session *session, double decay, cleat_error *error);
void cleat_average_close(cleat_average *average);
static inline bool cleat_average_is_on(const cleat_average *average) {
    return average->mean != NULL;
}

/* Call after each epoch: mean = d * mean + (1 - d) * parameters, d = min(decay, (1 + n) / (10 + n)) after
 * n epochs, so that the influence of the first epochs fades. Reads the parameters from the device. Does
 * nothing when averaging is off. */
cleat_status cleat_average_add(cleat_average *average, cleat_session *session, cleat_error *error);

/* cleat_average_apply writes the mean into the session, cleat_average_restore the trained parameters. Both
 * do nothing when averaging is off or the mean is not defined yet. */
cleat_status cleat_average_apply(cleat_average *average, cleat_session *session, cleat_error *error);
cleat_status cleat_average_restore(cleat_average *average, cleat_session *session, cleat_error *error);

#endif
