/* How graphs add to the store. */
#ifndef CLEAT_SRC_STORE_H
#define CLEAT_SRC_STORE_H

#include "graph/graph.h"

/* Declares a parameter that is not there yet. */
cleat_status cleat_store_add(cleat_store *store, const char *name, int rank, const int64_t *shape, cleat_init init,
                             cleat_tensor **param, cleat_error *error);
/* The working copy of a parameter, declared where there is none yet; all copies of a store have one type, f16 or bf16. */
cleat_status cleat_store_half_weight(cleat_store *store, const cleat_tensor *param, cleat_dtype dtype,
                                     cleat_tensor **copy, cleat_error *error);
/* Finds or declares a state; another shape or type under the same name is an error. */
cleat_status cleat_store_state(cleat_store *store, const char *name, cleat_dtype dtype, int rank, const int64_t *shape,
                               cleat_tensor **state, cleat_error *error);
/* Finds or declares a buffer, whose halves start at initial[0] and initial[1]; another shape or start under the same name is an
 * error, and so is the name of a parameter or of a state that is no buffer. */
cleat_status cleat_store_add_buffer(cleat_store *store, const char *name, int rank, const int64_t *shape,
                                    const float initial[2], cleat_tensor **buffer, cleat_error *error);

/* The i-th buffer in the order of declaration; NULL behind the last. Borrowed. */
cleat_tensor *cleat_store_buffer(const cleat_store *store, size_t i);
/* Fills `values` [elements of buffer] with what the buffer starts from. */
void cleat_buffer_initialise(const cleat_tensor *buffer, float *values);

#endif
