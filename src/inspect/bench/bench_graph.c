/* One graph on a device, filled with values, for workloads of one operation and small models. */
#include "bench/bench.h"

#include "core/half.h"
#include "core/memory.h"
#include "exec/copy.h"
#include "graph/tuning.h"

cleat_status cleat_bench_graph_create(const char *name, cleat_bench_graph *made, cleat_error *error) {
    cleat_status status = cleat_store_create(&made->store, error);
    return status ? status : cleat_graph_create(made->store, name, &made->graph, error);
}

void cleat_bench_graph_destroy(cleat_bench_graph *made) {
    cleat_exec_destroy(made->exec);
    cleat_plan_destroy(made->plan);
    cleat_graph_destroy(made->graph);
    cleat_store_destroy(made->store);
    *made = (cleat_bench_graph){0};
}

/* Zeros would draw less power than the values of a training step and let a GPU clock higher. */
void cleat_bench_fill(const cleat_tensor *tensor, void *values) {
    float *floats = values;
    int32_t *integers = values;
    uint16_t *halves = values;
    for (int64_t i = 0; i < cleat_tensor_elements(tensor); ++i) {
        int64_t mixed = i * 7919 % 2039;
        float value = (float)mixed / 2039.0f - 0.5f;
        if (tensor->dtype == CLEAT_F32)
            floats[i] = value;
        else if (tensor->dtype == CLEAT_F16)
            cleat_to_f16(&value, 1, halves + i);
        else if (tensor->dtype == CLEAT_BF16)
            cleat_to_bf16(&value, 1, halves + i);
        else
            integers[i] = (int32_t)(mixed & 1);
    }
}

/* Tensors that the graph does not use (parameters, if it reads only gradients) are not allocated. */
static cleat_status fill(cleat_bench_graph *made, const cleat_tensor *tensor, cleat_error *error) {
    if (cleat_plan_place(made->plan, &made->plan->layouts[0], tensor).slab < 0) return CLEAT_OK;
    void *values = cleat_alloc((size_t)cleat_tensor_bytes(tensor), 1);
    if (!values) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for '%s'", tensor->name);
    cleat_bench_fill(tensor, values);
    cleat_status status = cleat_exec_write_unchecked(made->exec, 0, tensor, values, error);
    cleat_free(values);
    return status;
}

static cleat_status fill_list(cleat_bench_graph *made, cleat_tensor *const *tensors, size_t count, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < count && !status; ++i)
        if (tensors[i] && tensors[i]->role != CLEAT_ROLE_ACTIVATION && !tensors[i]->base)
            status = fill(made, tensors[i], error);
    return status;
}

static cleat_status fill_all(cleat_bench_graph *made, cleat_error *error) {
    const cleat_store *store = made->store;
    cleat_status status = fill_list(made, made->graph->tensors, made->graph->tensor_count, error);
    if (!status) status = fill_list(made, store->states, store->state_count, error);
    if (!status) status = fill_list(made, store->params, store->count, error);
    return status ? status : fill_list(made, store->grads, store->count, error);
}

static cleat_status plan(cleat_bench_graph *made, cleat_device *device, cleat_error *error) {
    cleat_tuning_table *tuned = cleat_tuning_load(device);
    cleat_status status = cleat_plan_create_with(&made->graph, 1, cleat_device_get_facts(device), cleat_choose_tuned,
                                                 tuned, &made->plan, error);
    cleat_tuning_destroy(tuned);
    return status;
}

cleat_status cleat_bench_graph_open(cleat_bench_graph *made, cleat_bench_job *job, cleat_error *error) {
    cleat_status status = cleat_graph_status(made->graph, error);
    if (!status) status = plan(made, job->device, error);
    if (!status) status = cleat_exec_create(job->device, made->plan, &made->exec, error);
    if (!status) status = cleat_exec_build(made->exec, error);
    if (!status) status = fill_all(made, error);
    if (status) return status;
    job->exec = made->exec;
    job->plan = made->plan;
    job->n_parts = 1;
    job->parts[0] = (cleat_bench_part){.last = made->graph->node_count, .times = 1};
    return CLEAT_OK;
}
