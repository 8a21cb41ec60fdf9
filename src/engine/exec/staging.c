/* Transfer of inputs: pinned host memory -> a slot on the device (transfer queue) -> the graph's inputs
 * (compute queue, at the start of its run).
 *
 * With two slots, one batch is transferred while the previous one waits for its run. The inputs of a running
 * graph are never overwritten, because the copy into them is enqueued in the compute queue between that run
 * and the next. */
#include "exec/exec.h"
#include "platform/threads.h"

#include "core/memory.h"
#include "device/recorder.h"

#include <inttypes.h>

struct cleat_staging {
    cleat_device *device;
    cl_mem pinned; /* NULL if the driver has no pinned memory; `data` is then ordinary memory */
    void *data;
    int64_t bytes;
    pthread_mutex_t lock; /* protects `sent`: loader threads wait while the trainer uploads */
    cl_event sent;        /* the last transfer from this buffer */
};

/* --- slots --- */

void cleat_exec_find_slots(cleat_exec *exec) {
    const cleat_plan *plan = exec->plan;
    for (int i = 0; i < CLEAT_SLOTS; ++i)
        if (plan->staging[i] >= 0) exec->slots[exec->slot_count++].buffer = exec->slabs[plan->staging[i]];
}

static void release_event(cl_event *event) {
    if (*event) clReleaseEvent(*event);
    *event = NULL;
}

void cleat_exec_release_slots(cleat_exec *exec) {
    for (int i = 0; i < exec->slot_count; ++i) {
        release_event(&exec->slots[i].written);
        release_event(&exec->slots[i].copied);
    }
}

/* Slots are used in turn, so that a transfer seldom waits for the copy out of its slot. */
static cleat_slot *free_slot(cleat_exec *exec) {
    for (int i = 0; i < exec->slot_count; ++i) {
        int index = (exec->next_slot + i) % exec->slot_count;
        if (exec->slots[index].written) continue;
        exec->next_slot = (index + 1) % exec->slot_count;
        return &exec->slots[index];
    }
    return NULL;
}

cleat_status cleat_exec_consume_upload(cleat_exec *exec, cleat_bound_graph *bound, cleat_error *error) {
    const cleat_layout *layout = bound->layout;
    cleat_slot *slot = bound->pending;
    if (!slot) return CLEAT_OK;
    release_event(&slot->copied);
    cleat_recorder_begin(exec->device, CLEAT_COMMAND_COPY, (size_t)(bound - exec->graphs), layout->graph->name,
                         layout->input_bytes);
    cl_int code = clEnqueueCopyBuffer(exec->device->compute, slot->buffer, exec->slabs[layout->inputs.slab], 0,
                                      (size_t)layout->inputs.offset, (size_t)layout->input_bytes, 1, &slot->written,
                                      &slot->copied);
    cleat_recorder_end(exec->device, code == CL_SUCCESS ? slot->copied : NULL);
    if (code != CL_SUCCESS) return cleat_cl_fail(error, code, "copying the inputs of graph '%s'", layout->graph->name);
    release_event(&slot->written);
    slot->is_flushed = false;
    bound->pending = NULL;
    return CLEAT_OK;
}

/* --- staging buffers --- */

/* Maps pinned host memory; NULL if the driver has none left. Transfers from ordinary memory are slower;
 * nothing else changes. */
static void *map_pinned(cleat_staging *staging) {
    cl_int code = CL_SUCCESS;
    cl_mem buffer = clCreateBuffer(staging->device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                   (size_t)staging->bytes, NULL, &code);
    if (code != CL_SUCCESS) return NULL;
    void *data = clEnqueueMapBuffer(staging->device->transfer, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                    (size_t)staging->bytes, 0, NULL, NULL, &code);
    if (code != CL_SUCCESS) {
        clReleaseMemObject(buffer);
        return NULL;
    }
    staging->pinned = buffer;
    return data;
}

cleat_status cleat_staging_create(cleat_exec *exec, int64_t bytes, bool pinned, cleat_staging **staging,
                                  cleat_error *error) {
    if (bytes <= 0) return cleat_fail(error, CLEAT_ERR_ARGUMENT, "a staging buffer of %" PRId64 " bytes", bytes);
    cleat_staging *created = cleat_alloc(1, sizeof *created);
    if (!created) return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a staging buffer");
    created->device = exec->device;
    created->bytes = bytes;
    if (pinned) created->data = map_pinned(created);
    if (!created->data && pinned)
        cleat_log(CLEAT_LOG_WARNING, "no pinned memory for %" PRId64 " bytes of inputs: using pageable memory", bytes);
    if (!created->data) created->data = cleat_alloc((size_t)bytes, 1);
    if (!created->data) {
        cleat_free(created);
        return cleat_fail(error, CLEAT_ERR_MEMORY, "no memory for a staging buffer of %" PRId64 " bytes", bytes);
    }
    pthread_mutex_init(&created->lock, NULL);
    *staging = created;
    return CLEAT_OK;
}

void cleat_staging_destroy(cleat_staging *staging) {
    if (!staging) return;
    cleat_staging_wait(staging, NULL);
    release_event(&staging->sent);
    if (staging->pinned) {
        clEnqueueUnmapMemObject(staging->device->transfer, staging->pinned, staging->data, 0, NULL, NULL);
        clFinish(staging->device->transfer);
        clReleaseMemObject(staging->pinned);
    } else {
        cleat_free(staging->data);
    }
    pthread_mutex_destroy(&staging->lock);
    cleat_free(staging);
}

void *cleat_staging_data(cleat_staging *staging) {
    return staging->data;
}

static void set_sent(cleat_staging *staging, cl_event event) {
    pthread_mutex_lock(&staging->lock);
    release_event(&staging->sent);
    staging->sent = event;
    pthread_mutex_unlock(&staging->lock);
}

cleat_status cleat_staging_wait(cleat_staging *staging, cleat_error *error) {
    pthread_mutex_lock(&staging->lock);
    cl_event sent = staging->sent;
    cl_int code = sent ? clRetainEvent(sent) : CL_SUCCESS;
    pthread_mutex_unlock(&staging->lock);
    if (!sent) return CLEAT_OK;
    if (code == CL_SUCCESS) {
        code = clWaitForEvents(1, &sent);
        clReleaseEvent(sent);
    }
    if (code == CL_SUCCESS) return CLEAT_OK;
    return cleat_device_explain(staging->device, cleat_cl_fail(error, code, "waiting for an upload"), error);
}

/* --- uploads --- */

int64_t cleat_exec_input_bytes(const cleat_exec *exec, size_t graph) {
    return graph < exec->plan->layout_count ? exec->plan->layouts[graph].input_bytes : 0;
}

/* Returns -1 if the tensor is not an input of that graph. */
int64_t cleat_exec_input_offset(const cleat_exec *exec, size_t graph, const cleat_tensor *input) {
    if (graph >= exec->plan->layout_count || input->role != CLEAT_ROLE_INPUT) return -1;
    const cleat_layout *layout = &exec->plan->layouts[graph];
    cleat_slab_place place = cleat_plan_place(exec->plan, layout, input);
    return place.slab < 0 ? -1 : place.offset - layout->inputs.offset;
}

static cleat_status check_upload(const cleat_exec *exec, size_t graph, const cleat_staging *staging,
                                 cleat_error *error) {
    cleat_status status = cleat_exec_check_graph(exec, graph, error);
    if (status) return status;
    const cleat_layout *layout = &exec->plan->layouts[graph];
    if (staging->bytes < layout->input_bytes)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT,
                          "the inputs of graph '%s' are %" PRId64 " bytes, but the staging buffer has %" PRId64,
                          layout->graph->name, layout->input_bytes, staging->bytes);
    if (exec->graphs[graph].pending)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "graph '%s' has a pending upload: run the graph first",
                          layout->graph->name);
    return CLEAT_OK;
}

cleat_status cleat_exec_upload(cleat_exec *exec, size_t graph, cleat_staging *staging, cleat_error *error) {
    cleat_status status = check_upload(exec, graph, staging, error);
    if (status) return status;
    cleat_bound_graph *bound = &exec->graphs[graph];
    int64_t bytes = bound->layout->input_bytes;
    if (bytes == 0) return CLEAT_OK;
    cleat_slot *slot = free_slot(exec);
    if (!slot)
        return cleat_fail(error, CLEAT_ERR_ARGUMENT, "%d uploads are pending: run one of their graphs first",
                          exec->slot_count);
    if (slot->copied && !slot->is_flushed) cleat_exec_flush(exec); /* the transfer waits for it */
    cl_event event = NULL;
    cleat_recorder_begin(exec->device, CLEAT_COMMAND_UPLOAD, graph, bound->layout->graph->name, bytes);
    cl_int code = clEnqueueWriteBuffer(exec->device->transfer, slot->buffer, CL_FALSE, 0, (size_t)bytes, staging->data,
                                       slot->copied ? 1 : 0, slot->copied ? &slot->copied : NULL, &event);
    cleat_recorder_end(exec->device, code == CL_SUCCESS ? event : NULL);
    if (code == CL_SUCCESS) code = clFlush(exec->device->transfer);
    if (code == CL_SUCCESS) code = clRetainEvent(event); /* for the slot and for `sent` */
    if (code != CL_SUCCESS) {
        if (event) clFinish(exec->device->transfer); /* the caller may free what is being read */
        release_event(&event);
        status = cleat_cl_fail(error, code, "uploading the inputs of graph '%s'", bound->layout->graph->name);
        return cleat_device_explain(exec->device, status, error);
    }
    slot->written = event;
    bound->pending = slot;
    set_sent(staging, event);
    return CLEAT_OK;
}
