/* Check of the optimizer step, on values chosen by the host, against the formula in double precision. It
 * covers clipping, weight decay and the loss scale, which no reference trajectory contains. */
#ifndef CLEAT_SRC_VERIFY_UPDATE_H
#define CLEAT_SRC_VERIFY_UPDATE_H

#include "cleat/verify.h"
#include "verify/trajectory.h"

enum { CLEAT_UPDATE_ITEMS = 24 };

/* Runs the update graph of the trajectory's session with clipping, without clipping, and with a non-finite
 * gradient. Overwrites parameters, moments, loss scale and the profile's optimizer settings, so it must be
 * the last use of a trajectory. items [CLEAT_UPDATE_ITEMS] receive *count comparisons, with `place` unset. */
cleat_status cleat_verify_update(cleat_trajectory *run, cleat_verification *items, size_t *count, cleat_error *error);

#endif
