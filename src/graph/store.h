/* How graphs add to the store. */
#ifndef CLEAT_SRC_STORE_H
#define CLEAT_SRC_STORE_H

#include "graph/graph.h"

/* Declares a parameter that is not there yet. */
cleat_status cleat_store_add(cleat_store *store, const char *name, int rank, const int64_t *shape, cleat_init init,
                             cleat_tensor **param, cleat_error *error);
/* Finds or declares a state; another shape or type under the same name is an error. */
cleat_status cleat_store_state(cleat_store *store, const char *name, cleat_dtype dtype, int rank, const int64_t *shape,
                               cleat_tensor **state, cleat_error *error);

#endif
