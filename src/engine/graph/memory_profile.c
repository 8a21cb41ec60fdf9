/* Live bytes at each node of a planned graph, their peaks, and their composition. */
#include "graph/memory_profile.h"

#include "core/memory.h"
#include "graph/lifetime.h"

#include <string.h>

/* A graph without a backward part has only forward nodes. */
static size_t forward_nodes(const cleat_graph *graph) {
    return graph->gradients ? graph->forward_nodes : graph->node_count;
}

static cleat_status find_lifetimes(const cleat_plan *plan, size_t index, cleat_lifetimes *lifetimes,
                                   cleat_error *error) {
    if (index >= plan->layout_count)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "graph %zu is out of range: the plan has %zu", index,
                          plan->layout_count);
    const cleat_layout *layout = &plan->layouts[index];
    const cleat_graph *graph = layout->graph;
    int64_t *workspaces = cleat_alloc(graph->node_count, sizeof *workspaces);
    if (!workspaces) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu workspaces", graph->node_count);
    for (size_t i = 0; i < graph->node_count; ++i) {
        const cleat_variant *variant = layout->variants[i];
        workspaces[i] = variant && variant->workspace ? variant->workspace(graph->nodes[i], &plan->facts) : 0;
    }
    cleat_status status = cleat_lifetimes_find(graph, workspaces, lifetimes, error);
    cleat_free(workspaces);
    return status;
}

/* --- peaks --- */

static size_t peak_of(const int64_t *live, size_t nodes) {
    size_t peak = 0;
    for (size_t i = 1; i < nodes; ++i)
        if (live[i] > live[peak]) peak = i;
    return peak;
}

static cleat_peak_part part_of(const cleat_graph *graph, const cleat_node *writer) {
    if (writer->recomputed) return CLEAT_PEAK_RECOMPUTED;
    return (size_t)writer->index < forward_nodes(graph) ? CLEAT_PEAK_STORED : CLEAT_PEAK_GRADIENTS;
}

/* Fills writers [tensor_count] with the last node, up to node `time`, that wrote into each tensor's own
 * block. */
static void find_writers(const cleat_graph *graph, const cleat_lifetimes *lifetimes, size_t time,
                         const cleat_node **writers) {
    for (size_t i = 0; i < graph->tensor_count; ++i) {
        const cleat_tensor *tensor = graph->tensors[i];
        if (tensor->base || lifetimes->storage[i] < 0 || (size_t)tensor->producer->index > time) continue;
        const cleat_node **writer = &writers[lifetimes->storage[i]];
        if (!*writer || (*writer)->index < tensor->producer->index) *writer = tensor->producer;
    }
}

static cleat_status find_parts(const cleat_graph *graph, const cleat_lifetimes *lifetimes, int64_t alignment,
                               size_t time, int64_t *parts, cleat_error *error) {
    const cleat_node **writers = cleat_alloc(graph->tensor_count, sizeof *writers);
    if (!writers) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu tensors", graph->tensor_count);
    find_writers(graph, lifetimes, time, writers);
    for (size_t i = 0; i < lifetimes->count; ++i) {
        const cleat_block *block = &lifetimes->blocks[i];
        if (block->bytes == 0 || (size_t)block->first > time || (size_t)block->last < time) continue;
        cleat_peak_part part = i < graph->tensor_count ? part_of(graph, writers[i]) : CLEAT_PEAK_WORKSPACE;
        parts[part] += cleat_align_up(block->bytes, alignment);
    }
    cleat_free(writers);
    return CLEAT_OK;
}

static cleat_status fill_profile(const cleat_graph *graph, const cleat_lifetimes *lifetimes, int64_t alignment,
                                 int64_t *live, cleat_memory_profile *memory, cleat_error *error) {
    size_t nodes = graph->node_count, forward = forward_nodes(graph);
    cleat_memory_profile found = {0};
    cleat_arena_live(lifetimes->blocks, lifetimes->count, alignment, (int32_t)nodes, live);
    if (forward > 0) {
        size_t peak = peak_of(live, forward);
        found.forward_peak = live[peak];
        found.forward_peak_node = graph->nodes[peak];
    }
    if (nodes > 0) {
        size_t peak = peak_of(live, nodes);
        found.training_peak = live[peak];
        found.training_peak_node = graph->nodes[peak];
        cleat_status status = find_parts(graph, lifetimes, alignment, peak, found.parts, error);
        if (status) return status;
    }
    *memory = found;
    return CLEAT_OK;
}

/* --- public functions --- */

cleat_status cleat_memory_profile_find(const cleat_plan *plan, size_t index, cleat_memory_profile *memory,
                                       cleat_error *error) {
    cleat_lifetimes lifetimes = {0};
    cleat_status status = find_lifetimes(plan, index, &lifetimes, error);
    if (status) return status;
    const cleat_graph *graph = plan->layouts[index].graph;
    int64_t *live = cleat_alloc(graph->node_count, sizeof *live);
    if (live)
        status = fill_profile(graph, &lifetimes, plan->facts.alignment, live, memory, error);
    else
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the memory statistics of graph '%s'", graph->name);
    cleat_free(live);
    cleat_lifetimes_clear(&lifetimes);
    return status;
}

cleat_status cleat_graph_live_parts(const cleat_plan *plan, size_t index, int64_t (*parts)[CLEAT_PEAK_PARTS_COUNT],
                                    cleat_error *error) {
    cleat_lifetimes lifetimes = {0};
    cleat_status status = find_lifetimes(plan, index, &lifetimes, error);
    if (status) return status;
    const cleat_graph *graph = plan->layouts[index].graph;
    for (size_t t = 0; t < graph->node_count && !status; ++t) {
        memset(parts[t], 0, sizeof parts[t]);
        status = find_parts(graph, &lifetimes, plan->facts.alignment, t, parts[t], error);
    }
    cleat_lifetimes_clear(&lifetimes);
    return status;
}
