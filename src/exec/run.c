/* Enqueues a graph, and reports which kernel failed. */
#include "exec/exec.h"

#include "device/recorder.h"

#include <string.h>

/* --- failures --- */

static cleat_status fail_kernel(const cleat_launch *launch, cl_int code, cleat_error *error) {
    const char *kernel = launch->kind == CLEAT_LAUNCH_SGEMM ? "CLBlast sgemm" : launch->kernel;
    return cleat_cl_fail(error, code, "kernel '%s' of %s", kernel, launch->node->name);
}

/* Releases the event of a launch's last run; records a failure before. */
static void collect_event(cleat_exec *exec, cleat_bound *bound, size_t i) {
    cl_int state = CL_COMPLETE;
    if (!bound->events[i]) return;
    clGetEventInfo(bound->events[i], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    if (state < 0 && exec->failure.status == CLEAT_OK) fail_kernel(&bound->binder.launches[i], state, &exec->failure);
    clReleaseEvent(bound->events[i]);
    bound->events[i] = NULL;
}

/* --- running --- */

/* The event of a product is wanted only while commands are recorded. */
static cleat_status run_sgemm(cleat_exec *exec, cleat_bound *bound, size_t i, cleat_error *error) {
    const cleat_launch *launch = &bound->binder.launches[i];
    cl_event event = NULL;
    cleat_recorder_begin(exec->device, CLEAT_COMMAND_SGEMM, (size_t)(bound - exec->graphs), launch, 0);
    cleat_status status =
        cleat_clblast_sgemm(exec->device, &bound->gemms[i], cleat_is_recorded(exec->device) ? &event : NULL, error);
    cleat_recorder_end(exec->device, event);
    if (event) clReleaseEvent(event);
    return status ? cleat_fail_in(error, status, "%s", launch->node->name) : CLEAT_OK;
}

static cleat_status run_launch(cleat_exec *exec, cleat_bound *bound, size_t i, cleat_error *error) {
    const cleat_launch *launch = &bound->binder.launches[i];
    cleat_status status = cleat_exec_bind(exec, bound, i, error);
    if (status) return status;
    if (launch->kind == CLEAT_LAUNCH_SGEMM) return run_sgemm(exec, bound, i, error);
    collect_event(exec, bound, i);
    if (exec->device->fail_launch > 0 && --exec->device->fail_launch == 0)
        return fail_kernel(launch, CL_MEM_OBJECT_ALLOCATION_FAILURE, error);
    cleat_recorder_begin(exec->device, CLEAT_COMMAND_KERNEL, (size_t)(bound - exec->graphs), launch, 0);
    cl_int code = clEnqueueNDRangeKernel(exec->device->compute, bound->kernels[i], (cl_uint)launch->dims, NULL,
                                         launch->global, launch->local, 0, NULL, &bound->events[i]);
    if (code != CL_SUCCESS) bound->events[i] = NULL;
    cleat_recorder_end(exec->device, bound->events[i]);
    if (code == CL_SUCCESS) return CLEAT_OK;
    return fail_kernel(launch, code, error);
}

/* The event of the last launch stands for the whole run, because the queue is in order. A product of CLBlast has none, so a
 * marker takes its place. */
static void record_last(cleat_exec *exec, const cleat_bound *bound, size_t first, size_t last) {
    cl_event marker = NULL;
    if (first == last) return;
    if (bound->events[last - 1]) {
        cleat_device_enqueued(exec->device, bound->events[last - 1]);
    } else if (clEnqueueMarkerWithWaitList(exec->device->compute, 0, NULL, &marker) == CL_SUCCESS) {
        cleat_device_enqueued(exec->device, marker);
        clReleaseEvent(marker);
    }
}

cleat_status cleat_exec_enqueue_nodes(cleat_exec *exec, size_t graph, size_t first, size_t last, cleat_error *error) {
    cleat_status status = cleat_exec_check_graph(exec, graph, error);
    if (status) return status;
    cleat_bound *bound = &exec->graphs[graph];
    size_t nodes = bound->layout->node_count;
    if (bound->layout->graph->node_count != nodes)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "graph '%s' has %zu nodes, but had %zu when it was planned: build a graph before its plan",
                          bound->layout->graph->name, bound->layout->graph->node_count, nodes);
    if (first > last || last > nodes)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "nodes %zu to %zu are out of range: graph '%s' has %zu", first,
                          last, bound->layout->graph->name, nodes);
    exec->last_run = bound;
    status = cleat_exec_consume_upload(exec, bound, error);
    for (size_t i = bound->first[first]; i < bound->first[last] && !status; ++i)
        status = run_launch(exec, bound, i, error);
    if (!status) record_last(exec, bound, bound->first[first], bound->first[last]);
    return cleat_device_explain(exec->device, status, error);
}

cleat_status cleat_exec_run_nodes(cleat_exec *exec, size_t graph, size_t first, size_t last, cleat_error *error) {
    cleat_status status = cleat_exec_enqueue_nodes(exec, graph, first, last, error);
    clFlush(exec->device->compute); /* an upload may wait for what was enqueued here */
    return status;
}

cleat_status cleat_exec_run(cleat_exec *exec, size_t graph, cleat_error *error) {
    cleat_status status = cleat_exec_check_graph(exec, graph, error);
    if (status) return status;
    return cleat_exec_run_nodes(exec, graph, 0, exec->graphs[graph].layout->node_count, error);
}

cleat_status cleat_exec_pop_failure(cleat_exec *exec, cleat_error *error) {
    for (size_t g = 0; g < exec->plan->layout_count; ++g)
        for (size_t i = 0; i < exec->graphs[g].binder.count; ++i) collect_event(exec, &exec->graphs[g], i);
    cleat_status status = exec->failure.status;
    if (status && error) *error = exec->failure;
    memset(&exec->failure, 0, sizeof exec->failure);
    return status;
}

cleat_status cleat_exec_finish(cleat_exec *exec, cleat_error *error) {
    cl_int transfer = clFinish(exec->device->transfer), compute = clFinish(exec->device->compute);
    cleat_status status = cleat_exec_pop_failure(exec, error);
    if (!status && transfer != CL_SUCCESS) status = cleat_cl_fail(error, transfer, "waiting for the transfers");
    if (!status && compute != CL_SUCCESS) status = cleat_cl_fail(error, compute, "waiting for the kernels");
    return cleat_device_explain(exec->device, status, error);
}
