/* How graphs add parameters, half weights, states and buffers to the store. The store owns all tensors
 * returned here. */
#ifndef CLEAT_SRC_STORE_H
#define CLEAT_SRC_STORE_H

#include "graph/graph.h"

/* Declares a new parameter; the caller has checked that no parameter has this name. */
cleat_status cleat_store_add(cleat_store *store, const char *name, int rank, const int64_t *shape, cleat_init init,
                             cleat_tensor **param, cleat_error *error);
/* Finds or declares the half weight of a parameter. All half weights of a store have one type, f16 or
 * bf16. */
cleat_status cleat_store_half_weight(cleat_store *store, const cleat_tensor *param, cleat_dtype dtype,
                                     cleat_tensor **copy, cleat_error *error);
/* The moments of the i-th parameter (which = 0, 1); NULL after the last. Borrowed. */
cleat_tensor *cleat_store_moment(const cleat_store *store, size_t i, int which);
/* Fills `values` [elements of param] with the parameter's starting values: Philox keyed by (seed, name). */
void cleat_param_initialise(const cleat_store *store, const cleat_tensor *param, uint64_t seed, float *values);

/* Finds or declares a state that is initialised to `initial` (0 unless it is f32). The same name with another
 * shape, type or initial value is an error. */
cleat_status cleat_store_state(cleat_store *store, const char *name, cleat_dtype dtype, int rank, const int64_t *shape,
                               float initial, cleat_tensor **state, cleat_error *error);
/* Finds or declares a buffer that is initialised to `initial`. The same name with another shape or another
 * initial value is an error, as is the name of a parameter or of a state that is not a buffer. */
cleat_status cleat_store_add_buffer(cleat_store *store, const char *name, int rank, const int64_t *shape, float initial,
                                    cleat_tensor **buffer, cleat_error *error);

/* Whether the tensor is one of the store's, or a whole flat buffer of it. */
bool cleat_store_owns(const cleat_store *store, const cleat_tensor *tensor);
/* The i-th buffer in order of declaration; NULL after the last. Borrowed. */
cleat_tensor *cleat_store_buffer(const cleat_store *store, size_t i);
/* Writes the buffer's initial values to `values` [elements of buffer]. */
void cleat_buffer_initialise(const cleat_tensor *buffer, float *values);

#endif
