/* Fusion pass: a node also does the work of its consumer before it stores its result, or the work of its
 * producer when it reads. The ops decide which pairs can be fused (cleat_fusion); this file decides when the
 * graph permits it. Autodiff, recomputation and models are independent of fusion. */
#include "graph/graph.h"

#include "core/memory.h"

enum { FUSED_CONSUMERS = 2 }; /* cleat_fusion.consumers */

/* Consumers of a tensor and of its reshapes. */
typedef struct consumers {
    int count;
    int first; /* node index; valid if count > 0 */
} consumers;

static void count_consumers(const cleat_graph *graph, consumers *of) {
    for (size_t n = 0; n < graph->node_count; ++n) {
        const cleat_node *node = graph->nodes[n];
        for (int i = 0; i < node->n_in; ++i) {
            const cleat_tensor *root = node->in[i] ? cleat_root(node->in[i]) : NULL;
            if (!root || root->role != CLEAT_ROLE_ACTIVATION) continue;
            consumers *r = &of[root->index];
            if (r->count++ == 0) r->first = (int)n;
        }
    }
}

/* --- conditions ----------------------------------------------------------------------------------------------- */

static bool is_own_activation(const cleat_node *node, const cleat_tensor *tensor) {
    return tensor && tensor->role == CLEAT_ROLE_ACTIVATION && !tensor->base && tensor->producer == node;
}

/* Whether both nodes belong to the forward part, to the recomputed part, or to the gradients, so that fusion
 * moves neither a memory peak nor a segment boundary. */
static bool same_part(const cleat_graph *graph, const cleat_node *a, const cleat_node *b) {
    bool forward_a = (size_t)a->index < graph->forward_nodes, forward_b = (size_t)b->index < graph->forward_nodes;
    return !graph->gradients || (forward_a == forward_b && a->recomputed == b->recomputed);
}

/* Whether all inputs of `consumer` other than `result` are available when `node` runs and cannot change
 * before `consumer` would run. */
static bool can_move_up(const cleat_node *consumer, const cleat_node *node, const cleat_tensor *result) {
    int reads = 0;
    for (int i = 0; i < consumer->n_in; ++i) {
        if (!consumer->in[i]) continue;
        if (consumer->in[i] == result) {
            ++reads;
            continue;
        }
        const cleat_tensor *root = cleat_root(consumer->in[i]);
        if (root->role != CLEAT_ROLE_ACTIVATION && root->role != CLEAT_ROLE_INPUT) return false;
        if (root == result || (root->producer && root->producer->index >= node->index)) return false;
    }
    return reads == 1;
}

static cleat_node *consumer_of(const cleat_graph *graph, const cleat_node *node, const consumers *of) {
    const cleat_tensor *result = node->out[0];
    if (!is_own_activation(node, result) || of[result->index].count == 0) return NULL;
    cleat_node *consumer = graph->nodes[of[result->index].first];
    bool possible = consumer && consumer->n_out == 1 && is_own_activation(consumer, consumer->out[0]) &&
                    same_part(graph, node, consumer) && can_move_up(consumer, node, result);
    return possible ? consumer : NULL;
}

/* --- the pass ------------------------------------------------------------------------------------------------- */

/* Records that the tensor no longer has a writer. */
static void clear_producer(cleat_graph *graph, cleat_tensor *tensor) {
    tensor->producer = NULL;
    for (size_t i = 0; i < graph->gradient_count; ++i)
        if (graph->gradients[i] == tensor) graph->gradients[i] = NULL;
}

static void fuse_consumer(cleat_graph *graph, cleat_node *node, const consumers *of) {
    cleat_node *consumer = consumer_of(graph, node, of);
    cleat_tensor *result = node->out[0];
    if (!consumer) return;
    bool sole_consumer = of[result->index].count == 1 && !result->retain;
    if (!node->op->fusion->consumer(node, consumer, sole_consumer)) return;
    consumer->out[0]->producer = node;
    node->gated |= consumer->gated || consumer->op->discontinuous;
    if (sole_consumer) clear_producer(graph, result);
    graph->nodes[consumer->index] = NULL;
    cleat_free(consumer);
}

/* Whether `node` may read what `producer` reads: activations of the same part, inputs, and parameters, which
 * no node overwrites in between. */
static bool can_fuse_producer(const cleat_graph *graph, const cleat_node *node, const cleat_node *producer,
                              const consumers *of) {
    const cleat_tensor *result = producer->out[0];
    bool possible = producer->n_out == 1 && is_own_activation(producer, result) && !result->retain &&
                    of[result->index].count == 1 && same_part(graph, producer, node);
    for (int i = 0; i < producer->n_in && possible; ++i) {
        const cleat_tensor *root = producer->in[i] ? cleat_root(producer->in[i]) : NULL;
        possible =
            !root || root->role == CLEAT_ROLE_ACTIVATION || root->role == CLEAT_ROLE_INPUT || cleat_is_weight(root);
    }
    return possible;
}

static bool reads(const cleat_node *node, const cleat_tensor *root) {
    for (int i = 0; i < node->n_in; ++i)
        if (node->in[i] && cleat_root(node->in[i]) == root) return true;
    return false;
}

/* Notes that `node` reads what `removed` read, possibly after others that read it between them. */
static void reads_instead(const cleat_graph *graph, consumers *of, const cleat_node *removed, const cleat_node *node) {
    for (int i = 0; i < removed->n_in; ++i) {
        const cleat_tensor *root = removed->in[i] ? cleat_root(removed->in[i]) : NULL;
        if (!root || root->role != CLEAT_ROLE_ACTIVATION || of[root->index].first != removed->index) continue;
        int first = removed->index + 1;
        while (first < node->index && !(graph->nodes[first] && reads(graph->nodes[first], root))) ++first;
        of[root->index].first = node->index < removed->index ? node->index : first;
    }
}

static void fuse_producer(cleat_graph *graph, cleat_node *node, consumers *of) {
    for (int i = 0; i < node->n_in && node->op->fusion && node->op->fusion->producer; ++i) {
        cleat_node *producer = node->in[i] ? node->in[i]->producer : NULL;
        if (!producer || !can_fuse_producer(graph, node, producer, of) ||
            !node->op->fusion->producer(node, producer, graph->wide))
            continue;
        reads_instead(graph, of, producer, node);
        node->gated |= producer->gated || producer->op->discontinuous;
        clear_producer(graph, producer->out[0]);
        graph->nodes[producer->index] = NULL;
        cleat_free(producer);
    }
}

/* The nodes that read the result of `node`, if they are the next ones and need nothing else of what `node` and they
 * produce: they could run where `node` does. Returns their number, 0 if one of them could not. */
static int next_consumers(const cleat_graph *graph, const cleat_node *node, const consumers *of,
                          cleat_node *next[FUSED_CONSUMERS]) {
    const cleat_tensor *result = node->out[node->op->fusion->output];
    if (!is_own_activation(node, result) || result->retain) return 0;
    int readers = of[result->index].count, count = 0;
    for (size_t n = (size_t)node->index + 1; n < graph->node_count && count < readers; ++n) {
        cleat_node *consumer = graph->nodes[n];
        if (!consumer) continue;
        if (count == FUSED_CONSUMERS || !same_part(graph, node, consumer)) return 0;
        int reads = 0;
        for (int i = 0; i < consumer->n_in; ++i) {
            const cleat_tensor *root = consumer->in[i] ? cleat_root(consumer->in[i]) : NULL;
            if (consumer->in[i] == result)
                ++reads;
            else if (root && root->producer && root->producer->index >= node->index)
                return 0;
        }
        if (reads != 1) return 0;
        next[count++] = consumer;
    }
    return count == readers ? count : 0;
}

static void fuse_consumers(cleat_graph *graph, cleat_node *node, consumers *of) {
    cleat_node *next[FUSED_CONSUMERS] = {NULL};
    cleat_tensor *result = node->out[node->op->fusion->output];
    const int count = next_consumers(graph, node, of, next);
    if (count == 0 || !node->op->fusion->consumers(node, next, count, graph->wide)) return;
    for (int c = 0; c < count; ++c) {
        reads_instead(graph, of, next[c], node);
        for (int i = 0; i < next[c]->n_out; ++i)
            if (next[c]->out[i] && next[c]->out[i]->producer == next[c]) next[c]->out[i]->producer = node;
        node->gated |= next[c]->gated || next[c]->op->discontinuous;
        graph->nodes[next[c]->index] = NULL;
        cleat_free(next[c]);
    }
    clear_producer(graph, result);
}

/* Removes the gaps that fused consumers left in the list of nodes. */
static void close_gaps(cleat_graph *graph) {
    size_t kept = 0, forward = 0, mark = 0, count = graph->node_count;
    for (size_t n = 0; n <= count; ++n) {
        while (mark < graph->mark_count && graph->marks[mark] == n) graph->marks[mark++] = kept;
        if (n == graph->forward_nodes) forward = kept;
        if (n == count || !graph->nodes[n]) continue;
        graph->nodes[n]->index = (int)kept;
        graph->nodes[kept++] = graph->nodes[n];
    }
    graph->forward_nodes = forward;
    graph->node_count = kept;
}

void cleat_graph_set_wide(cleat_graph *graph, bool wide) {
    graph->wide = wide;
}

void cleat_graph_fuse(cleat_graph *graph) {
    if (graph->error.status) return;
    consumers *of = cleat_alloc(graph->tensor_count, sizeof *of);
    if (!of) {
        cleat_graph_fail(graph, CLEAT_ERR_MEMORY, "no memory for the consumers of %zu tensors", graph->tensor_count);
        return;
    }
    count_consumers(graph, of);
    for (size_t n = 0; n < graph->node_count; ++n) {
        cleat_node *node = graph->nodes[n];
        if (!node) continue;
        fuse_producer(graph, node, of);
        if (node->op->fusion && node->op->fusion->consumer) fuse_consumer(graph, node, of);
        if (node->op->fusion && node->op->fusion->consumers) fuse_consumers(graph, node, of);
    }
    cleat_free(of);
    close_gaps(graph);
    graph->fused = true;
}
