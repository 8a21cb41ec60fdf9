/* The check of the programs that a run uses, on its own batch: before a graph first trains, its nodes run one by one,
 * and sampled elements of what they write are compared with the ops' definitions in double precision (cleat_op.define).
 * It compiles nothing, and covers the very shapes, variants and options of the run. Programs that were checked in this
 * process or, according to a record, in an earlier one on this device are not checked again. */
#ifndef CLEAT_SRC_SAMPLED_H
#define CLEAT_SRC_SAMPLED_H

#include "cleat/profile.h"
#include "session/session.h"

typedef struct cleat_sampled cleat_sampled;

/* Whether every op that a training of this profile uses on the device has a definition. Builds the graphs without data;
 * false also where they cannot be built so. `missing` [CLEAT_NAME] (may be NULL): the first op without. */
bool cleat_sampled_is_possible(const cleat_device *device, const cleat_profile *profile, char *missing);

/* Whether training of this model type in this storage type has passed on the device (in this or an earlier process). */
bool cleat_sampled_has_passed(const cleat_device *device, const char *model, cleat_dtype storage);

/* For the graphs of a session, which is borrowed. `again`: records of earlier processes do not count. */
cleat_status cleat_sampled_create(cleat_session *session, bool again, cleat_sampled **sampled, cleat_error *error);
void cleat_sampled_destroy(cleat_sampled *sampled); /* NULL is allowed */

/* Whether something in the graph (an index into the plan's graphs) has not been checked. */
bool cleat_sampled_is_due(const cleat_sampled *sampled, size_t graph);

/* Runs the graph on the inputs that were uploaded. For the time of the check, biases, gradients and moments get other
 * values, so that a wrong sign is seen where they are still zero. Afterwards everything that outlives a run of a graph
 * is as it was before, bit for bit; the inputs have to be uploaded again. CLEAT_ERR_DEVICE: a result is wrong, and so is
 * a reference training, which then decides. Without memory for the copies, the rest is left unchecked, with a line in the
 * log. */
cleat_status cleat_sampled_check(cleat_sampled *sampled, size_t graph, cleat_error *error);

#endif
