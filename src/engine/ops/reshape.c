/* Reshape: an alias of the same bytes with another shape; launches nothing and allocates nothing. */
#include "cleat/ops.h"
#include "ops/lib/shared.h"

#include <string.h>

typedef struct reshape_attr {
    int64_t rank;
    int64_t shape[CLEAT_MAX_RANK];
} reshape_attr;

_Static_assert(sizeof(reshape_attr) <= CLEAT_ATTR_BYTES, "a shape must fit a node's attributes");

static cleat_status infer(cleat_node *node, cleat_error *error) {
    const reshape_attr *attr = (const reshape_attr *)node->attr;
    cleat_tensor *x = node->in[0];
    int64_t elements = 1;
    for (int i = 0; i < attr->rank; ++i) elements *= attr->shape[i];
    if (elements != cleat_tensor_elements(x))
        return cleat_infer_fail(node, error, "%s does not have the %lld elements of its new shape", CLEAT_DESCRIBED(x),
                                (long long)elements);
    cleat_status status = cleat_set_output(node, 0, x->dtype, (int)attr->rank, attr->shape, error);
    if (!status) node->out[0]->base = (cleat_tensor *)cleat_root(x);
    return status;
}

static void backward(cleat_graph *graph, cleat_node *node, cleat_tensor *const *dout) {
    cleat_tensor *x = node->in[0];
    if (cleat_requires_grad(x)) cleat_pass_grad(graph, x, cleat_reshape(graph, dout[0], x->rank, x->shape));
}

static const cleat_op reshape = {.name = "reshape", .infer = infer, .backward = backward, .no_autocast = true};

cleat_tensor *cleat_reshape(cleat_graph *graph, cleat_tensor *x, int rank, const int64_t *shape) {
    if (rank < 1 || rank > CLEAT_MAX_RANK) {
        cleat_graph_fail(graph, CLEAT_ERR_SHAPE, "reshape: rank %d; it must be 1 to %d", rank, CLEAT_MAX_RANK);
        return NULL;
    }
    reshape_attr attr = {.rank = rank};
    memcpy(attr.shape, shape, (size_t)rank * sizeof *shape);
    return cleat_first_output(cleat_emit(graph, &reshape, &attr, sizeof attr, &x, 1));
}
