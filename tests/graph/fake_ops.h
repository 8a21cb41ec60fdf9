/* Operations that compute nothing: shapes, in-place outputs, workspaces and gradient nodes for the graph
 * tests. */
#ifndef CLEAT_TESTS_FAKE_OPS_H
#define CLEAT_TESTS_FAKE_OPS_H

#include "core/philox.h"
#include "graph/graph.h"

/* n inputs of any kind -> up to CLEAT_MAX_OUT outputs f32 [rows, columns], with a workspace. */
extern const cleat_op fake_op;
extern const cleat_op fake_op_in_place;      /* out[0] may share the memory of in[0] */
extern const cleat_op fake_op_in_place_both; /* out[0] may share the memory of in[0] or in[1] */
extern const cleat_op fake_op_refused;       /* two variants, both refuse */
cleat_node *fake_emit(cleat_graph *graph, const cleat_op *op, cleat_tensor *const *in, int n_in, int n_out,
                      int64_t rows, int64_t columns, int64_t workspace);
/* Returns the first output of an op with one input; its shape is that of x, which must be [rows, columns]. */
cleat_tensor *fake_unary(cleat_graph *graph, const cleat_op *op, cleat_tensor *x);
/* Changes a persistent tensor in place. */
void fake_update(cleat_graph *graph, cleat_tensor *const *in, int n_in, cleat_tensor *persistent);
/* A reshape to one row. */
cleat_tensor *fake_view(cleat_graph *graph, cleat_tensor *x);

/* A pre-norm transformer encoder with the memory behaviour of the real one: tokens i32 [rows] -> loss f32
 * [1]; with `train`, also its backward part. Each block is a segment (graph/recompute.h). */
typedef struct fake_transformer {
    int layers;
    int64_t rows, width, hidden, heads;
    bool train;
} fake_transformer;
cleat_tensor *fake_transformer_build(cleat_graph *graph, const fake_transformer *shape);

/* Adds about `nodes` (at most 380) nodes to an empty graph: one or two results each, mostly consumed soon;
 * reshapes, workspaces, in-place results, retained tensors, and a state that changes. */
void fake_random_build(cleat_graph *graph, cleat_random *random, int nodes);

#endif
