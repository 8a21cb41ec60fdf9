/* Enqueues a graph, and reports which kernel failed.
 *
 * A step makes no host round trip and sets no argument; only the last launch of a run has an event, which
 * saves three driver calls a launch. Launches are enqueued one by one, not as a recorded command buffer:
 * cleat takes 0.1 us between two of them, PoCL's clEnqueueNDRangeKernel 1.5 to 2 us, and PoCL 3.1 replays
 * a cl_khr_command_buffer as single launches with an event each (22, 115 and 400 empty kernels: 6, 15 and
 * 53 % longer; findings/pocl_command_buffer_arguments.sh). */
#include "exec/exec.h"

#include "device/recorder.h"

#include <string.h>

/* --- failures --- */

static cleat_status fail_kernel(const cleat_launch *launch, cl_int code, cleat_error *error) {
    const char *kernel = launch->kind == CLEAT_LAUNCH_SGEMM ? "CLBlast sgemm" : launch->kernel;
    return cleat_cl_fail(error, code, "kernel '%s' of %s", kernel, launch->node->name);
}

/* Releases the event of a graph's last run; records a failure before. */
static void collect_event(cleat_exec *exec, cleat_bound_graph *bound) {
    cl_int state = CL_COMPLETE;
    if (!bound->ended) return;
    clGetEventInfo(bound->ended, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    if (state < 0 && !exec->failure.status)
        cleat_cl_fail(&exec->failure, state, "a kernel of graph '%s'%s", bound->layout->graph->name,
                      exec->waits ? "" : " (CLEAT_LAUNCH_BLOCKING=1 names it)");
    clReleaseEvent(bound->ended);
    bound->ended = NULL;
}

/* --- running --- */

/* Waits for a launch. Some drivers report its failure by its event alone. */
static cl_int wait_for(const cleat_device *device, cl_event event) {
    cl_int state = CL_COMPLETE, code = clFinish(device->compute);
    if (event) clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    return state < 0 ? state : code;
}

/* Enqueues launch i. `event` (may be NULL) receives its event, which the caller releases, if that succeeds. */
static cleat_status run_launch(cleat_exec *exec, cleat_bound_graph *bound, size_t i, cl_event *event,
                               cleat_error *error) {
    const cleat_launch *launch = &bound->binder.launches[i];
    const bool is_product = launch->kind == CLEAT_LAUNCH_SGEMM;
    cleat_device *device = exec->device;
    cl_event own = NULL, *asked = event || exec->waits || cleat_is_recorded(device) ? &own : NULL;
    cl_int code = CL_SUCCESS;
    cleat_status status = cleat_exec_bind(exec, bound, i, error);
    if (status) return status;
    if (!is_product && device->fail_launch > 0 && --device->fail_launch == 0)
        return fail_kernel(launch, CL_MEM_OBJECT_ALLOCATION_FAILURE, error);
    cleat_recorder_begin(device, is_product ? CLEAT_COMMAND_SGEMM : CLEAT_COMMAND_KERNEL,
                         (size_t)(bound - exec->graphs), launch, 0);
    if (is_product)
        status = cleat_clblast_sgemm(device, &bound->gemms[i], asked, error);
    else
        code = clEnqueueNDRangeKernel(device->compute, bound->kernels[i], (cl_uint)launch->dims, NULL, launch->global,
                                      launch->local, 0, NULL, asked);
    if (status || code != CL_SUCCESS) own = NULL;
    cleat_recorder_end(device, own);
    if (!status && code == CL_SUCCESS && exec->waits) code = wait_for(device, own);
    if (event && !status && code == CL_SUCCESS)
        *event = own;
    else if (own)
        clReleaseEvent(own);
    if (status) return cleat_fail_in(error, status, "%s", launch->node->name);
    return code == CL_SUCCESS ? CLEAT_OK : fail_kernel(launch, code, error);
}

cleat_status cleat_exec_enqueue_nodes(cleat_exec *exec, size_t graph, size_t first, size_t last, cleat_error *error) {
    cleat_status status = cleat_exec_check_graph(exec, graph, error);
    if (status) return status;
    cleat_bound_graph *bound = &exec->graphs[graph];
    size_t nodes = bound->layout->node_count;
    if (bound->layout->graph->node_count != nodes)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "graph '%s' has %zu nodes, but had %zu when it was planned: build a graph before its plan",
                          bound->layout->graph->name, bound->layout->graph->node_count, nodes);
    if (first > last || last > nodes)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "nodes %zu to %zu are out of range: graph '%s' has %zu", first,
                          last, bound->layout->graph->name, nodes);
    exec->last_run = bound;
    const size_t end = bound->first[last];
    if (bound->first[first] < end) collect_event(exec, bound);
    status = cleat_exec_consume_upload(exec, bound, error);
    /* The event of the last launch stands for the whole run, because the queue is in order. */
    for (size_t i = bound->first[first]; i < end && !status; ++i)
        status = run_launch(exec, bound, i, i + 1 == end ? &bound->ended : NULL, error);
    if (bound->ended && !status) cleat_device_enqueued(exec->device, bound->ended);
    return cleat_device_explain(exec->device, status, error);
}

void cleat_exec_flush(cleat_exec *exec) {
    clFlush(exec->device->compute);
    for (int i = 0; i < exec->slot_count; ++i) exec->slots[i].is_flushed = true;
}

cleat_status cleat_exec_run_nodes(cleat_exec *exec, size_t graph, size_t first, size_t last, cleat_error *error) {
    cleat_status status = cleat_exec_enqueue_nodes(exec, graph, first, last, error);
    cleat_exec_flush(exec);
    return status;
}

cleat_status cleat_exec_enqueue(cleat_exec *exec, size_t graph, cleat_error *error) {
    cleat_status status = cleat_exec_check_graph(exec, graph, error);
    return status ? status : cleat_exec_enqueue_nodes(exec, graph, 0, exec->graphs[graph].layout->node_count, error);
}

cleat_status cleat_exec_run(cleat_exec *exec, size_t graph, cleat_error *error) {
    cleat_status status = cleat_exec_enqueue(exec, graph, error);
    cleat_exec_flush(exec);
    return status;
}

cleat_status cleat_exec_pop_failure(cleat_exec *exec, cleat_error *error) {
    for (size_t g = 0; g < exec->plan->layout_count; ++g) collect_event(exec, &exec->graphs[g]);
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
