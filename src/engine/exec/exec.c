/* Creates and destroys an exec; copies whole tensors to and from the host. The exec owns the slabs, programs
 * and kernels; device and plan are borrowed and must outlive it. */
#include "exec/exec.h"

#include "core/blocks.h"
#include "core/half.h"
#include "core/memory.h"
#include "device/recorder.h"
#include "graph/store.h"
#include "platform/files.h"

#include <stdlib.h>
#include <string.h>

static cleat_status create_slabs(cleat_exec *exec, cleat_error *error) {
    const cleat_plan *plan = exec->plan;
    exec->slabs = cleat_alloc(plan->slab_count, sizeof *exec->slabs);
    if (!exec->slabs) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for %zu slabs", plan->slab_count);
    for (size_t i = 0; i < plan->slab_count; ++i) {
        const cleat_slab *slab = &plan->slabs[i];
        if (slab->bytes == 0) continue;
        cleat_status status = cleat_buffer_create(exec->device, slab->bytes, &exec->slabs[i], error);
        if (!status && slab->category != CLEAT_BYTES_ARENA)
            status = cleat_buffer_zero(exec->device, exec->slabs[i], slab->bytes, error);
        if (status) return cleat_fail_in(error, status, "%s", cleat_category_name(slab->category));
    }
    return CLEAT_OK;
}

/* Fills states that do not start at zero. */
static cleat_status fill_buffers(cleat_exec *exec, cleat_error *error) {
    const cleat_plan *plan = exec->plan;
    for (size_t i = 0; i < plan->state_count; ++i) {
        const cleat_tensor *state = plan->store->states[i];
        const size_t bytes = (size_t)cleat_tensor_bytes(state), offset = (size_t)plan->states[i].offset;
        if (state->initial == 0.0f || bytes == 0) continue;
        cl_int code = clEnqueueFillBuffer(exec->device->compute, exec->slabs[plan->states[i].slab], &state->initial,
                                          sizeof state->initial, offset, bytes, 0, NULL, NULL);
        if (code != CL_SUCCESS) return cleat_cl_fail(error, code, "filling buffer '%s'", state->name);
    }
    return CLEAT_OK;
}

cleat_status cleat_exec_create(cleat_device *device, const cleat_plan *plan, cleat_exec **exec, cleat_error *error) {
    cleat_exec *created = cleat_alloc(1, sizeof *created);
    if (!created) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for an exec");
    created->device = device;
    created->plan = plan;
    const char *blocking = getenv("CLEAT_LAUNCH_BLOCKING");
    created->waits = blocking && *blocking && strcmp(blocking, "0") != 0;
    cleat_status status = cleat_exec_describe(created, error);
    if (!status) status = create_slabs(created, error);
    if (!status) status = fill_buffers(created, error);
    if (!status) cleat_exec_find_slots(created);
    if (status) {
        cleat_exec_destroy(created);
        return status;
    }
    *exec = created;
    return CLEAT_OK;
}

cleat_status cleat_exec_open(cleat_device *device, cleat_graph *const *graphs, size_t count, cleat_exec **exec,
                             cleat_error *error) {
    cleat_plan *plan = NULL;
    if (!device) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "the device is NULL: did cleat_device_open fail?");
    cleat_status status = cleat_plan_create(graphs, count, cleat_device_get_facts(device), &plan, error);
    if (!status) status = cleat_exec_create(device, plan, exec, error);
    if (status)
        cleat_plan_destroy(plan);
    else
        (*exec)->owned_plan = plan;
    return status;
}

void cleat_exec_destroy(cleat_exec *exec) {
    if (!exec) return;
    clFinish(exec->device->transfer);
    clFinish(exec->device->compute);
    cleat_exec_unbind(exec);
    cleat_free(exec->gathered);
    cleat_exec_release_slots(exec);
    for (size_t i = 0; exec->slabs && i < exec->plan->slab_count; ++i)
        cleat_buffer_release(exec->device, exec->slabs[i], exec->plan->slabs[i].bytes);
    cleat_free(exec->slabs);
    cleat_plan_destroy(exec->owned_plan);
    cleat_free(exec);
}

cleat_status cleat_exec_check_graph(const cleat_exec *exec, size_t graph, cleat_error *error) {
    if (graph < exec->plan->layout_count) return CLEAT_OK;
    return cleat_fail(error, CLEAT_ERR_ARGUMENT, "graph %zu is out of range: the plan has %zu", graph,
                      exec->plan->layout_count);
}

cleat_status cleat_exec_find_graph(const cleat_exec *exec, const cleat_graph *graph, size_t *index,
                                   cleat_error *error) {
    for (size_t i = 0; i < exec->plan->layout_count; ++i)
        if (exec->plan->layouts[i].graph == graph) {
            *index = i;
            return CLEAT_OK;
        }
    return cleat_fail(error, CLEAT_ERR_ARGUMENT, "graph '%s' is not part of the plan: pass it to cleat_plan_create",
                      graph->name);
}

cleat_status cleat_exec_place(const cleat_exec *exec, size_t graph, const cleat_tensor *tensor, cl_mem *slab,
                              int64_t *offset, cleat_error *error) {
    cleat_status status = cleat_exec_check_graph(exec, graph, error);
    if (status) return status;
    cleat_slab_place place = cleat_plan_place(exec->plan, &exec->plan->layouts[graph], tensor);
    if (place.slab < 0)
        return cleat_fail(error, CLEAT_ERR_NOT_FOUND, "tensor '%s' has no memory in graph '%s'", tensor->name,
                          exec->plan->layouts[graph].graph->name);
    *slab = exec->slabs[place.slab];
    *offset = place.offset;
    return CLEAT_OK;
}

/* A copy also fails if an earlier kernel in the queue failed; the error then names that kernel's graph. */
static cleat_status fail_copy(cleat_exec *exec, cl_int code, const char *what, const cleat_tensor *tensor,
                              cleat_error *error) {
    clFinish(exec->device->compute);
    cleat_status status = cleat_exec_pop_failure(exec, error);
    if (!status) status = cleat_cl_fail(error, code, "%s tensor '%s'", what, tensor->name);
    return cleat_device_explain(exec->device, status, error);
}

/* Writes or reads bytes of a tensor from `start` on; *bytes becomes the number of them in the first slab. */
static cleat_status copy_in_slab(cleat_exec *exec, size_t graph, const cleat_tensor *tensor, bool write, int64_t start,
                                 int64_t *bytes, void *values, cleat_error *error) {
    cl_mem slab = NULL;
    cl_event event = NULL, *asked = cleat_is_recorded(exec->device) ? &event : NULL;
    cleat_slab_place place;
    cleat_status status = cleat_exec_place(exec, graph, tensor, &slab, &place.offset, error); /* it has a place */
    if (status) return status;
    place = cleat_plan_place_from(exec->plan, &exec->plan->layouts[graph], tensor, start, bytes);
    slab = exec->slabs[place.slab];
    cleat_recorder_begin(exec->device, write ? CLEAT_COMMAND_WRITE : CLEAT_COMMAND_READ, graph, tensor->name, *bytes);
    const size_t at = (size_t)place.offset, size = (size_t)*bytes;
    const cl_int code =
        write ? clEnqueueWriteBuffer(exec->device->compute, slab, CL_TRUE, at, size, values, 0, NULL, asked)
              : clEnqueueReadBuffer(exec->device->compute, slab, CL_TRUE, at, size, values, 0, NULL, asked);
    cleat_recorder_end(exec->device, event);
    if (event) clReleaseEvent(event);
    if (code != CL_SUCCESS) return fail_copy(exec, code, write ? "writing" : "reading", tensor, error);
    /* a read may succeed although an earlier kernel failed */
    return write ? CLEAT_OK : cleat_device_explain(exec->device, cleat_exec_pop_failure(exec, error), error);
}

/* The same over all slabs. */
static cleat_status copy_bytes(cleat_exec *exec, size_t graph, const cleat_tensor *tensor, bool write, int64_t start,
                               int64_t bytes, void *values, cleat_error *error) {
    cleat_status status = CLEAT_OK;
    for (int64_t done = 0, some = 0; done < bytes && !status; done += some) {
        some = bytes - done;
        status = copy_in_slab(exec, graph, tensor, write, start + done, &some, (char *)values + done, error);
    }
    return status;
}

/* Elements of a half weight that are rounded at once. */
enum { ROUNDED = 1 << 18 };

/* Updates elements of the half weight of a parameter, if any graph reads one. */
static cleat_status write_half_weight(cleat_exec *exec, const cleat_tensor *param, int64_t first, int64_t count,
                                      const float *values, cleat_error *error) {
    const cleat_tensor *half = exec->plan->store->half_weights[param->index];
    const int64_t room = count < ROUNDED ? count : ROUNDED;
    cleat_status status = CLEAT_OK;
    if (!half || exec->plan->flat[CLEAT_FLAT_HALF_WEIGHTS].slab < 0) return CLEAT_OK;
    uint16_t *bits = cleat_alloc((size_t)room, sizeof *bits);
    if (!bits) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the half weights of '%s'", param->name);
    for (int64_t i = 0; i < count && !status; i += room) {
        const size_t some = (size_t)(count - i < room ? count - i : room);
        (half->dtype == CLEAT_F16 ? cleat_to_f16 : cleat_to_bf16)(values + i, some, bits);
        status = copy_bytes(exec, 0, half, true, (first + i) * (int64_t)sizeof *bits, (int64_t)(some * sizeof *bits),
                            bits, error);
    }
    cleat_free(bits);
    return status;
}

/* --- parameters in blocks --- */

/* The values that the device has of a parameter in blocks. bytes: scratch [cleat_tensor_bytes(blocks)]. */
static cleat_status read_blocks(cleat_exec *exec, const cleat_tensor *blocks, void *bytes, float *values,
                                cleat_error *error) {
    cleat_status status = cleat_exec_read_unchecked(exec, 0, blocks, bytes, error);
    if (!status) cleat_blocks_values(blocks->dtype, bytes, cleat_tensor_elements(blocks), values);
    return status;
}

/* Elements of a weight in blocks. */
typedef struct block_part {
    const cleat_tensor *blocks;
    int64_t first, count;
} block_part;

/* Whether blocks lie at the ends of a part, and depend on nothing else. */
static bool is_independent(block_part part) {
    const int64_t each = cleat_block_elements(part.blocks->dtype);
    return part.blocks->dtype != CLEAT_NF4 && part.first % each == 0 && part.count % each == 0;
}

/* Writes a part, or reads it. */
static cleat_status copy_blocks(cleat_exec *exec, block_part part, bool write, char *bytes, cleat_error *error) {
    cleat_block_piece pieces[CLEAT_BLOCK_PIECES];
    const int count =
        cleat_block_pieces(part.blocks->dtype, cleat_tensor_elements(part.blocks), part.first, part.count, pieces);
    cleat_status status = CLEAT_OK;
    for (int i = 0; i < count && !status; bytes += pieces[i++].bytes)
        status = copy_bytes(exec, 0, part.blocks, write, pieces[i].offset, pieces[i].bytes, bytes, error);
    return status;
}

/* Values that the device has already are left as they are, because quantising them again may change their scales. */
static cleat_status write_blocks(cleat_exec *exec, block_part part, const float *values, cleat_error *error) {
    const cleat_dtype dtype = part.blocks->dtype;
    const size_t count = (size_t)part.count;
    void *bytes = cleat_alloc((size_t)cleat_block_bytes(dtype, part.count), 1);
    float *before = cleat_alloc(count, sizeof *before);
    cleat_status status = CLEAT_OK;
    if (!bytes || !before) status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for '%s'", part.blocks->name);
    if (!status) status = copy_blocks(exec, part, false, bytes, error);
    if (!status) cleat_blocks_values(dtype, bytes, part.count, before);
    if (!status && memcmp(before, values, count * sizeof *values) != 0) {
        status = cleat_blocks_quantise(dtype, values, part.count, bytes, error);
        if (status) status = cleat_fail_in(error, status, "weight '%s'", part.blocks->name);
        if (!status) status = copy_blocks(exec, part, true, bytes, error);
    }
    cleat_free(before);
    cleat_free(bytes);
    return status;
}

/* Scales of NF4 depend on the whole parameter, which comes in parts: they are gathered, one parameter at a time. */
static cleat_status gather_blocks(cleat_exec *exec, const cleat_tensor *blocks, int64_t first, int64_t count,
                                  const float *values, cleat_error *error) {
    const int64_t elements = cleat_tensor_elements(blocks);
    const block_part part = {blocks, first, count}, whole = {blocks, 0, elements};
    if (exec->plan->flat[CLEAT_FLAT_BLOCK_WEIGHTS].slab < 0) return CLEAT_OK; /* no graph reads them */
    if (count == elements || is_independent(part)) return write_blocks(exec, part, values, error);
    if (exec->gathered_of != blocks) {
        cleat_free(exec->gathered);
        exec->gathered_of = NULL;
        exec->gathered_count = 0;
        exec->gathered = cleat_alloc((size_t)elements, sizeof *exec->gathered);
        if (!exec->gathered) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for '%s'", blocks->name);
        exec->gathered_of = blocks;
    }
    memcpy(exec->gathered + first, values, (size_t)count * sizeof *values);
    exec->gathered_count += count;
    if (exec->gathered_count < elements) return CLEAT_OK;
    cleat_status status = write_blocks(exec, whole, exec->gathered, error);
    cleat_free(exec->gathered);
    exec->gathered = NULL;
    exec->gathered_of = NULL;
    return status;
}

/* Reads a parameter that the device has only as its half or block weight. */
static cleat_status read_half_only(cleat_exec *exec, size_t graph, const cleat_tensor *param, float *values,
                                   cleat_error *error) {
    const cleat_tensor *half = exec->plan->store->half_weights[param->index],
                       *blocks = cleat_store_blocks_of(exec->plan->store, param), *there = blocks ? blocks : half;
    const size_t elements = (size_t)cleat_tensor_elements(param);
    void *bits = cleat_alloc((size_t)cleat_tensor_bytes(there), 1);
    if (!bits) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for the weights of '%s'", param->name);
    cleat_status status = blocks ? read_blocks(exec, blocks, bits, values, error)
                                 : cleat_exec_read_unchecked(exec, graph, half, bits, error);
    if (!status && !blocks) (half->dtype == CLEAT_F16 ? cleat_from_f16 : cleat_from_bf16)(bits, elements, values);
    cleat_free(bits);
    return status;
}

cleat_status cleat_exec_write_part(cleat_exec *exec, size_t graph, const cleat_tensor *tensor, int64_t first,
                                   int64_t count, const void *values, cleat_error *error) {
    const int64_t size = cleat_dtype_size(tensor->dtype);
    const bool is_param = tensor->role == CLEAT_ROLE_PARAMETER && tensor->index >= 0;
    const cleat_tensor *blocks = is_param ? cleat_store_blocks_of(exec->plan->store, tensor) : NULL;
    if (cleat_block_elements(tensor->dtype)) /* raw bytes */
        return copy_bytes(exec, graph, tensor, true, 0, cleat_tensor_bytes(tensor), (void *)values, error);
    if (blocks) return gather_blocks(exec, blocks, first, count, values, error);
    if (tensor->half_only && tensor->role == CLEAT_ROLE_PARAMETER)
        return write_half_weight(exec, tensor, first, count, values, error);
    cleat_status status = copy_bytes(exec, graph, tensor, true, first * size, count * size, (void *)values, error);
    return !status && is_param ? write_half_weight(exec, tensor, first, count, values, error) : status;
}

cleat_status cleat_exec_write_stored(cleat_exec *exec, const cleat_tensor *param, int64_t first, int64_t count,
                                     cleat_gguf_type type, const void *stored, cleat_error *error) {
    const cleat_tensor *blocks = cleat_store_blocks_of(exec->plan->store, param);
    const bool has_slab = exec->plan->flat[CLEAT_FLAT_BLOCK_WEIGHTS].slab >= 0;
    char *bytes = cleat_alloc((size_t)(blocks ? cleat_block_bytes(blocks->dtype, count) : 1), 1);
    float *values = NULL;
    cleat_status status = CLEAT_OK;
    if (bytes && blocks && has_slab && cleat_blocks_take(blocks->dtype, type, stored, count, bytes)) {
        status = copy_blocks(exec, (block_part){blocks, first, count}, true, bytes, error);
    } else if (bytes && (values = cleat_alloc((size_t)count, sizeof *values))) {
        cleat_gguf_unpack(type, stored, (size_t)(count / cleat_gguf_block_values(type)), values);
        status = cleat_exec_write_part(exec, 0, param, first, count, values, error);
    } else {
        status = cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for '%s'", param->name);
    }
    cleat_free(values);
    cleat_free(bytes);
    return status;
}

cleat_status cleat_exec_write_unchecked(cleat_exec *exec, size_t graph, const cleat_tensor *tensor, const void *values,
                                        cleat_error *error) {
    return cleat_exec_write_part(exec, graph, tensor, 0, cleat_tensor_elements(tensor), values, error);
}

cleat_status cleat_exec_enqueue_write(cleat_exec *exec, const cleat_tensor *tensor, const void *values,
                                      cleat_error *error) {
    cl_mem slab = NULL;
    int64_t offset = 0;
    const size_t bytes = (size_t)cleat_tensor_bytes(tensor);
    cleat_status status = cleat_exec_place(exec, 0, tensor, &slab, &offset, error);
    if (status) return status;
    cl_int code = clEnqueueFillBuffer(exec->device->compute, slab, values, bytes, (size_t)offset, bytes, 0, NULL, NULL);
    return code == CL_SUCCESS ? CLEAT_OK : fail_copy(exec, code, "writing", tensor, error);
}

cleat_status cleat_exec_read_unchecked(cleat_exec *exec, size_t graph, const cleat_tensor *tensor, void *values,
                                       cleat_error *error) {
    if (tensor->half_only && tensor->role == CLEAT_ROLE_PARAMETER)
        return read_half_only(exec, graph, tensor, values, error);
    return copy_bytes(exec, graph, tensor, false, 0, cleat_tensor_bytes(tensor), values, error);
}
