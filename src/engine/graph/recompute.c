/* Gradient checkpointing: segments, their groups, and the recomputed copies of forward nodes that the
 * backward part reads. */
#include "graph/recompute.h"

#include "core/memory.h"

void cleat_graph_set_recompute(cleat_graph *graph, int segments) {
    if (segments < 0 || graph->gradients)
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT,
                         "invalid recomputation group of %d segments: must be 0 or more, set before cleat_backward",
                         segments);
    else
        graph->recompute = segments;
}

void cleat_graph_recompute_cheap(cleat_graph *graph) {
    if (graph->gradients)
        cleat_graph_fail(graph, CLEAT_ERR_ARGUMENT, "recomputation is chosen after cleat_backward");
    else
        graph->recompute_cheap = true;
}

void cleat_segment(cleat_graph *graph) {
    if (graph->error.status || graph->gradients) return;
    if (graph->mark_count > 0 && graph->marks[graph->mark_count - 1] == graph->node_count) return;
    if (cleat_grow(&graph->marks, graph->mark_count, &graph->mark_capacity, &graph->error) == CLEAT_OK)
        graph->marks[graph->mark_count++] = graph->node_count;
}

size_t cleat_graph_segments(const cleat_graph *graph) {
    return graph->mark_count > 0 ? graph->mark_count - 1 : 0;
}

/* --- copies --- */

/* First node of the recomputed group that ends before node `end`; `end` if there is none. */
static size_t group_begin(const cleat_graph *graph, size_t end) {
    size_t group = (size_t)graph->recompute, segments = cleat_graph_segments(graph);
    for (size_t last = group; group > 0 && last < segments; last += group)
        if (graph->marks[last] == end) return graph->marks[last - group];
    return end;
}

/* Whether running the node again computes the same values and changes nothing but activations. */
static bool is_repeatable(const cleat_node *node) {
    for (int i = 0; i < node->n_in; ++i) {
        if (!node->in[i]) continue;
        const cleat_tensor *root = cleat_root(node->in[i]);
        if (root->role != CLEAT_ROLE_ACTIVATION && root->role != CLEAT_ROLE_INPUT && !cleat_is_weight(root))
            return false;
    }
    for (int i = 0; i < node->n_out; ++i)
        if (node->out[i] && cleat_root(node->out[i])->role != CLEAT_ROLE_ACTIVATION) return false;
    return true;
}

void cleat_recompute_group(cleat_graph *graph, size_t end) {
    for (size_t i = group_begin(graph, end); i < end && !graph->error.status; ++i)
        if (is_repeatable(graph->nodes[i])) cleat_emit_recomputed(graph, graph->nodes[i]);
}

/* The node that computes a tensor, or the tensor that it is a reshape of; NULL: none of this graph does. */
static const cleat_node *origin(const cleat_tensor *tensor) {
    const cleat_tensor *root = cleat_root(tensor);
    return root->role == CLEAT_ROLE_ACTIVATION ? root->producer : NULL;
}

/* Whether a node is repeated alone. Its inputs must be kept, not repeated themselves, or a chain of such
 * nodes would be repeated from its beginning. */
static bool is_cheap(const cleat_node *node) {
    if (!node->op->cheap || !node->op->cheap(node)) return false;
    if (node->recomputed || !cleat_requires_grad(node->out[0]) || !is_repeatable(node)) return false;
    for (int i = 0; i < node->n_in; ++i) {
        const cleat_node *before = node->in[i] ? origin(node->in[i]) : NULL;
        if (before && before->op->cheap && before->op->cheap(before)) return false;
    }
    return true;
}

static bool is_repeated(const cleat_graph *graph, const cleat_node *node) {
    return graph->recompute_cheap && is_cheap(node);
}

/* A reshape of a repeated tensor is repeated with it. */
static void repeat(cleat_graph *graph, const cleat_tensor *tensor) {
    const cleat_node *node = tensor && tensor->role == CLEAT_ROLE_ACTIVATION ? tensor->producer : NULL;
    if (!node || node->recomputed || tensor->recomputed || graph->error.status) return;
    if (node->op->variants) {
        if (is_repeated(graph, node)) cleat_emit_recomputed(graph, node);
        return;
    }
    repeat(graph, node->in[0]);
    if (node->in[0]->recomputed) cleat_emit_recomputed(graph, node);
}

void cleat_recompute_inputs(cleat_graph *graph, const cleat_node *node) {
    for (int i = 0; i < node->n_in; ++i) repeat(graph, node->in[i]);
}

cleat_node cleat_current_node(const cleat_node *node) {
    cleat_node current = *node;
    for (int i = 0; i < node->n_in; ++i) current.in[i] = cleat_current(node->in[i]);
    for (int i = 0; i < node->n_out; ++i) current.out[i] = cleat_current(node->out[i]);
    return current;
}

/* --- pruning --- */

static void mark_use(bool *used, const cleat_tensor *tensor) {
    if (tensor && tensor->recompute_of) used[tensor->index] = true;
}

static bool has_consumers(const cleat_node *node, const bool *used) {
    for (int i = 0; i < node->n_out; ++i)
        if (node->out[i] && used[node->out[i]->index]) return true;
    return false;
}

/* Fills used [tensor_count]: copies that a node reads, or that the host reads as a gradient. Nodes are
 * visited in reverse, because consumers follow their inputs. */
static void find_used(const cleat_graph *graph, bool *used) {
    for (size_t i = 0; i < graph->gradient_count; ++i) mark_use(used, graph->gradients[i]);
    for (size_t n = graph->node_count; n-- > graph->forward_nodes;) {
        const cleat_node *node = graph->nodes[n];
        if (node->recomputed && !has_consumers(node, used)) continue;
        for (int i = 0; i < node->n_in; ++i) mark_use(used, node->in[i]);
    }
}

static void remove_node(cleat_node *node) {
    for (int i = 0; i < node->n_out; ++i) {
        if (!node->out[i]) continue;
        node->out[i]->producer = NULL;
        node->out[i]->recompute_of->recomputed = NULL;
    }
    cleat_free(node);
}

static void remove_unread(cleat_graph *graph, const bool *used) {
    size_t nodes = graph->forward_nodes, tensors = 0;
    for (size_t n = nodes; n < graph->node_count; ++n) {
        cleat_node *node = graph->nodes[n];
        if (node->recomputed && !has_consumers(node, used)) {
            remove_node(node);
            continue;
        }
        node->index = (int)nodes;
        graph->nodes[nodes++] = node;
    }
    for (size_t i = 0; i < graph->tensor_count; ++i) {
        cleat_tensor *tensor = graph->tensors[i];
        if (tensor->recompute_of && !tensor->producer) {
            cleat_free(tensor);
            continue;
        }
        tensor->index = (int)tensors;
        graph->tensors[tensors++] = tensor;
    }
    graph->node_count = nodes;
    graph->tensor_count = tensors;
}

void cleat_recompute_prune(cleat_graph *graph) {
    if (graph->error.status) return;
    bool *used = cleat_alloc(graph->tensor_count, sizeof *used);
    if (!used) {
        cleat_graph_fail(graph, CLEAT_ERR_MEMORY, "no memory to remove copies");
        return;
    }
    find_used(graph, used);
    remove_unread(graph, used);
    cleat_free(used);
}
