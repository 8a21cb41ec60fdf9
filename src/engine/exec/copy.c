/* cleat_exec_write and cleat_exec_read: permitted copies and their times. */
#include "exec/exec.h"
#include "graph/store.h"

#include <inttypes.h>

static cleat_status check_owner(const cleat_exec *exec, const cleat_layout *layout, const cleat_tensor *tensor,
                                cleat_error *error) {
    if (cleat_graph_owns(layout->graph, tensor)) return CLEAT_OK;
    for (size_t i = 0; i < exec->plan->layout_count; ++i)
        if (cleat_graph_owns(exec->plan->layouts[i].graph, tensor))
            return cleat_fail(error, CLEAT_ERR_ARGUMENT, "tensor '%s' belongs to graph '%s', not to '%s'", tensor->name,
                              exec->plan->layouts[i].graph->name, layout->graph->name);
    return cleat_fail(error, CLEAT_ERR_ARGUMENT, "tensor '%s' belongs to none of the graphs of this exec",
                      tensor->name);
}

static cleat_status check_size(const cleat_tensor *tensor, const void *values, size_t bytes, cleat_error *error) {
    char shape[96];
    cleat_tensor_describe(tensor, shape, sizeof shape);
    if (!values)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "tensor '%s': the address of the values is NULL", tensor->name);
    if (bytes == (size_t)cleat_tensor_bytes(tensor)) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_ARGUMENT, "tensor '%s' is %s, %" PRId64 " bytes, but the values have %zu bytes",
                      tensor->name, shape, cleat_tensor_bytes(tensor), bytes);
}

static cleat_status check_copy(const cleat_exec *exec, size_t graph, const cleat_tensor *tensor, const void *values,
                               size_t bytes, cleat_error *error) {
    if (!exec || !tensor)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "the %s is NULL: did the call that makes it fail?",
                          exec ? "tensor" : "exec");
    cleat_status status = cleat_exec_check_graph(exec, graph, error);
    if (!status) status = check_owner(exec, &exec->plan->layouts[graph], tensor, error);
    return status ? status : check_size(tensor, values, bytes, error);
}

static bool is_activation(const cleat_tensor *tensor) {
    return cleat_root(tensor)->role == CLEAT_ROLE_ACTIVATION;
}

cleat_status cleat_exec_write(cleat_exec *exec, size_t graph, const cleat_tensor *tensor, const void *values,
                              size_t bytes, cleat_error *error) {
    cleat_status status = check_copy(exec, graph, tensor, values, bytes, error);
    if (status) return status;
    if (is_activation(tensor))
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "tensor '%s' is computed by graph '%s': only inputs, parameters and other persistent tensors "
                          "can be written",
                          tensor->name, exec->plan->layouts[graph].graph->name);
    return cleat_exec_write_unchecked(exec, graph, tensor, values, error);
}

/* Activations share the memory of the arena: within a graph, unless retained, and with the other graphs. */
static cleat_status check_kept(const cleat_exec *exec, size_t graph, const cleat_tensor *tensor, cleat_error *error) {
    const cleat_layout *layout = &exec->plan->layouts[graph];
    const char *name = layout->graph->name;
    if (!is_activation(tensor) || (size_t)tensor->index >= layout->tensor_count) return CLEAT_OK;
    if (!layout->retained[tensor->index])
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "tensor '%s' is not kept: another tensor of graph '%s' may have its bytes; call "
                          "cleat_retain(graph, tensor) before the plan is made",
                          tensor->name, name);
    if (!exec->last_run)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "tensor '%s' has no values yet: graph '%s' has not run",
                          tensor->name, name);
    if (exec->last_run->layout != layout)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "tensor '%s' is overwritten: graph '%s' ran after '%s', and graphs share the memory of their "
                          "activations; read before another graph runs",
                          tensor->name, exec->last_run->layout->graph->name, name);
    return CLEAT_OK;
}

cleat_status cleat_exec_read(cleat_exec *exec, size_t graph, const cleat_tensor *tensor, void *values, size_t bytes,
                             cleat_error *error) {
    cleat_status status = check_copy(exec, graph, tensor, values, bytes, error);
    if (!status) status = check_kept(exec, graph, tensor, error);
    return status ? status : cleat_exec_read_unchecked(exec, graph, tensor, values, error);
}
