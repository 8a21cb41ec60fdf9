/* The optimizer step on figures of the host's choosing, against the formula in double precision: clipping, weight decay and the loss scale,
 * which no reference trajectory has. */
#ifndef CLEAT_SRC_VERIFY_UPDATE_H
#define CLEAT_SRC_VERIFY_UPDATE_H

#include "cleat/verify.h"
#include "verify/trajectory.h"

enum { CLEAT_UPDATE_ITEMS = 16 };

/* Runs the update graph of the trajectory's session: clipped, not clipped, and with a gradient that is not finite. Parameters, moments, loss scale
 * and the profile's optimizer settings are others afterwards: the last thing to do with a trajectory. items [CLEAT_UPDATE_ITEMS] receive
 * *count comparisons without their `place`. */
cleat_status cleat_verify_update(cleat_trajectory *run, cleat_verification *items, size_t *count, cleat_error *error);

#endif
