/* Parameters and buffers of a store on a device: initialisation, saving to and loading from files. */
#include "exec/exec.h"

#include "core/memory.h"
#include "graph/store.h"

#include <stdio.h>

/* --- host copies --- */

cleat_status cleat_host_tensors_create(size_t count, int64_t elements, cleat_host_tensors *made, cleat_error *error) {
    cleat_host_tensors tensors = {.values = cleat_alloc((size_t)elements, sizeof *tensors.values),
                                  .names = cleat_alloc(count, sizeof *tensors.names),
                                  .items = cleat_alloc(count, sizeof *tensors.items),
                                  .sources = cleat_alloc(count, sizeof *tensors.sources),
                                  .capacity = count};
    if (!tensors.values || !tensors.names || !tensors.items || !tensors.sources) {
        cleat_host_tensors_clear(&tensors);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu tensors of %lld values", count,
                          (long long)elements);
    }
    *made = tensors;
    return CLEAT_OK;
}

void cleat_host_tensors_clear(cleat_host_tensors *tensors) {
    cleat_free(tensors->values);
    cleat_free(tensors->names);
    cleat_free(tensors->items);
    cleat_free(tensors->sources);
}

void cleat_host_tensors_add(cleat_host_tensors *tensors, cleat_tensor *tensor, const char *suffix) {
    size_t i = tensors->count++;
    const cleat_st_tensor *last = i > 0 ? &tensors->items[i - 1] : NULL;
    const float *end = last ? (const float *)last->data + cleat_st_elements(last) : tensors->values;
    snprintf(tensors->names[i], sizeof tensors->names[i], "%s%s", tensor->name, suffix);
    tensors->sources[i] = tensor;
    tensors->items[i] =
        (cleat_st_tensor){.name = tensors->names[i], .dtype = CLEAT_ST_F32, .rank = tensor->rank, .data = end};
    for (int d = 0; d < tensor->rank; ++d) tensors->items[i].shape[d] = tensor->shape[d];
}

cleat_status cleat_host_tensors_read(cleat_host_tensors *tensors, cleat_exec *exec, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < tensors->count && !status; ++i)
        status = cleat_exec_read_unchecked(exec, 0, tensors->sources[i], (void *)tensors->items[i].data, error);
    return status;
}

cleat_status cleat_host_tensors_write(const cleat_host_tensors *tensors, cleat_exec *exec, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < tensors->count && !status; ++i)
        status = cleat_exec_write_unchecked(exec, 0, tensors->sources[i], tensors->items[i].data, error);
    return status;
}

/* --- parameters and buffers --- */

static cleat_status collect(const cleat_exec *exec, cleat_host_tensors *tensors, cleat_error *error) {
    const cleat_store *store = exec->plan->store;
    cleat_status status = cleat_host_tensors_create(
        store->count + store->buffer_count, cleat_store_elements(store) + store->buffer_elements, tensors, error);
    if (status) return status;
    for (size_t i = 0; i < store->count; ++i) cleat_host_tensors_add(tensors, store->params[i], "");
    for (size_t i = 0; i < store->buffer_count; ++i) cleat_host_tensors_add(tensors, store->buffers[i], "");
    return CLEAT_OK;
}

cleat_status cleat_exec_initialise_one(cleat_exec *exec, cleat_tensor *tensor, uint64_t seed, cleat_error *error) {
    float *values = cleat_alloc((size_t)cleat_tensor_elements(tensor), sizeof *values);
    if (!values) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the initial values of %s", tensor->name);
    if (tensor->is_buffer)
        cleat_buffer_initialise(tensor, values);
    else
        cleat_param_initialise(tensor, seed, values);
    cleat_status status = cleat_exec_write_unchecked(exec, 0, tensor, values, error);
    cleat_free(values);
    return status;
}

cleat_status cleat_exec_initialise(cleat_exec *exec, uint64_t seed, cleat_error *error) {
    const cleat_store *store = exec->plan->store;
    cleat_status status = CLEAT_OK;
    for (size_t i = 0; i < store->count && !status; ++i)
        status = cleat_exec_initialise_one(exec, store->params[i], seed, error);
    for (size_t i = 0; i < store->buffer_count && !status; ++i)
        status = cleat_exec_initialise_one(exec, store->buffers[i], seed, error);
    return status;
}

cleat_status cleat_exec_save(cleat_exec *exec, const char *path, cleat_error *error) {
    cleat_host_tensors tensors;
    cleat_status status = collect(exec, &tensors, error);
    if (status) return status;
    status = cleat_host_tensors_read(&tensors, exec, error);
    if (!status) status = cleat_safetensors_write(path, tensors.items, tensors.count, NULL, 0, error);
    cleat_host_tensors_clear(&tensors);
    return status;
}

cleat_status cleat_exec_load(cleat_exec *exec, const char *path, cleat_error *error) {
    cleat_host_tensors tensors;
    cleat_safetensors *file = NULL;
    cleat_status status = collect(exec, &tensors, error);
    if (status) return status;
    status = cleat_safetensors_open(path, &file, error);
    if (!status) status = cleat_safetensors_copy(file, tensors.items, tensors.count, error);
    if (!status) status = cleat_host_tensors_write(&tensors, exec, error);
    cleat_safetensors_close(file);
    cleat_host_tensors_clear(&tensors);
    return status;
}
