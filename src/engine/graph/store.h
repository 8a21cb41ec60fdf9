/* How graphs add parameters, half weights, states and buffers to the store. The store owns all tensors
 * returned here. */
#ifndef CLEAT_SRC_STORE_H
#define CLEAT_SRC_STORE_H

#include "graph/graph.h"

/* The elements of a flat buffer that a parameter of `elements` elements takes: every parameter starts at a
 * multiple of 64 elements, so that vector loads and planned offsets are aligned. */
static inline int64_t cleat_store_aligned(int64_t elements) {
    return (elements + 63) / 64 * 64;
}

/* Declares a new parameter; the caller has checked that no parameter has this name. */
cleat_status cleat_store_add(cleat_store *store, const char *name, int rank, const int64_t *shape, cleat_init init,
                             cleat_tensor **param, cleat_error *error);
/* Sets the function that chooses the rule of each parameter; NULL: all are trained alike. Call it before the first
 * parameter is declared. `user` is borrowed as long as parameters are declared. A store with rules must be arranged
 * before it is planned. */
void cleat_store_set_rules(cleat_store *store, cleat_param_rule_fn choose, void *user);

/* Lays out the parameters of a store with rules, once all graphs that read them are built: the trained ones first,
 * those of one rule side by side, then the frozen ones. A frozen parameter has no f32 bytes if all nodes read
 * its half weight; one that no node reads in half precision has no half weight. One of which nodes read nothing but
 * the block weight, and whose rows are whole blocks, is stored in blocks only. Later parameters are refused.
 * CLEAT_ERR_ARGUMENT: all parameters are frozen, but not for generation. Does nothing without rules. */
cleat_status cleat_store_arrange(cleat_store *store, cleat_error *error);

/* Elements of all parameters that are not frozen, without gaps. */
int64_t cleat_store_trained(const cleat_store *store);

/* The groups of trained parameters [*count], borrowed; *count is 0 for a store that is not arranged. */
const cleat_param_group *cleat_store_groups(const cleat_store *store, size_t *count);

/* `elements` elements of a flat buffer from `first` on, as a tensor of the store; the whole buffer if these
 * are all of it. Borrowed. CLEAT_ERR_MEMORY. */
cleat_status cleat_store_view(cleat_store *store, cleat_flat_buffer flat, int64_t first, int64_t elements,
                              cleat_tensor **view, cleat_error *error);

/* Finds or declares the half weight of a parameter. All half weights of a store have one type, f16 or
 * bf16. */
cleat_status cleat_store_half_weight(cleat_store *store, const cleat_tensor *param, cleat_dtype dtype,
                                     cleat_tensor **copy, cleat_error *error);
/* Finds or declares the block weight of a frozen matrix whose rule has blocks; until cleat_store_arrange it has the
 * storage type `dtype` of the graph that reads it. */
cleat_status cleat_store_block_weight(cleat_store *store, const cleat_tensor *param, cleat_dtype dtype,
                                      cleat_tensor **weight, cleat_error *error);
/* The parameter's weight in blocks, which is all that the device has of it; NULL: it has none. Borrowed. */
const cleat_tensor *cleat_store_blocks_of(const cleat_store *store, const cleat_tensor *param);
/* Fills `values` [elements of param] with the parameter's starting values: Philox keyed by (seed, name). */
void cleat_param_initialise(const cleat_tensor *param, uint64_t seed, float *values);

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
