/* The check of the programs that a run uses, on its own batch: before a graph first runs, its nodes run one
 * by one, and sampled elements of what they write are compared with the ops' definitions in double precision
 * (cleat_op.define). It compiles nothing, and covers the very shapes, variants and options of the run.
 * Programs that were checked in this process or, according to a record, in an earlier one on this device are
 * not checked again. */
#ifndef CLEAT_SRC_PROGRAM_CHECK_H
#define CLEAT_SRC_PROGRAM_CHECK_H

#include "cleat/profile.h"
#include "session/feed.h"

typedef struct cleat_program_check cleat_program_check;

/* Whether training of this model type in this storage type has passed on the device (in this or an earlier process). */
bool cleat_program_check_has_passed(const cleat_device *device, const char *model, cleat_dtype storage);

/* Checks the passes and the update of a session, which is borrowed, by its profile's run.self_check. *check
 * is NULL if that is `never`; every function accepts it and does nothing. */
cleat_status cleat_program_check_create(cleat_session *session, cleat_program_check **check, cleat_error *error);
void cleat_program_check_destroy(cleat_program_check *check);

/* Whether the graph (an index into the plan's graphs) has to be checked, or checked again: the update is,
 * with an infinite gradient, which must change no parameter. */
bool cleat_program_check_is_due(const cleat_program_check *check, size_t graph);

/* Runs the graph on the inputs that were uploaded. For the time of the check, biases, gradients and moments
 * get other values, so that a wrong sign shows even where they are still zero. Afterwards everything that
 * outlives a run of a graph is as it was before, bit for bit; the inputs have to be uploaded again. The
 * update's check covers the half copies of parameters too. CLEAT_ERR_DEVICE: a result is wrong. Operations
 * without a definition, and those that the host has no memory to copy, are left unchecked; the log names
 * them. */
cleat_status cleat_program_check_run(cleat_program_check *check, size_t graph, cleat_error *error);

/* Uploads the batch and runs the graph if it is due. */
cleat_status cleat_program_check_batch(cleat_program_check *check, cleat_feed *feed, const cleat_work_graph *graph,
                                       const cleat_fed_batch *fed, cleat_error *error);

#endif
