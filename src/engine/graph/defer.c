/* Forward nodes that run in the backward part. */
#include "graph/defer.h"

#include "core/memory.h"

cleat_tensor *cleat_defer(cleat_tensor *tensor) {
    if (tensor && tensor->producer) tensor->producer->deferred = true;
    return tensor;
}

/* Whether the node is where it was emitted, in the forward part. */
static bool is_in_forward(const cleat_graph *graph, const cleat_node *node) {
    return (size_t)node->index < graph->forward_nodes;
}

/* A cast between two deferred nodes, which autocast has emitted, goes with them. */
static bool goes_along(const cleat_node *node) {
    if (node->deferred) return true;
    for (int i = 0; i < node->n_in; ++i)
        if (node->in[i] && node->in[i]->producer && node->in[i]->producer->deferred) return true;
    return false;
}

/* Its old place keeps naming the node until cleat_defer_finish, for autodiff's walk. */
static void move(cleat_graph *graph, cleat_node *node) {
    for (int i = 0; i < node->n_in; ++i) {
        cleat_node *before = node->in[i] ? node->in[i]->producer : NULL;
        if (before && is_in_forward(graph, before) && goes_along(before)) move(graph, before);
    }
    if (cleat_grow(&graph->nodes, graph->node_count, &graph->node_capacity, &graph->error)) return;
    node->index = (int)graph->node_count;
    graph->nodes[graph->node_count++] = node;
}

void cleat_defer_move(cleat_graph *graph, cleat_node *node) {
    if (node->deferred && is_in_forward(graph, node)) move(graph, node);
}

/* Whether an input is computed behind the forward part. */
static bool reads_later(const cleat_graph *graph, const cleat_node *node) {
    for (int i = 0; i < node->n_in; ++i)
        if (node->in[i] && node->in[i]->producer && !is_in_forward(graph, node->in[i]->producer)) return true;
    return false;
}

void cleat_defer_finish(cleat_graph *graph) {
    size_t kept = 0, forward = 0;
    for (size_t i = 0; i < graph->forward_nodes; ++i)
        if ((size_t)graph->nodes[i]->index == i && reads_later(graph, graph->nodes[i])) move(graph, graph->nodes[i]);
    for (size_t i = 0; i < graph->node_count; ++i) {
        if ((size_t)graph->nodes[i]->index != i) continue; /* moved */
        forward += i < graph->forward_nodes;
        graph->nodes[kept++] = graph->nodes[i];
    }
    graph->node_count = kept;
    graph->forward_nodes = forward;
    for (size_t i = 0; i < kept; ++i) graph->nodes[i]->index = (int)i;
}
