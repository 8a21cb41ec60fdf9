/* Lifetimes of activations and workspaces, and the choice of outputs that are computed in the bytes of an
 * input. */
#include "graph/lifetime.h"

#include "core/memory.h"

typedef struct uses {
    int32_t *born;      /* [tensors] index of the node that writes the tensor; -1 before it is found */
    int32_t *last_used; /* [tensors] index of the last node that reads it or a reshape of it */
    bool *kept;         /* [tensors] */
} uses;

static cleat_status uses_alloc(uses *u, size_t count, cleat_error *error) {
    u->born = cleat_alloc(count, sizeof *u->born);
    u->last_used = cleat_alloc(count, sizeof *u->last_used);
    u->kept = cleat_alloc(count, sizeof *u->kept);
    if (!u->born || !u->last_used || !u->kept)
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the lifetimes of %zu tensors", count);
    for (size_t i = 0; i < count; ++i) u->born[i] = u->last_used[i] = -1;
    return CLEAT_OK;
}

static cleat_status record_read(const cleat_graph *graph, uses *u, int32_t time, const cleat_tensor *in,
                                cleat_error *error) {
    const cleat_tensor *root = cleat_root(in);
    if (cleat_is_persistent(root)) return CLEAT_OK;
    const char *node = graph->nodes[time]->name;
    if (!cleat_graph_owns(graph, root))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "graph '%s': node %d (%s) reads '%s', a tensor of another graph",
                          graph->name, time, node, in->name);
    if (root->role == CLEAT_ROLE_INPUT) return CLEAT_OK;
    if (u->born[root->index] < 0)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "graph '%s': node %d (%s) reads '%s' before any node has written it", graph->name, time, node,
                          in->name);
    u->last_used[root->index] = time;
    return CLEAT_OK;
}

static cleat_status record_write(const cleat_graph *graph, uses *u, int32_t time, const cleat_tensor *out,
                                 cleat_error *error) {
    const cleat_tensor *root = cleat_root(out);
    if (cleat_is_persistent(root)) return CLEAT_OK;
    if (root->role == CLEAT_ROLE_INPUT || !cleat_graph_owns(graph, root))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "graph '%s': node %d (%s) writes '%s', which is an input or a tensor of another graph",
                          graph->name, time, graph->nodes[time]->name, out->name);
    if (u->born[root->index] < 0) u->born[root->index] = time;
    u->last_used[root->index] = time;
    return CLEAT_OK;
}

static cleat_status find_uses(const cleat_graph *graph, uses *u, cleat_error *error) {
    for (size_t t = 0; t < graph->node_count; ++t) {
        const cleat_node *node = graph->nodes[t];
        if (!node->op->variants) continue;
        cleat_status status = CLEAT_OK;
        for (int i = 0; i < node->n_in && !status; ++i)
            if (node->in[i]) status = record_read(graph, u, (int32_t)t, node->in[i], error);
        for (int i = 0; i < node->n_out && !status; ++i)
            if (node->out[i]) status = record_write(graph, u, (int32_t)t, node->out[i], error);
        if (status) return status;
    }
    for (size_t i = 0; i < graph->tensor_count; ++i) {
        const cleat_tensor *root = cleat_root(graph->tensors[i]);
        if (!graph->tensors[i]->retain || root->role != CLEAT_ROLE_ACTIVATION || u->born[root->index] < 0) continue;
        u->kept[root->index] = true;
        u->last_used[root->index] = (int32_t)graph->node_count - 1;
    }
    return CLEAT_OK;
}

/* --- in place --- */

/* Whether out[0] may reuse all bytes of `root`: every input that uses these bytes is one that the op may
 * overwrite, and no other output uses them. */
static bool shares_all_of(const cleat_node *node, const cleat_tensor *root, int64_t bytes) {
    for (int i = 0; i < node->n_in; ++i) {
        if (!node->in[i] || cleat_root(node->in[i]) != root) continue;
        if (!(node->op->inplace_inputs & CLEAT_IN(i)) || cleat_tensor_bytes(node->in[i]) != bytes) return false;
    }
    for (int i = 1; i < node->n_out; ++i)
        if (node->out[i] && cleat_root(node->out[i]) == root) return false;
    return true;
}

static bool can_reuse_input(const uses *u, const cleat_node *node, int32_t time, const cleat_tensor *in) {
    const cleat_tensor *root = cleat_root(in);
    int64_t bytes = cleat_tensor_bytes(node->out[0]);
    return root->role == CLEAT_ROLE_ACTIVATION && root != node->out[0] && !u->kept[root->index] &&
           u->last_used[root->index] == time && cleat_tensor_bytes(root) == bytes && shares_all_of(node, root, bytes);
}

/* Redirects storage [tensors], in which every tensor has its own block at first, wherever an output reuses
 * the bytes of an input. */
static void share_bytes(const cleat_graph *graph, const uses *u, int32_t *storage) {
    for (size_t t = 0; t < graph->node_count; ++t) {
        const cleat_node *node = graph->nodes[t];
        const cleat_tensor *out = node->n_out > 0 ? node->out[0] : NULL;
        if (!node->op->variants || !node->op->inplace_inputs || !out || out->base ||
            out->role != CLEAT_ROLE_ACTIVATION || u->born[out->index] != (int32_t)t)
            continue;
        for (int i = 0; i < node->n_in; ++i) {
            if (!(node->op->inplace_inputs & CLEAT_IN(i)) || !node->in[i] ||
                !can_reuse_input(u, node, (int32_t)t, node->in[i]))
                continue;
            storage[out->index] = storage[cleat_root(node->in[i])->index];
            break;
        }
    }
}

/* --- blocks --- */

static void fill_blocks(const cleat_graph *graph, const uses *u, const int64_t *workspace_bytes,
                        cleat_lifetimes *lifetimes) {
    int32_t *storage = lifetimes->storage;
    for (size_t i = 0; i < graph->tensor_count; ++i) {
        const cleat_tensor *tensor = graph->tensors[i];
        if (tensor->base || tensor->role != CLEAT_ROLE_ACTIVATION || u->born[i] < 0) continue;
        cleat_block *block = &lifetimes->blocks[storage[i]];
        int64_t bytes = cleat_tensor_bytes(tensor);
        if (block->bytes == 0) *block = (cleat_block){bytes, u->born[i], u->last_used[i]};
        if (u->born[i] < block->first) block->first = u->born[i];
        if (u->last_used[i] > block->last) block->last = u->last_used[i];
    }
    for (size_t i = 0; i < graph->tensor_count; ++i) {
        const cleat_tensor *root = cleat_root(graph->tensors[i]);
        bool placed = root->role == CLEAT_ROLE_ACTIVATION && u->born[root->index] >= 0;
        if (!placed || root != graph->tensors[i]) storage[i] = placed ? storage[root->index] : -1;
    }
    for (size_t t = 0; t < graph->node_count; ++t)
        lifetimes->blocks[graph->tensor_count + t] = (cleat_block){workspace_bytes[t], (int32_t)t, (int32_t)t};
}

void cleat_lifetimes_clear(cleat_lifetimes *lifetimes) {
    cleat_free(lifetimes->blocks);
    cleat_free(lifetimes->storage);
    *lifetimes = (cleat_lifetimes){0};
}

cleat_status cleat_lifetimes_find(const cleat_graph *graph, const int64_t *workspace_bytes, cleat_lifetimes *lifetimes,
                                  cleat_error *error) {
    uses u = {0};
    cleat_lifetimes found = {.count = graph->tensor_count + graph->node_count};
    cleat_status status = uses_alloc(&u, graph->tensor_count, error);
    if (status) goto done;
    found.blocks = cleat_alloc(found.count, sizeof *found.blocks);
    found.storage = cleat_alloc(graph->tensor_count, sizeof *found.storage);
    if (!found.blocks || !found.storage) {
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the lifetimes of graph '%s'", graph->name);
        goto done;
    }
    status = find_uses(graph, &u, error);
    if (status) goto done;
    for (size_t i = 0; i < graph->tensor_count; ++i) found.storage[i] = (int32_t)i;
    share_bytes(graph, &u, found.storage);
    fill_blocks(graph, &u, workspace_bytes, &found);
    *lifetimes = found;
    found = (cleat_lifetimes){0};
done:
    cleat_lifetimes_clear(&found);
    cleat_free(u.born);
    cleat_free(u.last_used);
    cleat_free(u.kept);
    return status;
}
