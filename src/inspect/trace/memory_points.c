/* Live bytes of the plan over the time of the recorded steps. */
#include "core/memory.h"
#include "trace/analysis.h"

typedef int64_t live_parts[CLEAT_PEAK_PARTS_COUNT];

/* The live bytes of every node of graph `graph`; the caller frees them. */
static cleat_status find_live(const cleat_plan *plan, size_t graph, live_parts **live, cleat_error *error) {
    live_parts *made = cleat_alloc(plan->layouts[graph].graph->node_count, sizeof *made);
    if (!made) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the live bytes of a graph");
    cleat_status status = cleat_graph_live_parts(plan, graph, made, error);
    if (status)
        cleat_free(made);
    else
        *live = made;
    return status;
}

/* Appends a point where `slice` begins the run of another node than `before`. */
static cleat_status add_point(cleat_analysis *analysis, const cleat_trace_slice *slice, const cleat_trace_slice *before,
                              const live_parts *live, cleat_error *error) {
    const cleat_node *node = slice->launch->node;
    if (before && before->launch->node == node && before->step == slice->step && before->launch < slice->launch)
        return CLEAT_OK;
    cleat_status status = cleat_grow(&analysis->points, analysis->n_points, &analysis->points_capacity, error);
    if (status) return status;
    cleat_memory_point *point = &analysis->points[analysis->n_points++];
    *point = (cleat_memory_point){.start = slice->start, .step = slice->step};
    for (int p = 0; p < CLEAT_PEAK_PARTS_COUNT; ++p) point->parts[p] = live[node->index][p];
    return CLEAT_OK;
}

static cleat_status add_points(cleat_analysis *analysis, live_parts **live, cleat_error *error) {
    const cleat_plan *plan = analysis->recording->session->work->plan;
    const cleat_trace_slice *before = NULL;
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < analysis->n_slices && !status; ++i) {
        const cleat_trace_slice *slice = &analysis->slices[i];
        const size_t graph = slice->command->graph;
        if (!slice->launch) continue;
        if (!live[graph]) status = find_live(plan, graph, &live[graph], error);
        if (!status) status = add_point(analysis, slice, before, live[graph], error);
        before = slice;
    }
    return status;
}

cleat_status cleat_analysis_find_memory(cleat_analysis *analysis, cleat_error *error) {
    const cleat_workload *work = analysis->recording->session->work;
    const size_t bucket = analysis->recording->steps[analysis->slices[0].step].bucket;
    cleat_memory_profile evaluation = {0};
    live_parts **live = cleat_alloc(work->plan->layout_count, sizeof *live);
    if (!live)
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the live bytes of %zu graphs",
                          work->plan->layout_count);
    cleat_status status = cleat_memory_profile_find(work->plan, work->train[bucket].index, &analysis->memory, error);
    if (!status && work->evaluate[bucket].graph)
        status = cleat_memory_profile_find(work->plan, work->evaluate[bucket].index, &evaluation, error);
    analysis->evaluation_peak = evaluation.training_peak;
    if (!status) status = add_points(analysis, live, error);
    for (size_t g = 0; g < work->plan->layout_count; ++g) cleat_free(live[g]);
    cleat_free(live);
    return status;
}
