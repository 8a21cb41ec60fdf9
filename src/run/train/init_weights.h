/* Starting a new run from the weights of model.init. */
#ifndef CLEAT_SRC_INIT_WEIGHTS_H
#define CLEAT_SRC_INIT_WEIGHTS_H

#include "core/string.h"
#include "session/session.h"
#include "weights/weights.h"

/* Every line of the table that resolved.ini keeps begins with it. */
#define CLEAT_INIT_LINE "# model.init: "

/* Opens the weights that `path` names: published ones, or those of a run or checkpoint of cleat. */
cleat_status cleat_open_init(const char *path, cleat_weights **weights, cleat_error *error);
/* Loads the weights that the profile's model.init names into the session, draws the rest from `seed`, logs
 * what was taken, left and drawn, and appends it to `table` as lines of a comment. The output layer of a run
 * whose labels have other names than those of `dataset`, or another order, is drawn too. */
cleat_status cleat_load_init(cleat_session *session, const cleat_dataset *dataset, uint64_t seed, cleat_string *table,
                             cleat_error *error);

#endif
