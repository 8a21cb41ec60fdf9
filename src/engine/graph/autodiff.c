/* Reverse-mode differentiation: walks the forward nodes in reverse order and lets each op emit its gradient
 * nodes. recompute.c decides which forward nodes are recomputed before.
 *
 * A gradient node receives, for every gradient that it computes, an accumulator (`accum`) and writes accum
 * + contribution, as BLAS does with beta = 1. For a parameter the accumulator is its place in the gradient
 * buffer, so gradients add up over micro-batches; for an activation it is the sum of what other consumers
 * contributed, so fan-out needs no extra pass. Tensors are written once: the planner decides whether the
 * output reuses the accumulator's bytes (cleat_op.inplace_inputs), so a gradient that a residual connection
 * passes on is never overwritten by a later accumulation. */
#include "graph/graph.h"

#include "core/memory.h"
#include "graph/defer.h"
#include "graph/recompute.h"

#include <string.h>

/* Collects the gradients that arrive at the node's outputs. Returns false if there are none, so that the node
 * has no gradient to propagate. */
static bool arriving(const cleat_graph *graph, const cleat_node *node, cleat_tensor **dout) {
    bool any = false;
    for (int i = 0; i < node->n_out; ++i) {
        cleat_tensor *out = node->out[i];
        dout[i] = out && out->producer == node ? cleat_gradient(graph, out) : NULL;
        any = any || dout[i];
    }
    return any;
}

static void differentiate(cleat_graph *graph, cleat_node *node) {
    cleat_tensor *dout[CLEAT_MAX_OUT] = {NULL};
    if (!node->op->backward || !arriving(graph, node, dout)) return;
    cleat_defer_move(graph, node);
    size_t scope = strlen(node->name) - strlen(node->op->name);
    cleat_scope(graph, "%.*s", (int)scope, node->name);
    cleat_recompute_inputs(graph, node);
    cleat_node current = cleat_current_node(node);
    const bool tf32 = graph->tf32;
    graph->tf32 = node->tf32;
    node->op->backward(graph, &current, dout);
    graph->tf32 = tf32;
}

void cleat_backward_from(cleat_graph *graph, cleat_tensor *const *outs, cleat_tensor *const *douts, int n) {
    if (graph->error.status) return;
    if (graph->gradients) {
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "differentiated twice");
        return;
    }
    if (graph->fused) {
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "differentiated after cleat_graph_fuse, which comes last");
        return;
    }
    graph->forward_nodes = graph->node_count;
    graph->gradients = cleat_alloc(graph->tensor_count, sizeof *graph->gradients);
    if (!graph->gradients) {
        cleat_graph_fail(graph, CLEAT_ERR_MEMORY, "no memory for gradients");
        return;
    }
    graph->gradient_count = graph->tensor_count;
    for (int i = 0; i < n; ++i) {
        if (!outs[i] || !douts[i]) {
            cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "backward: tensor %d, or its gradient, does not exist", i);
            return;
        }
        cleat_set_gradient(graph, outs[i], douts[i]);
    }
    for (size_t i = graph->forward_nodes; i-- > 0 && !graph->error.status;) {
        cleat_recompute_group(graph, i + 1);
        differentiate(graph, graph->nodes[i]);
    }
    cleat_defer_finish(graph);
    cleat_recompute_prune(graph);
    cleat_scope(graph, NULL);
}

static bool loss_is_possible(cleat_graph *graph, const cleat_tensor *loss) {
    char text[96];
    cleat_tensor_describe(loss, text, sizeof text);
    if (!loss)
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "cleat_backward: the loss is NULL");
    else if (!cleat_graph_owns(graph, loss))
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "cleat_backward: loss '%s' belongs to another graph", loss->name);
    else if (loss->dtype != CLEAT_F32 || cleat_tensor_elements(loss) != 1)
        cleat_graph_fail(graph, CLEAT_ERR_SHAPE,
                         "cleat_backward: loss '%s' is %s, but a loss is one number, f32 [1]: the result of a loss "
                         "operation, such as cleat_mse_loss, or a sum of them (cleat_sum)",
                         loss->name, text);
    else if (!loss->requires_grad)
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT,
                         "cleat_backward: loss '%s' depends on no parameter, and on no input of cleat_require_grad",
                         loss->name);
    return !graph->error.status;
}

void cleat_backward(cleat_graph *graph, cleat_tensor *loss, cleat_tensor *seed) {
    if (graph->error.status || !loss_is_possible(graph, loss)) return;
    const bool is_scaled = graph->store->flat[CLEAT_FLAT_HALF_WEIGHTS].dtype == CLEAT_F16;
    if (!seed && is_scaled) seed = cleat_loss_scale_state(graph);
    if (!seed) seed = cleat_constant(graph, "backward.one", 1, (const int64_t[1]){1}, 1.0f);
    cleat_backward_from(graph, &loss, &seed, 1);
}
